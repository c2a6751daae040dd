import { createHmac } from 'node:crypto';

/**
 * The `webhook-signature` header (Standard Webhooks, "Signature scheme"): one signature for each key, so that the receiver
 * may know either of them while its secret is being changed.
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
