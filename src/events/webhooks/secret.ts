import type { Keyring } from '../../auth/keys/keyring.ts';
import { type Clock, NIL_UUID } from '../../domain/id.ts';
import type { SecretLocation } from '../../store/auth/sealed_store.ts';

/** The prefix of a symmetric secret (Standard Webhooks, "Signature scheme"). */
const PREFIX = 'whsec_';
const BYTES = 32;

/** A new secret: 256 random bits. */
export function mintWebhookSecret({ randomBytes }: Pick<Clock, 'randomBytes'>): string {
  return PREFIX + Buffer.from(randomBytes(BYTES)).toString('base64');
}

type Column = 'secret_sealed' | 'previous_sealed';

function secretLocation(column: Column, webhookId: string): SecretLocation {
  return { table: 'webhook', column, realm: NIL_UUID, id: webhookId };
}

export function sealWebhookSecret(
  keyring: Pick<Keyring, 'seal'>,
  column: Column,
  webhookId: string,
  secret: string,
): Uint8Array {
  return keyring.seal('webhook-secret', secretLocation(column, webhookId), secret);
}

export function openWebhookSecret(
  keyring: Pick<Keyring, 'open'>,
  column: Column,
  webhookId: string,
  sealed: Uint8Array,
): string {
  return keyring.open('webhook-secret', secretLocation(column, webhookId), sealed);
}
