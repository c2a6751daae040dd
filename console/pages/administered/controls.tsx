import { useState } from 'preact/hooks';
import type { Administered, Issued } from '../../api/administered.ts';
import { ADMIN } from '../../api/administration.ts';
import type { Tagged } from '../../api/records.ts';
import { useObserved } from '../../observable.ts';
import { Dialog } from '../../parts/dialog.tsx';
import { Icon } from '../../parts/icon.tsx';
import { SecretDialog } from '../../parts/secret_dialog.tsx';
import { may, session } from '../../session/session.ts';
import { ActDialog } from './act_dialog.tsx';
import { EditDialog } from './edit_dialog.tsx';
import type { Act, Kind } from './kind.ts';

interface NewButtonProps<Said, Created> {
  readonly kind: Kind<Said, Created>;
  readonly onMade: () => void;
}

/** Makes one, for who may, and shows its secret once. */
export function NewButton<Said, Created>({ kind, onMade }: NewButtonProps<Said, Created>) {
  const { what, collection, blank, Form } = kind;
  const state = useObserved(session);
  const [isMaking, setMaking] = useState(false);
  const [issued, setIssued] = useState<Issued>();
  if (!may(state, ADMIN)) return null;
  const create = async (said: Created) => {
    setIssued(await collection.create(said));
    setMaking(false);
    onMade();
  };
  return (
    <>
      <button type="button" class="button button-main" onClick={() => setMaking(true)}>
        <Icon name="add" /> New {what}
      </button>
      {isMaking && (
        <Dialog title={`New ${what}`} onClose={() => setMaking(false)}>
          <Form begin={blank} verb="create" save={create} onCancel={() => setMaking(false)} />
        </Dialog>
      )}
      {issued && <SecretDialog what={what} issued={issued} onClose={() => setIssued(undefined)} />}
    </>
  );
}

interface ActButtonsProps<Said, Created> {
  readonly kind: Kind<Said, Created>;
  readonly tagged: Tagged<Administered & Said>;
  readonly onChanged: () => void;
}

/** Everything that can be done with one, for who may. */
export function ActButtons<Said, Created extends Said>(props: ActButtonsProps<Said, Created>) {
  const state = useObserved(session);
  const [act, setAct] = useState<Act | 'edit'>();
  if (!may(state, ADMIN)) return null;
  const isOff = props.tagged.record.is_disabled;
  const close = () => setAct(undefined);
  return (
    <>
      <button type="button" class="button" onClick={() => setAct('edit')}>
        <Icon name="edit" /> Edit
      </button>
      <button type="button" class="button" onClick={() => setAct('rotate')}>
        <Icon name="history" /> New secret
      </button>
      <button type="button" class="button" onClick={() => setAct(isOff ? 'enable' : 'disable')}>
        <Icon name={isOff ? 'done' : 'close'} /> {isOff ? 'Enable' : 'Disable'}
      </button>
      <button type="button" class="button" onClick={() => setAct('delete')}>
        <Icon name="remove" /> Delete
      </button>
      {act === 'edit' && <EditDialog {...props} onClose={close} />}
      {act !== undefined && act !== 'edit' && <ActDialog {...props} act={act} onClose={close} />}
    </>
  );
}
