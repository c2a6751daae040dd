import { useState } from 'preact/hooks';
import type { Key, Tagged } from '../../api/records.ts';
import type { Description } from '../../description.ts';
import { EditDialog } from '../../form/editing.tsx';
import { Removal } from '../../form/removal.tsx';
import { mayMakeOrRemove } from '../../form/rights.ts';
import { go } from '../../layout/router.ts';
import { useObserved } from '../../observable.ts';
import { confirmationWord } from '../../parts/dialog.tsx';
import { Icon } from '../../parts/icon.tsx';
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
  const { description, recordKey, tagged, consequence, after, onChanged } = props;
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
      {!isKept && mayMakeOrRemove(state, description) && (
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
      {act === 'delete' && (
        <Removal
          description={description}
          recordKey={recordKey}
          shown={tagged.record}
          verb="Delete"
          word={confirmationWord('delete', tagged.record.id)}
          onRemoved={() => go(after)}
          onClose={close}
        >
          {({ name }) => (
            <p>
              <strong>
                <Said text={String(name)} />
              </strong>{' '}
              goes for good. {consequence}
            </p>
          )}
        </Removal>
      )}
    </>
  );
}
