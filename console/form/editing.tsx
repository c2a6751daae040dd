import { useState } from 'preact/hooks';
import { useAsked } from '../api/answers.ts';
import { problemOf } from '../api/problem.ts';
import { type Key, readRecord, type Tagged, updateRecord } from '../api/records.ts';
import type { Description, Field } from '../description.ts';
import { announce } from '../parts/announcer.tsx';
import { Dialog } from '../parts/dialog.tsx';
import { Answered } from '../parts/notices.tsx';
import { nounOf } from '../parts/nouns.ts';
import { Comparison } from './comparison.tsx';
import { RecordForm, type RecordFormProps } from './record_form.tsx';
import { saidToUpdate, type Values, valuesOf } from './values.ts';

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
    announce(isEmpty ? 'Nothing was changed.' : 'Saved.');
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
    <Dialog title={conflict ? 'Somebody else was faster' : `Edit ${one}`} onClose={onClose}>
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
