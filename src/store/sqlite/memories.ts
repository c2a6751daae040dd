import type { Database } from 'bun:sqlite';
import type { Memory, MemoryPlace } from '../../directory/store.ts';
import { NIL_UUID, type Uuid } from '../../domain/id.ts';
import { LIMITS } from '../../domain/limits.ts';
import type { Key, Resource } from '../../domain/resource.ts';
import { realm, user } from '../../domain/resources.ts';
import { unlessPurged } from '../purge_mark.ts';

/** Answers that are kept for the repetition of their request. */
export interface Memories {
  /** What is remembered at a place, unless it has expired at `now` or what it tells about is being purged. */
  recall(place: MemoryPlace, now: number): Memory | undefined;
  /**
   * Keeps an answer inside a transaction of the writer; answers false where `recall` would find one. Some of those that
   * have expired, and the oldest of a client that has too many, are forgotten on the way.
   */
  keep(memory: Memory): boolean;
  /** Forgets at most `limit` answers that have expired at `now`, and says how many. */
  sweep(now: number, limit: number): number;
  /**
   * Counts the answers that end with a record, no further than `limit`: those that tell about a user; those in a realm,
   * and the one to its creation. None end with another record.
   */
  count(resource: Resource, key: Key, limit: number): number;
  /** Forgets at most `limit` of them, and says how many. */
  forget(resource: Resource, key: Key, limit: number): number;
}

/** How many that have expired are forgotten when one is kept: more than one, so that they get fewer. */
const SWEPT_AT_ONCE = 10;

const COLUMNS =
  'realm_id, client_id, key, ordinal, body, status, record_id, user_id, answer_sealed, at, expires_at';

/** A realm that is being purged has its mark in itself; its creation was answered where no realm was named. */
const UNLESS_PURGED = [
  unlessPurged(realm, 'm.realm_id', 'm.realm_id'),
  unlessPurged(realm, 'm.record_id', 'm.record_id'),
  unlessPurged(user, 'm.realm_id', 'm.user_id'),
  unlessPurged(user, 'm.realm_id', 'm.record_id'),
].join('');

export function openMemories(db: Database): Memories {
  const select = db.prepare<MemoryRow, [string, string, string, number]>(
    `select * from idempotency m where realm_id = ? and client_id = ? and key = ? and expires_at > ?${UNLESS_PURGED}`,
  );
  const clear = db.prepare('delete from idempotency where realm_id = ? and client_id = ? and key = ?');
  // A client's numbers only grow as long as one of its answers is kept: the newest is the last one of their index.
  const insert = db.prepare<{ ordinal: number }, (string | number | Uint8Array | null)[]>(
    `insert into idempotency (${COLUMNS})
     values (?1, ?2, ?3, coalesce((select max(ordinal) from idempotency where client_id = ?2), 0) + 1,
       ?4, ?5, ?6, ?7, ?8, ?9, ?10) returning ordinal`,
  );
  const forgetOldest = db.prepare('delete from idempotency where client_id = ? and ordinal <= ?');
  const sweep = db.prepare(
    `delete from idempotency where rowid in
       (select rowid from idempotency where expires_at <= ? order by expires_at limit ?)`,
  );
  const ending = openEndings(db);

  return {
    recall({ realm: at, clientId, key }, now) {
      const row = select.get(at, clientId, key, now);
      return row ? memoryOf(row) : undefined;
    },
    keep(memory) {
      const {
        realm: where,
        clientId,
        key,
        body,
        status,
        recordId,
        user: owner,
        sealed,
        at,
        expiresAt,
      } = memory;
      if (select.get(where, clientId, key, at)) return false;
      clear.run(where, clientId, key);
      sweep.run(at, SWEPT_AT_ONCE);
      const told = [body, status, recordId ?? null, owner ?? null, sealed, at, expiresAt];
      const ordinal = insert.get(where, clientId, key, ...told)?.ordinal ?? 0;
      forgetOldest.run(clientId, ordinal - LIMITS.idempotencyKeysPerClientMax);
      return true;
    },
    sweep: (now, limit) => sweep.run(now, limit).changes,
    count: (resource, key, limit) => ending('count', resource, key, limit),
    forget: (resource, key, limit) => ending('forget', resource, key, limit),
  };
}

/** The answers that end with a record, by the column that names it below. Parameters: realm, identifier. */
const ENDINGS: Readonly<Record<NonNullable<Resource['foreignKey']>, readonly string[]>> = {
  realm_id: [
    'realm_id = ?2',
    // There was no realm to name when the answer to its creation was remembered.
    `realm_id = '${NIL_UUID}' and record_id = ?2`,
  ],
  user_id: ['realm_id = ?1 and user_id = ?2', 'realm_id = ?1 and record_id = ?2 and user_id is not ?2'],
};

type Limited = [realm: Uuid, id: Uuid, limit: number];

/** What becomes of at most so many answers of one condition. Answers how many they are. */
interface Ending {
  readonly count: (...about: Limited) => number;
  readonly forget: (...about: Limited) => number;
}

function openEndings(db: Database) {
  const endingOf = (condition: string): Ending => {
    const some = `select rowid from idempotency where ${condition} limit ?3`;
    const count = db.prepare<{ n: number }, Limited>(`select count(*) as n from (${some})`);
    const forget = db.prepare<unknown, Limited>(`delete from idempotency where rowid in (${some})`);
    return {
      count: (...about) => count.get(...about)?.n ?? 0,
      forget: (...about) => forget.run(...about).changes,
    };
  };
  const endings = { realm_id: ENDINGS.realm_id.map(endingOf), user_id: ENDINGS.user_id.map(endingOf) };
  return (act: keyof Ending, { foreignKey }: Resource, key: Key, limit: number): number => {
    let sum = 0;
    for (const ending of foreignKey ? endings[foreignKey] : []) {
      sum += ending[act](key[0], key.at(-1) as Uuid, limit - sum);
    }
    return sum;
  };
}

interface MemoryRow {
  readonly realm_id: Uuid;
  readonly client_id: string;
  readonly key: string;
  readonly body: string;
  readonly status: number;
  readonly record_id: Uuid | null;
  readonly user_id: Uuid | null;
  readonly answer_sealed: Uint8Array;
  readonly at: number;
  readonly expires_at: number;
}

function memoryOf(row: MemoryRow): Memory {
  return {
    realm: row.realm_id,
    clientId: row.client_id,
    key: row.key,
    body: row.body,
    status: row.status,
    recordId: row.record_id ?? undefined,
    user: row.user_id ?? undefined,
    sealed: row.answer_sealed,
    at: row.at,
    expiresAt: row.expires_at,
  };
}
