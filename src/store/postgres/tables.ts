import { RESOURCES } from '../../domain/resources.ts';

/** Tables of the installation as a whole, each behind those that it refers to. */
export const INSTANCE_TABLES: readonly string[] = [
  'instance',
  'keyring',
  'signing_key',
  'client',
  'client_realm',
  'migration',
];

/** Tables of realm data, each behind those that it refers to: those of records, and what is kept beside them. */
export const REALM_TABLES: readonly string[] = [
  ...RESOURCES.map(({ table }) => table),
  'purge',
  'idempotency',
  'realm_clock',
  'change',
];

/** What every key of realm data begins with. */
export const REALM_COLUMN = 'realm_id';
