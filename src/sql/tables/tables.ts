import { RESOURCES } from '../../model/resources.ts';
import {
  clientRealmTable,
  clientTable,
  clientUseTable,
  consoleLinkTable,
  consoleSessionTable,
  instanceSecretTable,
  instanceTable,
  keyringTable,
  leaseTable,
  migrationTable,
  revokedTokenTable,
  signingKeyTable,
} from './installation.ts';
import {
  actTable,
  erasureTable,
  idempotencyTable,
  logEntryTable,
  realmClockTable,
  signInBudgetTable,
  userSaltTable,
} from './realm_data.ts';
import { resourceTable } from './records.ts';
import type { Placement, Table } from './table.ts';
import { deadLetterTable, deliveryTable, progressTable, webhookTable } from './webhooks.ts';

/** All tables. Each follows those that it references. */
export const TABLES: readonly Table[] = [
  ...[instanceTable, keyringTable, signingKeyTable, clientTable, clientRealmTable, migrationTable],
  ...[instanceSecretTable, revokedTokenTable, webhookTable],
  ...[clientUseTable, consoleLinkTable, consoleSessionTable, progressTable, deliveryTable],
  ...[deadLetterTable, leaseTable],
  ...RESOURCES.map(resourceTable),
  ...[idempotencyTable, userSaltTable, erasureTable, signInBudgetTable],
  ...[realmClockTable, logEntryTable, actTable],
];

/** The tables whose rows are there on a cluster. */
export function tablesOn(placement: Placement): readonly Table[] {
  return TABLES.filter((table) => table.placement === placement);
}
