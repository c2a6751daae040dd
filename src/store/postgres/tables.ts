import { RESOURCES } from '../../domain/resources.ts';

/** Tables of the installation as a whole. Each follows those that it references. */
export const INSTANCE_TABLES: readonly string[] = [
  'instance',
  'keyring',
  'signing_key',
  'client',
  'client_realm',
  'migration',
  'act',
  'instance_secret',
  'revoked_token',
  'client_use',
  'console_link',
  'webhook',
  'webhook_realm',
  'webhook_progress',
  'delivery',
  'dead_letter',
  'lease',
];

/** Tables of realm data: records, then the tables about them. Each follows those that it references. */
export const REALM_TABLES: readonly string[] = [
  ...RESOURCES.map(({ table }) => table),
  'purge',
  'idempotency',
  'user_salt',
  'erasure',
  'realm_clock',
  'change',
];

/** The first column of every key of realm data. */
export const REALM_COLUMN = 'realm_id';
