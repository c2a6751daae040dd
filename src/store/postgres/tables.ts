import { RESOURCES } from '../../domain/resources.ts';

/** Tables of the installation that change rarely: every node of a cluster has a copy. */
export const REFERENCE_TABLES: readonly string[] = [
  'instance',
  'keyring',
  'signing_key',
  'client',
  'client_realm',
  'migration',
  'instance_secret',
  'revoked_token',
  'webhook',
];

/** Tables of the installation that change often: one node of a cluster has all of them. */
export const SINGLE_NODE_TABLES: readonly string[] = [
  'client_use',
  'console_link',
  'console_session',
  'webhook_progress',
  'delivery',
  'dead_letter',
  'lease',
];

/** Tables of the installation as a whole. Each follows those that it references. */
export const INSTANCE_TABLES: readonly string[] = [...REFERENCE_TABLES, ...SINGLE_NODE_TABLES];

/**
 * Tables of realm data: records, then the tables about them, with the logs of all realms and of the installation, whose realm
 * is the nil UUID. Each follows those that it references.
 */
export const REALM_TABLES: readonly string[] = [
  ...RESOURCES.map(({ table }) => table),
  'idempotency',
  'user_salt',
  'erasure',
  'sign_in_budget',
  'realm_clock',
  'log_entry',
  'act',
];

/**
 * The first column of every key of a table of realm data, by which it is distributed: all rows of a realm are on one node. An
 * audit entry may also name a realm, but is in the log of the installation.
 */
export function distributionColumn(table: string): 'realm_id' | 'log_id' {
  return table === 'act' ? 'log_id' : 'realm_id';
}
