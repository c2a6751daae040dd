import type { ComponentChildren } from 'preact';
import { useMemo, useState } from 'preact/hooks';
import { toProblem } from '../api/problem.ts';
import {
  type ApiRecord,
  createRecord,
  deleteRecord,
  type Key,
  readRecord,
  updateRecord,
  type WithEtag,
} from '../api/records.ts';
import { useFetch } from '../api/use_fetch.ts';
import type { Description, Field } from '../description.ts';
import { announce } from '../parts/announcer.tsx';
import { Confirmation, Dialog } from '../parts/dialog.tsx';
import { Loaded, ProblemNote } from '../parts/notices.tsx';
import { resourceLabel } from '../parts/resource_labels.ts';
import { hasScope, type SessionState } from '../session/session.ts';
import { ChangedSinceShown, Comparison } from './comparison.tsx';
import {
  inputToCreate,
  inputToUpdate,
  RecordForm,
  type RecordFormProps,
  type Values,
  valuesOf,
} from './record_form.tsx';
import { ActionError, useAction } from './use_action.tsx';

/** Whether this session can create and delete records. Realms need a session for all realms. */
export function canCreateOrDelete(state: SessionState, { scope, parent }: Description): boolean {
  return hasScope(state, `${scope}:write`) && (parent !== undefined || state.open?.realms === '*');
}

interface CreateDialogProps extends Pick<RecordFormProps, 'options' | 'follow'> {
  readonly description: Description;
  readonly parentKey: Key;
  readonly initial?: Partial<ApiRecord>;
  readonly onDone: (created: WithEtag) => void;
  readonly onClose: () => void;
}

/** Creates a record; a repeated request creates it once. */
export function CreateDialog(props: CreateDialogProps) {
  const { description, parentKey, initial = {}, onDone, onClose, ...rest } = props;
  const keys = useMemo(() => new Map<string, string>(), []);
  const { one } = resourceLabel(description.name);
  return (
    <Dialog title={`New ${one}`} onClose={onClose}>
      <RecordForm
        {...rest}
        description={description}
        verb="create"
        initial={initial}
        submit="Create"
        onCancel={onClose}
        save={async (fields, values) => {
          const input = inputToCreate(fields, values);
          const created = await createRecord(
            description,
            parentKey,
            input,
            idempotencyKeyFor(JSON.stringify(input), keys),
          );
          announce(`The ${one} was created.`);
          onDone(created);
        }}
      />
    </Dialog>
  );
}

/** One key per body: a corrected body is a new request. */
function idempotencyKeyFor(input: string, keys: Map<string, string>): string {
  const key = keys.get(input) ?? randomKey();
  keys.set(input, key);
  return key;
}

const RANDOM_BYTES = 16;

function randomKey(): string {
  return [...crypto.getRandomValues(new Uint8Array(RANDOM_BYTES))]
    .map((byte) => byte.toString(16).padStart(2, '0'))
    .join('');
}

interface EditDialogProps extends Pick<RecordFormProps, 'options' | 'follow'> {
  readonly description: Description;
  readonly recordKey: Key;
  readonly onDone: (now: WithEtag) => void;
  readonly onClose: () => void;
}

/** The own changes and the version saved by someone else. */
interface Conflict {
  readonly fields: readonly Field[];
  readonly before: Values;
  readonly mine: Values;
  readonly theirs: WithEtag;
}

/** Edits the current version of a record. A conflict is shown before anything is saved. */
export function EditDialog(props: EditDialogProps) {
  const { description, recordKey, onDone, onClose, ...rest } = props;
  const fetched = useFetch((signal) => readRecord(description, recordKey, signal), []);
  const [restarted, setBegun] = useState<WithEtag>();
  const [conflict, setConflict] = useState<Conflict>();
  const { one } = resourceLabel(description.name);
  const send = async (input: object, etag: string | undefined) => {
    const isEmpty = Object.keys(input).length === 0;
    const now = isEmpty ? undefined : await updateRecord(description, recordKey, { ...input }, etag);
    announce(isEmpty ? 'No changes to save.' : 'Saved.');
    if (now) onDone(now);
    else onClose();
  };
  const saveFrom = (from: WithEtag) => async (fields: readonly Field[], mine: Values, before: Values) => {
    try {
      await send(inputToUpdate(fields, mine, before), from.etag);
    } catch (error) {
      if (toProblem(error).kind !== 'stale') throw error;
      setConflict({ fields, before, mine, theirs: await readRecord(description, recordKey) });
    }
  };
  return (
    <Dialog title={conflict ? 'Edit conflict' : `Edit ${one}`} onClose={onClose}>
      {conflict ? (
        <Comparison
          {...conflict}
          theirs={valuesOf(conflict.fields, conflict.theirs.record)}
          overwrite={() =>
            send(inputToUpdate(conflict.fields, conflict.mine, conflict.before), conflict.theirs.etag)
          }
          onStale={async () => setConflict({ ...conflict, theirs: await readRecord(description, recordKey) })}
          takeTheirs={() => {
            setBegun(conflict.theirs);
            setConflict(undefined);
          }}
        />
      ) : (
        <Loaded fetched={fetched}>
          {(read) => {
            const from = restarted ?? read;
            return (
              <RecordForm
                key={from.etag}
                {...rest}
                description={description}
                verb="update"
                initial={from.record}
                submit="Save"
                onCancel={onClose}
                save={saveFrom(from)}
              />
            );
          }}
        </Loaded>
      )}
    </Dialog>
  );
}

interface DeleteDialogProps {
  readonly description: Description;
  readonly recordKey: Key;
  /** The version that the page displays. */
  readonly shown: ApiRecord;
  readonly verb: 'Remove' | 'Delete';
  /** The text to type as confirmation. */
  readonly confirmation?: string;
  /** Describes what is deleted. */
  readonly children: (now: ApiRecord) => ComponentChildren;
  readonly onRemoved: () => void;
  readonly onClose: () => void;
}

/**
 * Deletes the current version of a record after confirmation. Changes since it was displayed are shown
 * first.
 */
export function DeleteDialog(props: DeleteDialogProps) {
  const { description, recordKey, verb, confirmation, children, onRemoved, onClose } = props;
  const [shown] = useState(props.shown);
  const fetched = useFetch((signal) => readRecord(description, recordKey, signal), []);
  const { one } = resourceLabel(description.name);
  const { run, isBusy, problem } = useAction(() => {
    announce(`The ${one} was ${verb.toLowerCase()}d.`);
    onRemoved();
  }, fetched.reload);
  const now = fetched.answer;
  const fields = description.fields.filter(({ isShown }) => isShown);
  return (
    <Confirmation
      title={`${verb} this ${one}?`}
      confirmation={confirmation}
      verb={verb}
      isBusy={isBusy || fetched.isWaiting || !now}
      onConfirm={() => now && run(() => deleteRecord(description, recordKey, now.etag))}
      onClose={onClose}
    >
      {children(now?.record ?? shown)}
      {fetched.problem ? (
        <ProblemNote problem={fetched.problem} reload={fetched.reload} />
      ) : (
        <ActionError problem={problem} />
      )}
      {now && (
        <ChangedSinceShown
          fields={fields}
          before={valuesOf(fields, shown)}
          now={valuesOf(fields, now.record)}
          isNewVersion={now.record.updated_at !== shown.updated_at}
        />
      )}
    </Confirmation>
  );
}
