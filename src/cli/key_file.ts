import type { OpenDatabase } from '../app/open_database.ts';
import { printLine } from '../ops/process/standard_streams.ts';

/** What to do with a new master key, and why: docs/guides/keys.md#when-the-master-key-is-lost. */
export const KEY_ADVICE =
  'back it up separately from the database. Without it, clients, webhooks, signing keys, secrets of providers and the audit log ' +
  'are lost, and passwords must be set or imported again; other records remain';

export function printNewKeyFile({ createdKeyFile }: OpenDatabase): void {
  if (createdKeyFile !== undefined) printLine(`created the master key ${createdKeyFile}: ${KEY_ADVICE}`);
}
