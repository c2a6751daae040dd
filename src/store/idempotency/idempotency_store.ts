import type { IdempotencyRecord, IdempotencyRecordKey } from '../../directory/store.ts';
import { NIL_UUID, type Uuid } from '../../domain/id.ts';
import { LIMITS } from '../../domain/limits.ts';
import type { Key, Resource } from '../../domain/resource.ts';
import type { Dialect } from '../dialect.ts';
import {
  all,
  execute,
  executeAll,
  first,
  firstUnexpected,
  type Long,
  type SqlValue,
  type Statement,
  type Work,
} from '../transaction_work.ts';

/** Stores the answers to requests with an `Idempotency-Key`. */
export interface IdempotencyStore {
  /** The record of a request, unless it has expired at `now`. */
  load(key: IdempotencyRecordKey, now: number): Work<IdempotencyRecord | undefined>;
  /**
   * Stores a record; returns false if `load` would return one. Also deletes the oldest of a client that has too many in
   * the realm.
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

const COLUMNS =
  'realm_id, client_id, key, ordinal, body, status, record_id, user_id, answer_sealed, at, expires_at';

const SELECT_RECORD = `select ${COLUMNS} from idempotency
  where realm_id = ? and client_id = ? and key = ? and expires_at > ?`;
const CLEAR = 'delete from idempotency where realm_id = ? and client_id = ? and key = ?';
const INSERT = `insert into idempotency (${COLUMNS}) values (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`;
/** Ordinals increase as long as a client has a record in the realm. */
const LAST_ORDINAL =
  'select ordinal from idempotency where realm_id = ? and client_id = ? order by ordinal desc limit 1';
const EXPIRED = `select realm_id, client_id, key from idempotency where expires_at <= ?
  order by expires_at, realm_id, client_id, key limit ?`;

/** Not the record of a request that has used the key again since. */
const CLEAR_EXPIRED = `${CLEAR} and expires_at <= ?`;

type PrimaryKey = Pick<IdempotencyRow, 'realm_id' | 'client_id' | 'key'>;

/** Deletes the records that a query of their primary keys returns. Returns how many. */
export function* deleteFound(text: string, ...values: readonly SqlValue[]): Work<number> {
  return yield* deleteEach(yield* all(text, ...values), CLEAR);
}

function* deleteExpired(now: number, limit: number): Work<number> {
  return yield* deleteEach(yield* all(EXPIRED, now, limit), CLEAR_EXPIRED, now);
}

function* deleteEach(
  rows: readonly PrimaryKey[],
  text: string,
  ...values: readonly SqlValue[]
): Work<number> {
  yield* executeAll(
    rows.map(
      ({ realm_id, client_id, key }): Statement => ({ text, values: [realm_id, client_id, key, ...values] }),
    ),
  );
  return rows.length;
}

export function openIdempotencyStore(dialect: Pick<Dialect, 'rowLocks'>): IdempotencyStore {
  const { deleteOldest, owned } = deleteStatements(dialect);

  /** The statements about the records that are deleted with a record. */
  function ownedBy({ foreignKey }: Resource): readonly OwnedRecords[] {
    return foreignKey ? owned[foreignKey] : [];
  }

  return {
    *load({ realm, clientId, key }, now) {
      const row = yield* first<IdempotencyRow>(SELECT_RECORD, realm, clientId, key, now);
      return row && recordOf(row);
    },
    *save({ realm: where, clientId, key, body, status, recordId, user: owner, sealed, at, expiresAt }) {
      if (yield* firstUnexpected(SELECT_RECORD, where, clientId, key, at)) return false;
      const last = yield* first<{ readonly ordinal: Long }>(LAST_ORDINAL, where, clientId);
      const ordinal = Number(last?.ordinal ?? 0) + 1;
      const values = [body, status, recordId ?? null, owner ?? null, sealed, at, expiresAt];
      yield* executeAll([
        { text: CLEAR, values: [where, clientId, key] },
        { text: INSERT, values: [where, clientId, key, ordinal, ...values] },
      ]);
      const lowest = ordinal - LIMITS.idempotencyKeysPerClientMax;
      if (lowest > 0) yield* execute(deleteOldest, where, clientId, lowest);
      return true;
    },
    deleteExpired,
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
      for (const { select } of ownedBy(resource)) {
        sum += yield* deleteFound(select, key[0], key.at(-1) as Uuid, limit - sum);
      }
      return sum;
    },
  };
}

/** Counts records, and selects their primary keys, up to a limit. Parameters: realm, ID, limit. */
interface OwnedRecords {
  readonly count: string;
  readonly select: string;
}

type OwnedStatements = Readonly<Record<NonNullable<Resource['foreignKey']>, readonly OwnedRecords[]>>;

/**
 * The statements that find records to delete. Each names the realm, so that one node of a cluster runs it. That by client
 * skips rows that other writers have locked; those by deleted record must find all.
 */
function deleteStatements({ rowLocks }: Pick<Dialect, 'rowLocks'>) {
  const statementsFor = (realmId: string, condition: string): OwnedRecords => {
    const selection = `from idempotency where realm_id = ${realmId} and ${condition} limit ?3`;
    return {
      count: `select count(*) as n from (select 1 ${selection}) as counted`,
      select: `select realm_id, client_id, key ${selection}${rowLocks.exclusive}`,
    };
  };
  const owned: OwnedStatements = {
    realm_id: [
      statementsFor('?1', 'realm_id = ?2'),
      // The record of a realm's creation was stored before the realm existed.
      statementsFor(`'${NIL_UUID}'`, 'record_id = ?1 and record_id = ?2'),
    ],
    user_id: [
      statementsFor('?1', 'user_id = ?2'),
      statementsFor('?1', 'record_id = ?2 and user_id is distinct from ?2'),
    ],
  };
  return {
    deleteOldest: `delete from idempotency where realm_id = ?1 and (client_id, key) in
    (select client_id, key from idempotency where realm_id = ?1 and client_id = ?2 and ordinal <= ?3${rowLocks.skipLocked})`,
    owned,
  };
}

/** Every statement about idempotency records. */
export function idempotencyTexts(dialect: Pick<Dialect, 'rowLocks'>): readonly string[] {
  const { deleteOldest, owned } = deleteStatements(dialect);
  const ofOwned = Object.values(owned).flat();
  return [
    ...[SELECT_RECORD, CLEAR, CLEAR_EXPIRED, INSERT, LAST_ORDINAL, EXPIRED, deleteOldest],
    ...ofOwned.flatMap(({ count, select }) => [count, select]),
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
