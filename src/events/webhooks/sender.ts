import { createHmac } from 'node:crypto';
import type { Keyring } from '../../auth/keys/keyring.ts';
import type { Clock, Uuid } from '../../domain/id.ts';
import type { GuardedPost, PostResult } from '../../outbound/guarded_post.ts';
import type { WebhookMessage } from './message.ts';
import type { Delivery, Webhook } from './port.ts';
import { openWebhookSecret, signingKey } from './secret.ts';

/** Signs and sends a message, and returns its delivery. Rejects only if the secret cannot be decrypted. */
export type MessageSender = (
  webhook: Webhook,
  message: WebhookMessage,
  of: { readonly realm: Uuid; readonly attempt: number; readonly signal: AbortSignal },
) => Promise<Delivery>;

interface SenderDeps {
  readonly keyring: Pick<Keyring, 'open'>;
  readonly post: GuardedPost;
  readonly clock: Pick<Clock, 'now' | 'monotonic' | 'mintId'>;
}

export function openSender({ keyring, post, clock }: SenderDeps): MessageSender {
  function keysOf({ webhookId, secretSealed, previous }: Webhook, now: number): readonly Uint8Array[] {
    const secret = openWebhookSecret(keyring, 'secret_sealed', webhookId, secretSealed);
    if (!previous || previous.expiresAt <= now) return [signingKey(secret)];
    const previousSecret = openWebhookSecret(keyring, 'previous_sealed', webhookId, previous.sealed);
    return [signingKey(secret), signingKey(previousSecret)];
  }

  return async (webhook, { id, type, body, firstSeq, lastSeq }, { realm, attempt, signal }) => {
    const at = clock.now();
    const timestamp = Math.floor(at / 1000);
    const headers = {
      'Content-Type': type,
      'webhook-id': id,
      'webhook-timestamp': String(timestamp),
      'webhook-signature': signaturesOf(keysOf(webhook, at), { id, timestamp, body }),
    };
    const startedAt = clock.monotonic();
    const posted = await post(webhook.url, { headers, body }, signal);
    return {
      deliveryId: clock.mintId(),
      webhookId: webhook.webhookId,
      messageId: id,
      realm,
      firstSeq,
      lastSeq,
      attempt,
      ...resultOf(posted),
      durationMs: Math.round(clock.monotonic() - startedAt),
      at,
    };
  };
}

function resultOf(posted: PostResult): Pick<Delivery, 'outcome' | 'status'> {
  if (posted.kind === 'unreachable') return { outcome: 'unreachable', status: undefined };
  return { outcome: posted.isSuccess ? 'delivered' : 'refused', status: posted.status };
}

/**
 * The `webhook-signature` header (Standard Webhooks, "Signature scheme"): one signature for each key, so that the receiver
 * may use either key during a rotation.
 */
export function signaturesOf(
  keys: readonly Uint8Array[],
  { id, timestamp, body }: { readonly id: string; readonly timestamp: number; readonly body: Uint8Array },
): string {
  return keys
    .map(
      (key) => `v1,${createHmac('sha256', key).update(`${id}.${timestamp}.`).update(body).digest('base64')}`,
    )
    .join(' ');
}
