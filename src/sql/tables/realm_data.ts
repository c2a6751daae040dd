import { NIL_UUID } from '../../model/id.ts';
import { COUNT_COLUMNS } from './record_counts.ts';
import { table } from './table.ts';

/** The tables about the data of realms, with the logs. The key of each begins with the realm. */

/**
 * Outcomes of requests with an idempotency key: the IDs of the records that each created, or the code of its refusal. `ordinal` counts
 * what a client stored in a realm, so that its oldest is found.
 */
export const idempotencyTable = table({
  name: 'idempotency',
  placement: 'by realm',
  columns: {
    realm_id: 'id',
    client_id: 'text',
    key: 'text',
    ordinal: 'long',
    body: 'text',
    created: 'list',
    fault: 'text?',
    at: 'instant',
    expires_at: 'instant',
  },
  key: ['realm_id', 'client_id', 'key'],
  hasRowId: true,
  indexes: { idempotency_ordinal: '(realm_id, client_id, ordinal)', idempotency_expiry: '(expires_at)' },
});

/** The key of a user's personal values in the log is made of its salt, which an erasure deletes. */
export const userSaltTable = table({
  name: 'user_salt',
  placement: 'by realm',
  columns: { realm_id: 'realm', user_id: 'id_bytes', salt: 'bytes' },
  key: ['realm_id', 'user_id'],
});

/** Erased users. `told_at`: when the erasure was reported. */
export const erasureTable = table({
  name: 'erasure',
  placement: 'by realm',
  columns: { realm_id: 'id', user_id: 'id', at: 'instant', told_at: 'instant?' },
  key: ['realm_id', 'user_id'],
  indexes: { erasure_untold: '(realm_id, user_id) where told_at is null' },
});

/**
 * Token buckets that limit wrong passwords: when each is full again. `name` is a keyed digest of profile and username, `source` one of
 * a network or a device; either may be empty. A full bucket has no row.
 */
export const signInBudgetTable = table({
  name: 'sign_in_budget',
  placement: 'by realm',
  columns: { realm_id: 'id', name: 'text', kind: 'code', source: 'text', full_at: 'instant' },
  key: ['realm_id', 'name', 'kind', 'source'],
  indexes: { sign_in_budget_full: '(full_at)' },
});

/**
 * The clock of each realm, without a foreign key, because it outlives the realm. A transaction claims it before it ends, so that the
 * order of `seq` is that of commits. The nil UUID has the log of the installation. On SQLite it also has the number of its realm, which no
 * other realm ever gets, because no clock is deleted.
 */
export const realmClockTable = table({
  name: 'realm_clock',
  placement: 'by realm',
  columns: {
    realm_id: 'id',
    seq: 'long',
    // The end of the chain of its log, and its number of entries.
    tag: 'bytes?',
    entries: 'long?',
    // Where the chain begins, which moves when entries become too old.
    anchor_seq: 'long?',
    anchor_tag: 'bytes?',
    anchor_entries: 'long?',
    anchor_mac: 'bytes?',
    // Its place in the order in which clocks moved: it finds those that moved lately.
    moved: 'local',
    // The total of each list directly below the realm. The type of a row lacks them, because resources name them.
    ...(Object.fromEntries(COUNT_COLUMNS.map((name) => [name, 'count'])) as Record<string, 'count'>),
  },
  key: ['realm_id'],
  hasRowId: true,
  indexes: { realm_clock_moved: '(moved, realm_id)' },
  sqlite: { columns: { number: 'integer not null' }, key: ['number'] },
});

/**
 * The log of each realm. Revisions are bytes, and events numbers (src/model/log/event.ts); `record_id` is absent where it is that of the
 * user, or else of the realm. Consecutive entries of one commit about one user, or none, with the same origin are a run: the last of
 * them has user, time, actor, request ID and address of all. `detail` and `personal` have the values before and after
 * (src/log/packed_detail.ts), the latter encrypted under the key of the user. The tag is an HMAC over the tag before it and the
 * entry that these columns describe, by value; `detail` and `personal` count as they are stored.
 */
export const logEntryTable = table({
  name: 'log_entry',
  placement: 'by realm',
  columns: {
    realm_id: 'realm',
    seq: 'long',
    event: 'code',
    record_id: 'id_bytes?',
    revision: 'bytes',
    members: 'text?',
    user_id: 'id_bytes?',
    at: 'instant?',
    actor: 'text?',
    request_id: 'text?',
    address: 'text?',
    detail: 'bytes?',
    personal: 'bytes?',
    tag: 'bytes?',
  },
  key: ['realm_id', 'seq'],
  indexes: { log_entry_of_user: '(realm_id, user_id, seq) where user_id is not null' },
});

/** The log of the installation. PostgreSQL distributes it by the nil UUID, and SQLite has that column for the same statements. */
export const actTable = table({
  name: 'act',
  placement: 'by realm',
  columns: {
    seq: 'long',
    id: 'id?',
    action: 'text',
    actor: 'text',
    object: 'text?',
    realm_id: 'id?',
    user_id: 'id?',
    address: 'text?',
    request_id: 'text?',
    detail: 'text',
    at: 'instant',
    // Over these columns and the tag before.
    tag: 'mac',
  },
  key: ['seq'],
  hasRowId: true,
  indexes: { act_of_user: '(realm_id, user_id, seq) where user_id is not null' },
  sqlite: {
    columns: { log_id: `text generated always as ('${NIL_UUID}') virtual` },
    indexes: { act_id: 'unique (id)' },
  },
  postgres: {
    columns: { log_id: `uuid not null default '${NIL_UUID}'` },
    key: ['log_id', 'seq'],
    indexes: { act_id: 'unique (log_id, id)' },
  },
});
