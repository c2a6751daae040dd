import type { IdempotencyRecord, IdempotencyRecordKey } from '../../directory/store.ts';
import { NIL_UUID, type Uuid } from '../../domain/id.ts';
import { LIMITS } from '../../domain/limits.ts';
import type { Key, Resource } from '../../domain/resource.ts';
import { realm, user } from '../../domain/resources.ts';
import type { Dialect } from '../dialect.ts';
import { unlessPurged } from '../records/purge_mark.ts';
import { execute, first, type Long, type Work } from '../transaction_work.ts';

/** Stores the answers to requests with an `Idempotency-Key`. */
export interface IdempotencyStore {
  /** The record of a request, unless it has expired at `now`, or its realm or user is being purged. */
  load(key: IdempotencyRecordKey, now: number): Work<IdempotencyRecord | undefined>;
  /**
   * Stores a record; returns false if `load` would return one. Also deletes some expired records, and the oldest of a
   * client that has too many.
   */
  save(record: IdempotencyRecord): Work<boolean>;
  /** Deletes at most `limit` records that have expired at `now`. Returns how many. */
  deleteExpired(now: number, limit: number): Work<number>;
  /**
   * Counts the records that are deleted with a user or a realm, up to `limit`: those about the user; those of the realm,
   * and the one of its creation. No other resource has any.
   */
  countOwned(resource: Resource, key: Key, limit: number): Work<number>;
  /** Deletes at most `limit` of them. Returns how many. */
  deleteOwned(resource: Resource, key: Key, limit: number): Work<number>;
}

/** Expired records that are deleted when one is stored: more than one, so that their number shrinks. */
const EXPIRED_PER_SAVE = 10;

const COLUMNS =
  'realm_id, client_id, key, ordinal, body, status, record_id, user_id, answer_sealed, at, expires_at';

/** The mark of a purged realm has its own ID; the record of its creation names no realm. */
const UNLESS_PURGED = [
  unlessPurged(realm, 'm.realm_id', 'm.realm_id'),
  unlessPurged(realm, 'm.record_id', 'm.record_id'),
  unlessPurged(user, 'm.realm_id', 'm.user_id'),
  unlessPurged(user, 'm.realm_id', 'm.record_id'),
].join('');

const SELECT_RECORD = `select ${COLUMNS} from idempotency m
  where realm_id = ? and client_id = ? and key = ? and expires_at > ?${UNLESS_PURGED}`;
const CLEAR = 'delete from idempotency where realm_id = ? and client_id = ? and key = ?';
// A client's ordinals increase as long as it has a record: the newest is the last entry of the index.
const INSERT = `insert into idempotency (${COLUMNS})
  values (?1, ?2, ?3, coalesce((select max(ordinal) from idempotency where client_id = ?2), 0) + 1,
    ?4, ?5, ?6, ?7, ?8, ?9, ?10) returning ordinal`;

/** Deletes the records that a condition selects. */
export function deleteWhere(selection: string): string {
  return `delete from idempotency where (realm_id, client_id, key) in
    (select realm_id, client_id, key from idempotency where ${selection})`;
}

