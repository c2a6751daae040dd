import type { ComponentChildren } from 'preact';
import { useMemo, useState } from 'preact/hooks';
import { problemOf } from '../api/problem.ts';
import {
  createRecord,
  type Key,
  readRecord,
  removeRecord,
  type Shown,
  type Tagged,
  updateRecord,
} from '../api/records.ts';
import { useAsked } from '../api/use_fetch.ts';
import type { Description, Field } from '../description.ts';
import { announce } from '../parts/announcer.tsx';
import { Confirmation, Dialog } from '../parts/dialog.tsx';
import { Answered, ProblemNote } from '../parts/notices.tsx';
import { nounOf } from '../parts/resource_labels.ts';
import { may, type SessionState } from '../session/session.ts';
import { Comparison, Meanwhile } from './comparison.tsx';
import {
  RecordForm,
  type RecordFormProps,
  saidToCreate,
  saidToUpdate,
  type Values,
  valuesOf,
} from './record_form.tsx';
import { Told, useAct } from './use_action.tsx';

/** Whether this session may make and remove such records: what hangs under nothing, only one that may touch every realm. */
export function mayMakeOrRemove(state: SessionState, { scope, parent }: Description): boolean {
  return may(state, `${scope}:write`) && (parent !== undefined || state.open?.realms === '*');
}

interface CreateDialogProps extends Pick<RecordFormProps, 'options' | 'follow'> {
  readonly description: Description;
  readonly above: Key;
  readonly begin?: Partial<Shown>;
  readonly onDone: (made: Tagged) => void;
  readonly onClose: () => void;
}

/** Makes a record. Sent twice, it is made once. */
export function CreateDialog(props: CreateDialogProps) {
  const { description, above, begin = {}, onDone, onClose, ...rest } = props;
  const words = useMemo(() => new Map<string, string>(), []);
  const { one } = nounOf(description.name);
  return (
    <Dialog title={`New ${one}`} onClose={onClose}>
      <RecordForm
        {...rest}
        description={description}
        verb="create"
        begin={begin}
        submit="Create"
        onCancel={onClose}
        save={async (fields, values) => {
          const said = saidToCreate(fields, values);
          const made = await createRecord(description, above, said, wordFor(JSON.stringify(said), words));
          announce(`The ${one} was created.`);
          onDone(made);
        }}
      />
    </Dialog>
  );
}

/** One word for one body: what was mended is another attempt, and no repetition of the one before. */
function wordFor(said: string, words: Map<string, string>): string {
  const word = words.get(said) ?? onceWord();
  words.set(said, word);
  return word;
}

const WORD_BYTES = 16;

function onceWord(): string {
  return [...crypto.getRandomValues(new Uint8Array(WORD_BYTES))]
    .map((byte) => byte.toString(16).padStart(2, '0'))
    .join('');
}

interface EditDialogProps extends Pick<RecordFormProps, 'options' | 'follow'> {
  readonly description: Description;
  readonly recordKey: Key;
  readonly onDone: (now: Tagged) => void;
  readonly onClose: () => void;
}

/** What somebody else has saved since the form began, beside what is to be saved. */
interface Conflict {
  readonly fields: readonly Field[];
  readonly before: Values;
  readonly mine: Values;
  readonly theirs: Tagged;
}

/** Changes a record as it is read now. Where another one was faster, both are shown before anything is saved. */
export function EditDialog(props: EditDialogProps) {
  const { description, recordKey, onDone, onClose, ...rest } = props;
  const asked = useAsked((signal) => readRecord(description, recordKey, signal), []);
  const [begun, setBegun] = useState<Tagged>();
  const [conflict, setConflict] = useState<Conflict>();
  const { one } = nounOf(description.name);
  const send = async (said: object, etag: string | undefined) => {
    const isEmpty = Object.keys(said).length === 0;
    const now = isEmpty ? undefined : await updateRecord(description, recordKey, { ...said }, etag);
    announce(isEmpty ? 'No changes to save.' : 'Saved.');
    if (now) onDone(now);
    else onClose();
  };
  const saveFrom = (from: Tagged) => async (fields: readonly Field[], mine: Values, before: Values) => {
    try {
      await send(saidToUpdate(fields, mine, before), from.etag);
    } catch (error) {
      if (problemOf(error).kind !== 'stale') throw error;
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
            send(saidToUpdate(conflict.fields, conflict.mine, conflict.before), conflict.theirs.etag)
          }
          onStale={async () => setConflict({ ...conflict, theirs: await readRecord(description, recordKey) })}
          takeTheirs={() => {
            setBegun(conflict.theirs);
            setConflict(undefined);
          }}
        />
      ) : (
        <Answered asked={asked}>
          {(read) => {
            const from = begun ?? read;
            return (
              <RecordForm
                key={from.etag}
                {...rest}
                description={description}
                verb="update"
                begin={from.record}
                submit="Save"
                onCancel={onClose}
                save={saveFrom(from)}
              />
            );
          }}
        </Answered>
      )}
    </Dialog>
  );
}

interface RemovalProps {
  readonly description: Description;
  readonly recordKey: Key;
  /** As the page shows it. */
  readonly shown: Shown;
  readonly verb: 'Remove' | 'Delete';
  /** What has to be typed. */
  readonly word?: string;
  /** What goes, in words. */
  readonly children: (now: Shown) => ComponentChildren;
  readonly onRemoved: () => void;
  readonly onClose: () => void;
}

/** Removes a record as it is read now, after asking. What somebody else has changed is shown before anything is removed. */
export function Removal(props: RemovalProps) {
  const { description, recordKey, verb, word, children, onRemoved, onClose } = props;
  const [shown] = useState(props.shown);
  const asked = useAsked((signal) => readRecord(description, recordKey, signal), []);
  const { one } = nounOf(description.name);
  const { run, isBusy, problem } = useAct(() => {
    announce(`The ${one} was ${verb.toLowerCase()}d.`);
    onRemoved();
  }, asked.again);
  const now = asked.answer;
  const fields = description.fields.filter(({ isShown }) => isShown);
  return (
    <Confirmation
      title={`${verb} this ${one}?`}
      word={word}
      verb={verb}
      isBusy={isBusy || asked.isWaiting || !now}
      onConfirm={() => now && run(() => removeRecord(description, recordKey, now.etag))}
      onClose={onClose}
    >
      {children(now?.record ?? shown)}
      {asked.problem ? (
        <ProblemNote problem={asked.problem} again={asked.again} />
      ) : (
        <Told problem={problem} />
      )}
      {now && (
        <Meanwhile
          fields={fields}
          before={valuesOf(fields, shown)}
          now={valuesOf(fields, now.record)}
          isOther={now.record.updated_at !== shown.updated_at}
        />
      )}
    </Confirmation>
  );
}
