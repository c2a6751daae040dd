import type { IdempotencyRecord, IdempotencyRecordKey } from '../../directory/store.ts';
import type { FaultCode } from '../../domain/fault.ts';
import type { Uuid } from '../../domain/id.ts';
import { LIMITS } from '../../domain/limits.ts';
import type { Dialect } from '../dialect.ts';
import {
  all,
  execute,
  executeAll,
  first,
  firstUnexpected,
  type Long,
  type Work,
} from '../transaction_work.ts';

export type IdempotencyStore = ReturnType<typeof openIdempotencyStore>;

const SELECT_RECORD = `select body, created, fault, at, expires_at from idempotency
  where realm_id = ? and client_id = ? and key = ? and expires_at > ?`;
const CLEAR = 'delete from idempotency where realm_id = ? and client_id = ? and key = ?';
const INSERT = `insert into idempotency
  (realm_id, client_id, key, ordinal, body, created, fault, at, expires_at) values (?, ?, ?, ?, ?, ?, ?, ?, ?)`;
/** Ordinals increase as long as a client has a record in the realm. */
const LAST_ORDINAL =
  'select ordinal from idempotency where realm_id = ? and client_id = ? order by ordinal desc limit 1';
const EXPIRED = `select realm_id, client_id, key from idempotency where expires_at <= ?
  order by expires_at, realm_id, client_id, key limit ?`;

/** Not the record of a request that has used the key again since. */
const CLEAR_EXPIRED = `${CLEAR} and expires_at <= ?`;

/** It skips rows that other writers have locked. Parameters: realm, client, the highest ordinal to delete. */
const deleteOldestText = ({ rowLocks }: Pick<Dialect, 'rowLocks'>) =>
  `delete from idempotency where realm_id = ?1 and (client_id, key) in
  (select client_id, key from idempotency where realm_id = ?1 and client_id = ?2 and ordinal <= ?3${rowLocks.skipLocked})`;

/** Stores the outcomes of requests with an `Idempotency-Key`. */
export function openIdempotencyStore(dialect: Pick<Dialect, 'rowLocks'>) {
  const deleteOldest = deleteOldestText(dialect);
  return {
    /** The record of a request, unless it has expired at `now`. */
    *load(key: IdempotencyRecordKey, now: number): Work<IdempotencyRecord | undefined> {
      const row = yield* first<IdempotencyRow>(SELECT_RECORD, key.realm, key.clientId, key.key, now);
      return row && recordOf(key, row);
    },
    /**
     * Stores a record; returns false if `load` would return one. Also deletes the oldest of a client that has too many in
     * the realm.
     */
    *save({ realm, clientId, key, body, created, fault, at, expiresAt }: IdempotencyRecord): Work<boolean> {
      if (yield* firstUnexpected(SELECT_RECORD, realm, clientId, key, at)) return false;
      const last = yield* first<{ readonly ordinal: Long }>(LAST_ORDINAL, realm, clientId);
      const ordinal = Number(last?.ordinal ?? 0) + 1;
      const values = [body, created.join(), fault ?? null, at, expiresAt];
      yield* executeAll([
        { text: CLEAR, values: [realm, clientId, key] },
        { text: INSERT, values: [realm, clientId, key, ordinal, ...values] },
      ]);
      const lowest = ordinal - LIMITS.idempotencyKeysPerClientMax;
      if (lowest > 0) yield* execute(deleteOldest, realm, clientId, lowest);
      return true;
    },
    /** Deletes at most `limit` records that have expired at `now`. Returns how many. */
    *deleteExpired(now: number, limit: number): Work<number> {
      const rows = yield* all<Record<'realm_id' | 'client_id' | 'key', string>>(EXPIRED, now, limit);
      yield* executeAll(
        rows.map((row) => ({ text: CLEAR_EXPIRED, values: [row.realm_id, row.client_id, row.key, now] })),
      );
      return rows.length;
    },
  };
}

/** Every statement about idempotency records. */
export function idempotencyTexts(dialect: Pick<Dialect, 'rowLocks'>): readonly string[] {
  return [SELECT_RECORD, CLEAR, CLEAR_EXPIRED, INSERT, LAST_ORDINAL, EXPIRED, deleteOldestText(dialect)];
}

interface IdempotencyRow {
  readonly body: string;
  /** Joined by commas. */
  readonly created: string;
  readonly fault: FaultCode | null;
  readonly at: Long;
  readonly expires_at: Long;
}

function recordOf({ realm, clientId, key }: IdempotencyRecordKey, row: IdempotencyRow): IdempotencyRecord {
  const { body, created, fault, at, expires_at } = row;
  return {
    realm,
    clientId,
    key,
    body,
    created: created.split(',').filter(Boolean) as Uuid[],
    fault: fault ?? undefined,
    at: Number(at),
    expiresAt: Number(expires_at),
  };
}