export function openIdempotencyStore(dialect: Pick<Dialect, 'rowLocks'>): IdempotencyStore {
  const { deleteOldest, sweep, owned } = deleteStatements(dialect);

  /** The statements about the records that are deleted with a record. */
  function ownedBy({ foreignKey }: Resource): readonly CountAndDelete[] {
    return foreignKey ? owned[foreignKey] : [];
  }

  return {
    *load({ realm: at, clientId, key }, now) {
      const row = yield* first<IdempotencyRow>(SELECT_RECORD, at, clientId, key, now);
      return row && recordOf(row);
    },
    *save({ realm: where, clientId, key, body, status, recordId, user: owner, sealed, at, expiresAt }) {
      if (yield* first(SELECT_RECORD, where, clientId, key, at)) return false;
      yield* execute(CLEAR, where, clientId, key);
      yield* execute(sweep, at, EXPIRED_PER_SAVE);
      const values = [body, status, recordId ?? null, owner ?? null, sealed, at, expiresAt];
      const row = yield* first<{ ordinal: Long }>(INSERT, where, clientId, key, ...values);
      yield* execute(deleteOldest, clientId, Number(row?.ordinal ?? 0) - LIMITS.idempotencyKeysPerClientMax);
      return true;
    },
    deleteExpired: (now, limit) => execute(sweep, now, limit),
    *countOwned(resource, key, limit) {
      let sum = 0;
      for (const { count } of ownedBy(resource)) {
        const row = yield* first<{ n: Long }>(count, key[0], key.at(-1) as Uuid, limit - sum);
        sum += Number(row?.n ?? 0);
      }
      return sum;
    },
    *deleteOwned(resource, key, limit) {
      let sum = 0;
      for (const { remove } of ownedBy(resource)) {
        sum += yield* execute(remove, key[0], key.at(-1) as Uuid, limit - sum);
      }
      return sum;
    },
  };
}

/** Counts and deletes a limited number of records. Parameters: realm, ID, limit. */
interface CountAndDelete {
  readonly count: string;
  readonly remove: string;
}

type OwnedStatements = Readonly<Record<NonNullable<Resource['foreignKey']>, readonly CountAndDelete[]>>;

/**
 * The statements that delete records. Those by client or time touch realms of other writers, and skip rows that these have
 * locked; those by deleted record must delete all.
 */
function deleteStatements({ rowLocks }: Pick<Dialect, 'rowLocks'>) {
  const statementsFor = (condition: string): CountAndDelete => ({
    count: `select count(*) as n from (select 1 from idempotency where ${condition} limit ?3) as counted`,
    remove: deleteWhere(`${condition} limit ?3${rowLocks.exclusive}`),
  });
  const owned: OwnedStatements = {
    realm_id: [
      'realm_id = ?1 and realm_id = ?2',
      // The record of a realm's creation was stored before the realm existed.
      `realm_id = '${NIL_UUID}' and record_id = ?1 and record_id = ?2`,
    ].map(statementsFor),
    user_id: [
      'realm_id = ?1 and user_id = ?2',
      'realm_id = ?1 and record_id = ?2 and user_id is distinct from ?2',
    ].map(statementsFor),
  };
  return {
    deleteOldest: deleteWhere(`client_id = ? and ordinal <= ?${rowLocks.skipLocked}`),
    sweep: deleteWhere(`expires_at <= ?1 order by expires_at limit ?2${rowLocks.skipLocked}`),
    owned,
  };
}

/** Every statement about idempotency records. */
export function idempotencyTexts(dialect: Pick<Dialect, 'rowLocks'>): readonly string[] {
  const { deleteOldest, sweep, owned } = deleteStatements(dialect);
  const ofOwned = Object.values(owned).flat();
  return [
    SELECT_RECORD,
    CLEAR,
    INSERT,
    deleteOldest,
    sweep,
    ...ofOwned.flatMap(({ count, remove }) => [count, remove]),
  ];
}

interface IdempotencyRow {
  readonly realm_id: Uuid;
  readonly client_id: string;
  readonly key: string;
  readonly body: string;
  readonly status: number;
  readonly record_id: Uuid | null;
  readonly user_id: Uuid | null;
  readonly answer_sealed: Uint8Array;
  readonly at: Long;
  readonly expires_at: Long;
}

function recordOf(row: IdempotencyRow): IdempotencyRecord {
  return {
    realm: row.realm_id,
    clientId: row.client_id,
    key: row.key,
    body: row.body,
    status: row.status,
    recordId: row.record_id ?? undefined,
    user: row.user_id ?? undefined,
    sealed: row.answer_sealed,
    at: Number(row.at),
    expiresAt: Number(row.expires_at),
  };
}
