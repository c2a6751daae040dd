import type { ComponentChildren } from 'preact';
import { deleteWebhook, rotateWebhook, type TaggedWebhook, turnWebhook } from '../../api/webhooks.ts';
import { Told, useAct } from '../../form/acting.tsx';
import { RotationDialog } from '../../form/rotation.tsx';
import { go, href } from '../../layout/router.ts';
import { announce } from '../../parts/announcer.tsx';
import { Confirmation, confirmationWord, Dialog } from '../../parts/dialog.tsx';
import { Said } from '../../parts/said.tsx';
import { EditWebhook } from './edit_webhook.tsx';

export type WebhookAct = 'edit' | 'rotate' | 'disable' | 'enable' | 'delete';

export interface WebhookDialogProps {
  readonly tagged: TaggedWebhook;
  readonly onClose: () => void;
  readonly onChanged: () => void;
}

/** Does something with a target, after asking. */
export function WebhookDialog({ act, ...props }: WebhookDialogProps & { readonly act: WebhookAct }) {
  const { tagged, onChanged, onClose } = props;
  switch (act) {
    case 'edit':
      return <EditWebhook {...props} />;
    case 'rotate':
      return (
        <RotationDialog
          what="webhook"
          named={<Named tagged={tagged}>gets a new secret, which is shown once. Both sign meanwhile.</Named>}
          rotate={(seconds) => rotateWebhook(tagged.webhook.id, seconds)}
          onDone={onChanged}
          onClose={onClose}
        />
      );
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
}: WebhookDialogProps & { readonly act: 'disable' | 'enable' }) {
  const isOff = act === 'disable';
  const { isBusy, problem, run } = useAct(() => {
    announce(isOff ? 'The webhook is disabled.' : 'The webhook is told again.');
    onChanged();
    onClose();
  });
  return (
    <Dialog title={isOff ? 'Disable this webhook?' : 'Enable this webhook?'} onClose={onClose}>
      <div class="stack">
        <Named tagged={tagged}>
          {isOff
            ? 'is told nothing for now. What it misses is sent when it is enabled again, as long as the feed keeps it.'
            : 'is told again, from where it was.'}
        </Named>
        <Told problem={problem} />
        <div class="actions">
          <button
            type="button"
            class={isOff ? 'button button-danger' : 'button button-main'}
            disabled={isBusy}
            onClick={() => run(() => turnWebhook(tagged.webhook.id, act))}
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
  readonly tagged: TaggedWebhook;
  readonly children: ComponentChildren;
}) {
  return (
    <p>
      <strong>
        <Said text={tagged.webhook.name} />
      </strong>{' '}
      {children}
    </p>
  );
}

function Deletion({ tagged, onClose }: WebhookDialogProps) {
  const { webhook, etag } = tagged;
  const { isBusy, problem, run } = useAct(() => {
    announce('The webhook is deleted.');
    go(href('webhooks'));
  });
  return (
    <Confirmation
      title="Delete this webhook?"
      word={confirmationWord('delete', webhook.id)}
      verb="Delete"
      isBusy={isBusy}
      onConfirm={() => run(() => deleteWebhook(webhook.id, etag))}
      onClose={onClose}
    >
      <Named tagged={tagged}>
        goes for good, with its deliveries and dead letters. What it was not told yet it never is.
      </Named>
      <Told problem={problem} />
    </Confirmation>
  );
}
