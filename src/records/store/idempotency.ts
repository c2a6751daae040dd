import { LIMITS } from '../../model/limits.ts';
import type { IdempotencyRecord, IdempotencyRecordKey } from '../../model/store.ts';
import type { Dialect } from '../../sql/dialect.ts';
import { idempotencyTable } from '../../sql/tables/realm_data.ts';
import {
  all,
  execute,
  executeAll,
  first,
  firstUnexpected,
  type Long,
  type Row,
  type Work,
} from '../../sql/transaction_work.ts';

export type IdempotencyStore = ReturnType<typeof openIdempotencyStore>;

const OF_KEY = 'where realm_id = ? and client_id = ? and key = ?';

/** Every statement about idempotency records. */
export const idempotencyTexts = ({ rowLocks }: Pick<Dialect, 'rowLocks'>) => ({
  find: `${idempotencyTable.select} ${OF_KEY} and expires_at > ?`,
  clear: `delete from idempotency ${OF_KEY}`,
  insert: idempotencyTable.insert,
  /** Ordinals increase as long as a client has a record in the realm. */
  lastOrdinal:
    'select ordinal from idempotency where realm_id = ? and client_id = ? order by ordinal desc limit 1',
  expired: `select realm_id, client_id, key from idempotency where expires_at <= ?
    order by expires_at, realm_id, client_id, key limit ?`,
  /** Not the record of a request that has used the key again since. */
  clearExpired: `delete from idempotency ${OF_KEY} and expires_at <= ?`,
  /** It skips rows that other writers have locked. Parameters: realm, client, the highest ordinal to delete. */
  deleteOldest: `delete from idempotency where realm_id = ?1 and (client_id, key) in
    (select client_id, key from idempotency where realm_id = ?1 and client_id = ?2 and ordinal <= ?3${rowLocks.skipLocked})`,
});

/** Stores the outcomes of requests with an `Idempotency-Key`. */
export function openIdempotencyStore(dialect: Pick<Dialect, 'rowLocks'>) {
  const sql = idempotencyTexts(dialect);
  return {
    /** The record of a request, unless it has expired at `now`. */
    *load(key: IdempotencyRecordKey, now: number): Work<IdempotencyRecord | undefined> {
      const row = yield* first(sql.find, key.realm, key.clientId, key.key, now);
      return row && readRecord(row);
    },
    /**
     * Stores a record; returns false if `load` would return one. Also deletes the oldest of a client that has too many in
     * the realm.
     */
    *save(record: IdempotencyRecord): Work<boolean> {
      const { realm, clientId, key, at } = record;
      if (yield* firstUnexpected(sql.find, realm, clientId, key, at)) return false;
      const last = yield* first<{ readonly ordinal: Long }>(sql.lastOrdinal, realm, clientId);
      const ordinal = Number(last?.ordinal ?? 0) + 1;
      yield* executeAll([
        { text: sql.clear, values: [realm, clientId, key] },
        { text: sql.insert, values: idempotencyTable.values({ ...record, ordinal }) },
      ]);
      const lowest = ordinal - LIMITS.idempotencyKeysPerClientMax;
      if (lowest > 0) yield* execute(sql.deleteOldest, realm, clientId, lowest);
      return true;
    },
    /** Deletes at most `limit` records that have expired at `now`. Returns how many. */
    *deleteExpired(now: number, limit: number): Work<number> {
      const rows = yield* all<Record<'realm_id' | 'client_id' | 'key', string>>(sql.expired, now, limit);
      yield* executeAll(
        rows.map((row) => ({ text: sql.clearExpired, values: [row.realm_id, row.client_id, row.key, now] })),
      );
      return rows.length;
    },
  };
}

function readRecord(row: Row): IdempotencyRecord {
  const { ordinal: _, ...record } = idempotencyTable.read(row);
  return record as IdempotencyRecord;
}
