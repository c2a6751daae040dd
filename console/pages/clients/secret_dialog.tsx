import type { IssuedClient } from '../../api/clients.ts';
import { Copy } from '../../parts/copy.tsx';
import { Dialog } from '../../parts/dialog.tsx';
import { Fact } from '../../parts/facts.tsx';
import { Icon } from '../../parts/icon.tsx';
import { Instant } from '../../parts/instant.tsx';
import { Said } from '../../parts/said.tsx';

interface SecretDialogProps {
  readonly issued: IssuedClient;
  readonly onClose: () => void;
}

/** A secret, the one time that it is known. It lies in nothing that outlives the dialog. */
export function SecretDialog({ issued, onClose }: SecretDialogProps) {
  const { id, name, client_secret: secret, previous_secret_expires_at: previous } = issued;
  return (
    <Dialog title="The secret of this client" onClose={onClose}>
      <div class="stack">
        <p class="note note-warn">
          <Icon name="warning" />
          <span>Copy it now: it is shown here and never again. Whoever lost it rotates the secret.</span>
        </p>
        <dl class="facts">
          <Fact label="Client">
            <Said text={name} />
          </Fact>
          <Fact label="Client ID">
            <span class="command">
              <code>{id}</code>
              <Copy text={id} what="the client ID" />
            </span>
          </Fact>
          <Fact label="Secret">
            <span class="command">
              <code>{secret}</code>
              <Copy text={secret} what="the secret" />
            </span>
          </Fact>
          {previous !== null && (
            <Fact label="Old secret">
              accepted until <Instant at={previous} />
            </Fact>
          )}
        </dl>
        <div class="actions">
          <button type="button" class="button button-main" onClick={onClose}>
            I have it
          </button>
        </div>
      </div>
    </Dialog>
  );
}
