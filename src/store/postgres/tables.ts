import { RESOURCES } from '../../domain/resources.ts';

/** Tables of the installation as a whole, each behind those that it refers to. */
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

/** Tables of realm data, each behind those that it refers to: those of records, and what is kept beside them. */
export const REALM_TABLES: readonly string[] = [
  ...RESOURCES.map(({ table }) => table),
  'purge',
  'idempotency',
  'user_salt',
  'erasure',
  'realm_clock',
  'change',
];

/** What every key of realm data begins with. */
export const REALM_COLUMN = 'realm_id';
