import type { ComponentChildren } from 'preact';
import { useState } from 'preact/hooks';
import { toProblem } from '../api/problem.ts';
import type { WithEtag } from '../api/records.ts';
import type { Field } from '../description.ts';
import { Dialog } from '../parts/dialog.tsx';
import { Fact } from '../parts/facts.tsx';
import { ProblemNote } from '../parts/notices.tsx';
import { isIdentifier, memberLabel, valueLabel } from '../parts/resource_labels.ts';
import { UntrustedText } from '../parts/untrusted_text.tsx';
import type { Value, Values } from './record_form.tsx';
import { useAction } from './use_action.tsx';

type ComparedField = Pick<Field, 'name'> & Partial<Pick<Field, 'kind'>>;

/** Values that a form saves; `send` sends the changes if the record still has this ETag. */
interface Edit {
  readonly mine: Values;
  readonly send: (etag: string | undefined) => Promise<void>;
}

interface EditDialogProps<Version extends WithEtag<object>> {
  /** `user`. */
  readonly noun: string;
  readonly fields: readonly ComparedField[];
  readonly valuesOf: (record: Version['record']) => Values;
  /** The version to edit; undefined while it is being read. */
  readonly loaded: Version | undefined;
  readonly read: () => Promise<Version>;
  /** Whether a change of this member is saved without a question if others have changed other members only. */
  readonly merges?: (field: ComparedField) => boolean;
  /** Shown until the version is read. */
  readonly pending?: ComponentChildren;
  readonly form: (from: Version, save: (edit: Edit) => Promise<void>) => ComponentChildren;
  readonly onClose: () => void;
}

/** Edits a version of a record. A conflict that does not merge is shown before anything is saved. */
export function EditDialog<Version extends WithEtag<object>>(props: EditDialogProps<Version>) {
  const { noun, fields, valuesOf, loaded, read, merges = () => false, pending, form, onClose } = props;
  const [restarted, setRestarted] = useState<Version>();
  const [conflict, setConflict] = useState<{ readonly edit: Edit; readonly theirs: Version }>();
  const from = restarted ?? loaded;
  const isMerge = (mine: Values, theirs: Version) => {
    const [before, now] = [from, theirs].map((version) => version && valuesOf(version.record));
    return fields.every(
      (field) =>
        mine[field.name] === before?.[field.name] ||
        (merges(field) && now?.[field.name] === before?.[field.name]),
    );
  };
  const save = async (edit: Edit, known = from): Promise<void> => {
    try {
      await edit.send(known?.etag);
    } catch (error) {
      if (toProblem(error).kind !== 'stale') throw error;
      const theirs = await read();
      if (isMerge(edit.mine, theirs)) return save(edit, theirs);
      setConflict({ edit, theirs });
      if (conflict) throw error;
    }
  };
  const { isBusy, problem, run } = useAction(() => undefined);
  const takeTheirs = async () => {
    setRestarted(conflict?.theirs);
    setConflict(undefined);
  };
  return (
    <Dialog title={conflict ? 'Edit conflict' : `Edit ${noun}`} onClose={onClose}>
      {!from && pending}
      {from && !conflict && form(from, save)}
      {from && conflict && (
        <div class="stack">
          <p>This record was changed while you were editing it. Your changes are not saved yet.</p>
          <Differences
            fields={fields}
            versions={{
              Original: valuesOf(from.record),
              Current: valuesOf(conflict.theirs.record),
              Yours: conflict.edit.mine,
            }}
          />
          {problem && <ProblemNote problem={problem} />}
          <div class="actions">
            <button
              type="button"
              class="button button-main"
              disabled={isBusy}
              onClick={() => run(() => save(conflict.edit, conflict.theirs))}
            >
              Overwrite with yours
            </button>
            <button type="button" class="button" onClick={() => run(takeTheirs)}>
              Start over from the current version
            </button>
          </div>
        </div>
      )}
    </Dialog>
  );
}

interface DifferencesProps {
  readonly fields: readonly ComparedField[];
  /** By label, the oldest first. */
  readonly versions: Readonly<Record<string, Values>>;
}

/** The fields that differ between versions, with all of their values. */
function Differences({ fields, versions }: DifferencesProps) {
  const differing = fields.filter(
    ({ name }) => new Set(Object.values(versions).map((values) => values[name])).size > 1,
  );
  return differing.map((field) => (
    <section key={field.name} class="comparison" aria-label={memberLabel(field.name)}>
      <h3>{memberLabel(field.name)}</h3>
      <dl class="facts">
        {Object.entries(versions).map(([label, values]) => (
          <Fact key={label} label={label}>
            {comparedText(field, values[field.name])}
          </Fact>
        ))}
      </dl>
    </section>
  ));
}

function comparedText({ name, kind }: ComparedField, value: Value = '') {
  if (kind === 'password') return <span class="faint">hidden</span>;
  const text = typeof value === 'boolean' ? (value ? 'yes' : 'no') : valueLabel(name, value);
  return text === '' ? (
    <span class="faint">empty</span>
  ) : (
    <UntrustedText text={text} isIdentifier={isIdentifier(name)} />
  );
}

interface ChangedSinceShownProps {
  readonly fields: readonly ComparedField[];
  readonly before: Values;
  readonly now: Values;
  /** Whether the version differs, even if its fields are equal. */
  readonly isNewVersion: boolean;
}

/** Shows what has changed since a record was displayed, before it is deleted. */
export function ChangedSinceShown({ fields, before, now, isNewVersion }: ChangedSinceShownProps) {
  const isShown = fields.some(({ name }) => before[name] !== now[name]);
  if (!isShown && !isNewVersion) return null;
  return (
    <div class="stack" role="alert">
      <p>This record changed since it was displayed. It is not deleted yet.</p>
      {!isShown && (
        <p>
          The change is not in the fields shown here: it may concern a child record, a secret or the disabled
          state. Check its page before you continue.
        </p>
      )}
      <Differences fields={fields} versions={{ Before: before, Now: now }} />
    </div>
  );
}
