import { useState } from 'preact/hooks';
import { type Key, removeRecord, type Tagged } from '../../api/records.ts';
import type { Description } from '../../description.ts';
import { Told, useAct } from '../../form/acting.tsx';
import { EditDialog } from '../../form/editing.tsx';
import { go } from '../../layout/router.ts';
import { useObserved } from '../../observable.ts';
import { announce } from '../../parts/announcer.tsx';
import { Confirmation, confirmationWord } from '../../parts/dialog.tsx';
import { Icon } from '../../parts/icon.tsx';
import { nounOf } from '../../parts/nouns.ts';
import { Said } from '../../parts/said.tsx';
import { may, session } from '../../session/session.ts';

interface RecordActionsProps {
  readonly description: Description;
  readonly recordKey: Key;
  readonly tagged: Tagged;
  /** What goes along with the record, in words. */
  readonly consequence: string;
  /** Where to go when it is gone. */
  readonly after: string;
  readonly onChanged: () => void;
}

/** Edits or deletes a realm or a profile, for who may write. */
export function RecordActions(props: RecordActionsProps) {
  const { description, recordKey, tagged, onChanged } = props;
  const [act, setAct] = useState<'edit' | 'delete'>();
  const state = useObserved(session);
  if (!may(state, `${description.scope}:write`)) return null;
  const close = () => setAct(undefined);
  const isKept = description.keptBy !== undefined && tagged.record[description.keptBy] === true;
  return (
    <>
      <button type="button" class="button" onClick={() => setAct('edit')}>
        <Icon name="edit" /> Edit
      </button>
      {!isKept && (
        <button type="button" class="button" onClick={() => setAct('delete')}>
          <Icon name="remove" /> Delete
        </button>
      )}
      {act === 'edit' && (
        <EditDialog
          description={description}
          recordKey={recordKey}
          onDone={() => {
            onChanged();
            close();
          }}
          onClose={close}
        />
      )}
      {act === 'delete' && <Deletion {...props} onClose={close} />}
    </>
  );
}

function Deletion(props: RecordActionsProps & { readonly onClose: () => void }) {
  const { description, recordKey, tagged, consequence, after, onClose } = props;
  const { one } = nounOf(description.name);
  const { run, isBusy, problem } = useAct(() => {
    announce(`The ${one} is deleted.`);
    go(after);
  });
  return (
    <Confirmation
      title={`Delete this ${one}?`}
      word={confirmationWord('delete', tagged.record.id)}
      verb="Delete"
      isBusy={isBusy}
      onConfirm={() => run(() => removeRecord(description, recordKey, tagged.etag))}
      onClose={onClose}
    >
      <p>
        <strong>
          <Said text={String(tagged.record.name)} />
        </strong>{' '}
        goes for good. {consequence}
      </p>
      <Told problem={problem} />
    </Confirmation>
  );
}
