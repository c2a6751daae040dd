import type { ComponentChildren } from 'preact';
import { useMemo, useState } from 'preact/hooks';
import {
  type ApiRecord,
  createRecord,
  deleteRecord,
  type Key,
  RESOURCES,
  readRecord,
  updateRecord,
  type WithEtag,
} from '../api/records.ts';
import { useFetch } from '../api/use_fetch.ts';
import type { Description } from '../description.ts';
import { announce } from '../parts/announcer.tsx';
import { Dialog } from '../parts/dialog.tsx';
import { Loaded, ProblemNote } from '../parts/notices.tsx';
import { hasAllRealms, hasScope, type SessionState } from '../session/session.ts';
import { ChangedSinceShown, EditDialog } from './comparison.tsx';
import { fieldsOf, RecordForm, type RecordFormProps, valuesOf } from './record_form.tsx';
import { ActionDialog } from './use_action.tsx';

/** Whether this session can create and delete records. Realms need a session for all realms. */
export function canCreateOrDelete(state: SessionState, { scope, parent }: Description): boolean {
  return hasScope(state, `${scope}:write`) && (parent !== undefined || hasAllRealms(state));
}

interface CreateDialogProps extends Pick<RecordFormProps, 'options' | 'follow' | 'hintsFor'> {
  readonly description: Description;
  readonly parentKey: Key;
  readonly initial?: Partial<ApiRecord>;
  /** Text above the form. */
  readonly introduction?: ComponentChildren;
  readonly onDone: (created: WithEtag) => void;
  readonly onClose: () => void;
}

/** Creates a record; a repeated request creates it once. */
export function CreateDialog(props: CreateDialogProps) {
  const { description, parentKey, initial = {}, introduction, onDone, onClose, ...rest } = props;
  const keys = useMemo(() => new Map<string, string>(), []);
  const [one] = description.words;
  return (
    <Dialog title={`New ${one}`} onClose={onClose}>
      {introduction}
      <RecordForm
        {...rest}
        description={description}
        parentKey={parentKey}
        verb="create"
        initial={initial}
        submit="Create"
        onCancel={onClose}
        save={async (input) => {
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
export function idempotencyKeyFor(input: string, keys: Map<string, string>): string {
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

const CONFIGURATION = [RESOURCES.realms, RESOURCES.oidcProfiles, RESOURCES.passwordProfiles];

interface EditRecordDialogProps extends Pick<RecordFormProps, 'filled'> {
  readonly description: Description;
  readonly recordKey: Key;
  readonly onDone: (now: WithEtag) => void;
  readonly onClose: () => void;
}

/** Edits the current version of a record. Changes of other members meanwhile do not matter to users, links and names. */
export function EditRecordDialog({ description, recordKey, filled, onDone, onClose }: EditRecordDialogProps) {
  const fetched = useFetch((signal) => readRecord(description, recordKey, signal), []);
  const fields = fieldsOf(description, 'update');
  // Redirect URIs, and what identifies a provider, belong together. A password of somebody else cannot be seen.
  const isConfiguration = CONFIGURATION.includes(description);
  const send = async (input: Readonly<Record<string, unknown>>, etag: string | undefined) => {
    const isEmpty = Object.keys(input).length === 0;
    const now = isEmpty ? undefined : await updateRecord(description, recordKey, input, etag);
    announce(isEmpty ? 'No changes to save.' : 'Saved.');
    if (now) onDone(now);
    else onClose();
  };
  return (
    <EditDialog
      noun={description.words[0]}
      fields={fields}
      valuesOf={(record) => valuesOf(fields, record)}
      loaded={fetched.answer}
      read={() => readRecord(description, recordKey)}
      merges={({ name, kind }) => name === 'name' || (!isConfiguration && kind !== 'password')}
      pending={<Loaded fetched={fetched}>{() => null}</Loaded>}
      form={({ record, etag: version }, save) => (
        <RecordForm
          key={version}
          description={description}
          parentKey={recordKey.slice(0, -1)}
          verb="update"
          initial={record}
          filled={version === fetched.answer?.etag ? filled : undefined}
          submit="Save"
          onCancel={onClose}
          save={(input, mine) => save({ mine, send: (etag) => send(input, etag) })}
        />
      )}
      onClose={onClose}
    />
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
  const [one] = description.words;
  const now = fetched.answer;
  const fields = description.fields.filter(({ isShown }) => isShown);
  return (
    <ActionDialog
      title={`${verb} this ${one}?`}
      confirmation={confirmation}
      verb={verb}
      isReady={now !== undefined && !fetched.isWaiting}
      action={async () => now && deleteRecord(description, recordKey, now.etag)}
      message={`The ${one} was ${verb.toLowerCase()}d.`}
      onDone={onRemoved}
      onStale={fetched.reload}
      onClose={onClose}
    >
      {children(now?.record ?? shown)}
      {fetched.problem && <ProblemNote problem={fetched.problem} reload={fetched.reload} />}
      {now && (
        <ChangedSinceShown
          fields={fields}
          before={valuesOf(fields, shown)}
          now={valuesOf(fields, now.record)}
          isNewVersion={now.record.updated_at !== shown.updated_at}
        />
      )}
    </ActionDialog>
  );
}
