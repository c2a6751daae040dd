import type { ComponentChildren } from 'preact';
import { deleteClient, rotateClient, type TaggedClient, turnClient } from '../../api/clients.ts';
import { Told, useAct } from '../../form/acting.tsx';
import { RotationDialog } from '../../form/rotation.tsx';
import { go, href } from '../../layout/router.ts';
import { announce } from '../../parts/announcer.tsx';
import { Confirmation, confirmationWord, Dialog } from '../../parts/dialog.tsx';
import { Said } from '../../parts/said.tsx';
import { EditClient } from './edit_client.tsx';

export type ClientAct = 'edit' | 'rotate' | 'disable' | 'enable' | 'delete';

export interface ClientDialogProps {
  readonly tagged: TaggedClient;
  readonly onClose: () => void;
  readonly onChanged: () => void;
}

/** Does something with a client, after asking. */
export function ClientDialog({ act, ...props }: ClientDialogProps & { readonly act: ClientAct }) {
  switch (act) {
    case 'edit':
      return <EditClient {...props} />;
    case 'rotate':
      return <Rotation {...props} />;
    case 'delete':
      return <Deletion {...props} />;
    default:
      return <Turning {...props} act={act} />;
  }
}

function Turning({
  act,
  tagged,
  onClose,
  onChanged,
}: ClientDialogProps & { readonly act: 'disable' | 'enable' }) {
  const { client } = tagged;
  const { isBusy, problem, run } = useAct(() => {
    announce(act === 'disable' ? 'The client is disabled.' : 'The client is accepted again.');
    onChanged();
    onClose();
  });
  const isOff = act === 'disable';
  return (
    <Dialog title={isOff ? 'Disable this client?' : 'Enable this client?'} onClose={onClose}>
      <div class="stack">
        <Named tagged={tagged}>
          {isOff
            ? 'is refused within a second, and so are its tokens. It can be enabled again.'
            : 'is accepted again, and so are its tokens that have not ended.'}
        </Named>
        <Told problem={problem} />
        <div class="actions">
          <button
            type="button"
            class={isOff ? 'button button-danger' : 'button button-main'}
            disabled={isBusy}
            onClick={() => run(() => turnClient(client.id, act))}
          >
            {isOff ? 'Disable' : 'Enable'}
          </button>
          <button type="button" class="button" onClick={onClose}>
            Cancel
          </button>
        </div>
      </div>
    </Dialog>
  );
}

function Named({
  tagged,
  children,
}: {
  readonly tagged: TaggedClient;
  readonly children: ComponentChildren;
}) {
  return (
    <p>
      <strong>
        <Said text={tagged.client.name} />
      </strong>{' '}
      {children}
    </p>
  );
}

function Deletion({ tagged, onClose }: ClientDialogProps) {
  const { client, etag } = tagged;
  const { isBusy, problem, run } = useAct(() => {
    announce('The client is deleted.');
    go(href('clients'));
  });
  return (
    <Confirmation
      title="Delete this client?"
      word={confirmationWord('delete', client.id)}
      verb="Delete"
      isBusy={isBusy}
      onConfirm={() => run(() => deleteClient(client.id, etag))}
      onClose={onClose}
    >
      <Named tagged={tagged}>
        goes for good, and its tokens are refused within a second. What it did stays in the log.
      </Named>
      <Told problem={problem} />
    </Confirmation>
  );
}

function Rotation({ tagged, onClose, onChanged }: ClientDialogProps) {
  return (
    <RotationDialog
      what="client"
      named={<Named tagged={tagged}>gets a new secret, which is shown once.</Named>}
      rotate={async (seconds) => {
        const issued = await rotateClient(tagged.client.id, seconds);
        return { ...issued, secret: issued.client_secret };
      }}
      onDone={onChanged}
      onClose={onClose}
    />
  );
}
