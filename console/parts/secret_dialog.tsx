import type { Issued } from '../api/administered.ts';
import { Copy } from './copy.tsx';
import { Dialog } from './dialog.tsx';
import { Fact } from './facts.tsx';
import { Icon } from './icon.tsx';
import { Instant } from './instant.tsx';
import { Said } from './said.tsx';

interface SecretDialogProps {
  /** What that is: `client`. */
  readonly what: string;
  readonly issued: Issued;
  readonly onClose: () => void;
}

/** A secret, the one time that it is known. It lies in nothing that outlives the dialog. */
export function SecretDialog({ what, issued, onClose }: SecretDialogProps) {
  const { id, name, secret, previous_secret_expires_at: previous } = issued;
  return (
    <Dialog title={`The secret of this ${what}`} onClose={onClose}>
      <div class="stack">
        <p class="note note-warn">
          <Icon name="warning" />
          <span>Copy it now: it is shown here and never again. Whoever lost it rotates the secret.</span>
        </p>
        <dl class="facts">
          <Fact label="Name">
            <Said text={name} />
          </Fact>
          <Fact label="ID">
            <span class="command">
              <code>{id}</code>
              <Copy text={id} what={`the ${what} ID`} />
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
