import type { Resource } from '../../domain/resource.ts';
import { keyColumns } from '../../domain/resource.ts';
import { RESOURCES } from '../../domain/resources.ts';
import { COUNT_COLUMNS } from '../audit/record_counts.ts';
import { postgresStatements } from '../postgres/dialect.ts';

/** A table with the columns that all engines have. The target fills columns of its own engine. */
export interface CopiedTable {
  readonly name: string;
  /** The columns of the primary key: rows are read in their order. */
  readonly key: readonly string[];
  /** The columns that are copied, including the key. */
  readonly columns: readonly string[];
  /** The columns with IDs that SQLite stores as bytes. */
  readonly idColumns: readonly string[];
  /** The description of its rows, where there is one. */
  readonly resource?: Resource;
}

/** Each follows those that it references. Migrations and leases belong to a database, and are not copied. */
export const COPIED_TABLES: readonly CopiedTable[] = [
  table('instance', ['singleton'], ['store_id', 'access_version']),
  table('keyring', ['key_id'], ['sealed', 'created_at']),
  table(
    'signing_key',
    ['kid'],
    ['public_jwk', 'private_sealed', 'created_at', 'signs_from', 'withdrawn_at', 'mac'],
  ),
  table(
    'client',
    ['client_id'],
    [
      ...['name', 'scopes', 'all_realms', 'disabled_at', 'secret_digest', 'previous_digest'],
      ...['previous_expires_at', 'created_at', 'updated_at', 'revision'],
      ...['implicit', 'end_user_address', 'mac'],
    ],
  ),
  table('client_realm', ['client_id', 'realm_id'], ['mac']),
  ...RESOURCES.map(tableOf),
  table(
    'idempotency',
    ['realm_id', 'client_id', 'key'],
    ['ordinal', 'body', 'created', 'fault', 'at', 'expires_at'],
  ),
  table('instance_secret', ['name'], ['sealed', 'created_at']),
  table('user_salt', ['realm_id', 'user_id'], ['salt'], ['realm_id', 'user_id']),
  table('erasure', ['realm_id', 'user_id'], ['at', 'told_at']),
  table('sign_in_budget', ['realm_id', 'name', 'kind', 'source'], ['full_at']),
  table('revoked_token', ['jti'], ['client_id', 'expires_at']),
  table('client_use', ['client_id'], ['at']),
  table('console_link', ['digest'], ['label', 'scopes', 'realms', 'expires_at', 'mac']),
  table(
    'console_session',
    ['session_id'],
    ['actor', 'scopes', 'realms', 'rules', 'begun_at', 'renewed_at', 'ends_at', 'mac'],
  ),
  table(
    'webhook',
    ['webhook_id'],
    [
      ...['name', 'url', 'events', 'realms', 'with_data', 'events_max', 'skipped_client'],
      ...['secret_sealed', 'previous_sealed', 'previous_expires_at', 'disabled_at'],
      ...['created_at', 'updated_at', 'revision', 'mac'],
    ],
  ),
  table(
    'webhook_progress',
    ['webhook_id', 'realm_id'],
    ['seq', 'attempts', 'next_at', 'failed_seq', 'behind_since'],
  ),
  table(
    'delivery',
    ['webhook_id', 'delivery_id'],
    [
      ...['message_id', 'realm_id', 'first_seq', 'last_seq', 'attempt', 'outcome', 'status'],
      ...['duration_ms', 'at'],
    ],
  ),
  table('dead_letter', ['webhook_id', 'realm_id', 'first_seq'], ['last_seq', 'attempts', 'at']),
  // The last log entry of each realm, and of the installation under the nil UUID.
  table(
    'realm_clock',
    ['realm_id'],
    [
      ...['seq', 'tag', 'entries', 'anchor_seq', 'anchor_tag', 'anchor_entries', 'anchor_mac'],
      ...COUNT_COLUMNS,
    ],
  ),
  table(
    'act',
    ['seq'],
    [
      ...['id', 'action', 'actor', 'object', 'realm_id', 'user_id', 'address', 'request_id'],
      ...['detail', 'at', 'tag'],
    ],
  ),
  table(
    'log_entry',
    ['realm_id', 'seq'],
    [
      ...['event', 'user_id', 'record_id', 'revision', 'members', 'at', 'actor', 'request_id'],
      ...['address', 'detail', 'personal', 'tag'],
    ],
    ['realm_id', 'user_id', 'record_id'],
  ),
];

function table(
  name: string,
  key: readonly string[],
  others: readonly string[],
  idColumns: readonly string[] = [],
): CopiedTable {
  return { name, key, columns: [...key, ...others], idColumns };
}

function tableOf(resource: Resource): CopiedTable {
  const [realm = '', ...below] = keyColumns(resource);
  return {
    name: resource.table,
    key: [realm, ...below.slice(-1)],
    // PostgreSQL has no columns beyond the description.
    columns: postgresStatements(resource).columns,
    idColumns: [],
    resource,
  };
}
