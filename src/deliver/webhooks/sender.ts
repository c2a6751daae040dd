import { Webhook as Signer } from 'standardwebhooks';
import type { Keyring } from '../../access/keys/keyring.ts';
import type { GuardedPost } from '../../access/outbound/guarded_post.ts';
import type { Clock, Uuid } from '../../model/id.ts';
import type { WebhookMessage } from './message.ts';
import { webhookSecretAt } from './secret.ts';
import type { Delivery, Webhook } from './webhook.ts';

export type MessageSender = ReturnType<typeof openSender>;

/** Signs and sends messages, and returns the delivery of each. Rejects only if the secret cannot be decrypted. */
export function openSender(
  keyring: Pick<Keyring, 'open'>,
  post: GuardedPost,
  clock: Pick<Clock, 'now' | 'monotonic' | 'mintId'>,
) {
  /** During a rotation the previous secret signs as well, so that the receiver may use either. */
  function secretsOf({ webhookId, secretSealed, previous }: Webhook, now: number): readonly string[] {
    const secret = keyring.open('webhook-secret', webhookSecretAt('secret_sealed', webhookId), secretSealed);
    if (!previous || previous.expiresAt <= now) return [secret];
    return [
      secret,
      keyring.open('webhook-secret', webhookSecretAt('previous_sealed', webhookId), previous.sealed),
    ];
  }

  return async (
    webhook: Webhook,
    { id, type, body, firstSeq, lastSeq }: WebhookMessage,
    {
      realm,
      attempt,
      signal,
    }: { readonly realm: Uuid; readonly attempt: number; readonly signal: AbortSignal },
  ): Promise<Delivery> => {
    const at = clock.now();
    const signatures = secretsOf(webhook, at).map((secret) =>
      new Signer(secret).sign(id, new Date(at), body),
    );
    const headers = {
      'Content-Type': type,
      'webhook-id': id,
      'webhook-timestamp': String(Math.floor(at / 1000)),
      'webhook-signature': signatures.join(' '),
    };
    const startedAt = clock.monotonic();
    const status = await post(webhook.url, { headers, body: Buffer.from(body) }, signal);
    const isSuccess = status !== undefined && status >= 200 && status < 300;
    return {
      deliveryId: clock.mintId(),
      webhookId: webhook.webhookId,
      messageId: id,
      realm,
      firstSeq,
      lastSeq,
      attempt,
      outcome: status === undefined ? 'unreachable' : isSuccess ? 'delivered' : 'refused',
      status,
      durationMs: Math.round(clock.monotonic() - startedAt),
      at,
    };
  };
}
