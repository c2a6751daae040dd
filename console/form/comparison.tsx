import type { ComponentChildren } from 'preact';
import { useState } from 'preact/hooks';
import { toProblem } from '../api/problem.ts';
import type { WithEtag } from '../api/records.ts';
import type { Field } from '../description.ts';
import { Dialog } from '../parts/dialog.tsx';
import { ProblemNote } from '../parts/notices.tsx';
import { memberLabel, valueLabel } from '../parts/resource_labels.ts';
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
  /** Shown until the version is read. */
  readonly pending?: ComponentChildren;
  readonly form: (from: Version, save: (edit: Edit) => Promise<void>) => ComponentChildren;
  readonly onClose: () => void;
}

/** Edits a version of a record. A conflict is shown before anything is saved. */
export function EditDialog<Version extends WithEtag<object>>(props: EditDialogProps<Version>) {
  const { noun, fields, valuesOf, loaded, read, pending, form, onClose } = props;
  const [restarted, setRestarted] = useState<Version>();
  const [conflict, setConflict] = useState<{ readonly edit: Edit; readonly theirs: Version }>();
  const from = restarted ?? loaded;
  const save = async (edit: Edit) => {
    try {
      await edit.send(from?.etag);
    } catch (error) {
      if (toProblem(error).kind !== 'stale') throw error;
      setConflict({ edit, theirs: await read() });
    }
  };
  return (
    <Dialog title={conflict ? 'Edit conflict' : `Edit ${noun}`} onClose={onClose}>
      {!from && pending}
      {from && !conflict && form(from, save)}
      {from && conflict && (
        <Comparison
          fields={fields}
          before={valuesOf(from.record)}
          mine={conflict.edit.mine}
          theirs={valuesOf(conflict.theirs.record)}
          overwrite={() => conflict.edit.send(conflict.theirs.etag)}
          onStale={async () => setConflict({ ...conflict, theirs: await read() })}
          takeTheirs={() => {
            setRestarted(conflict.theirs);
            setConflict(undefined);
          }}
        />
      )}
    </Dialog>
  );
}

interface ComparisonProps {
  readonly fields: readonly ComparedField[];
  readonly before: Values;
  readonly mine: Values;
  readonly theirs: Values;
  readonly overwrite: () => Promise<void>;
  /** The record has changed again. */
  readonly onStale: () => Promise<void>;
  readonly takeTheirs: () => void;
}

/** Shows original, current and own values of an edit conflict. */
function Comparison({ fields, before, mine, theirs, overwrite, onStale, takeTheirs }: ComparisonProps) {
  const { isBusy, problem, run } = useAction(() => undefined, onStale);
  const isRelevant = ({ name }: ComparedField) =>
    before[name] !== theirs[name] || before[name] !== mine[name];
  return (
    <div class="stack">
      <p>This record was changed while you were editing it. Your changes are not saved yet.</p>
      {fields.filter(isRelevant).map((field) => (
        <section key={field.name} class="comparison" aria-label={memberLabel(field.name)}>
          <h3>{memberLabel(field.name)}</h3>
          <dl class="facts">
            <ComparedValue label="Original" field={field} value={before[field.name]} />
            <ComparedValue label="Current" field={field} value={theirs[field.name]} />
            <ComparedValue label="Yours" field={field} value={mine[field.name]} />
          </dl>
        </section>
      ))}
      {problem && <ProblemNote problem={problem} />}
      <div class="actions">
        <button type="button" class="button button-main" disabled={isBusy} onClick={() => run(overwrite)}>
          Overwrite with yours
        </button>
        <button type="button" class="button" onClick={takeTheirs}>
          Start over from the current version
        </button>
      </div>
    </div>
  );
}

interface ComparedValueProps {
  readonly label: string;
  readonly field: ComparedField;
  readonly value: Value | undefined;
}

/** One of the compared values. */
function ComparedValue({ label, field: { name, kind }, value }: ComparedValueProps) {
  const text = typeof value === 'boolean' ? (value ? 'yes' : 'no') : valueLabel(name, value ?? '');
  const isSecret = kind === 'password' && value !== undefined;
  return (
    <div>
      <dt>{label}</dt>
      <dd>
        {text === '' || isSecret ? (
          <span class="faint">{isSecret ? 'hidden' : 'empty'}</span>
        ) : (
          <UntrustedText text={text} />
        )}
      </dd>
    </div>
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
  const changed = fields.filter(({ name }) => before[name] !== now[name]);
  if (changed.length === 0 && !isNewVersion) return null;
  return (
    <div class="stack" role="alert">
      <p>This record changed since it was displayed. It is not deleted yet.</p>
      {changed.length === 0 && (
        <p>
          The change is not in the fields shown here: it may concern a child record, a secret or the disabled
          state. Check its page before you continue.
        </p>
      )}
      {changed.map((field) => (
        <section key={field.name} class="comparison" aria-label={memberLabel(field.name)}>
          <h3>{memberLabel(field.name)}</h3>
          <dl class="facts">
            <ComparedValue label="Before" field={field} value={before[field.name]} />
            <ComparedValue label="Now" field={field} value={now[field.name]} />
          </dl>
        </section>
      ))}
    </div>
  );
}
