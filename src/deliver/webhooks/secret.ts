import type { SecretLocation } from '../../access/store/sealed.ts';
import { type Clock, NIL_UUID } from '../../model/id.ts';

/** The prefix of a symmetric secret (Standard Webhooks, "Signature scheme"). */
const PREFIX = 'whsec_';
const BYTES = 32;

export function mintWebhookSecret({ randomBytes }: Pick<Clock, 'randomBytes'>): string {
  return PREFIX + Buffer.from(randomBytes(BYTES)).toString('base64');
}

/** Where the keyring seals a secret of a target. */
export function webhookSecretAt(
  column: 'secret_sealed' | 'previous_sealed',
  webhookId: string,
): SecretLocation {
  return { table: 'webhook', column, realm: NIL_UUID, id: webhookId };
}
