import type { Database } from 'bun:sqlite';
import type { Memory, MemoryPlace } from '../../directory/store.ts';
import { NIL_UUID, type Uuid } from '../../domain/id.ts';
import { LIMITS } from '../../domain/limits.ts';

/** Answers that are kept for the repetition of their request. */
export interface Memories {
  /** What is remembered at a place, unless it has expired at `now`. */
  recall(place: MemoryPlace, now: number): Memory | undefined;
  /**
   * Keeps an answer inside a transaction of the writer; answers false where one is there that has not expired. Some of
   * those that have, and the oldest of a client that has too many, are forgotten on the way.
   */
  keep(memory: Memory): boolean;
  /** Forgets at most `limit` answers that tell about a user, and says how many. */
  forgetUser(realm: Uuid, user: Uuid, limit: number): number;
  /** The same of all answers in a realm, and of the one to its creation. */
  forgetRealm(realm: Uuid, limit: number): number;
}

/** How many that have expired are forgotten when one is kept: more than one, so that they get fewer. */
const SWEPT_AT_ONCE = 10;

const COLUMNS =
  'realm_id, client_id, key, ordinal, body, status, record_id, user_id, answer_sealed, at, expires_at';

export function openMemories(db: Database): Memories {
  const select = db.prepare<MemoryRow, [string, string, string, number]>(
    'select * from idempotency where realm_id = ? and client_id = ? and key = ? and expires_at > ?',
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
  const forgetWhere = (condition: string) =>
    db.prepare<unknown, [...string[], number]>(
      `delete from idempotency where rowid in (select rowid from idempotency where ${condition} limit ?)`,
    );
  const forgetUser = forgetWhere('realm_id = ? and user_id = ?');
  const forgetRecord = forgetWhere('realm_id = ? and record_id = ?');
  const forgetRealm = forgetWhere('realm_id = ?');

  return {
    recall({ realm, clientId, key }, now) {
      const row = select.get(realm, clientId, key, now);
      return row ? memoryOf(row) : undefined;
    },
    keep(memory) {
      const { realm, clientId, key, body, status, recordId, user, sealed, at, expiresAt } = memory;
      if (select.get(realm, clientId, key, at)) return false;
      clear.run(realm, clientId, key);
      sweep.run(at, SWEPT_AT_ONCE);
      const told = [body, status, recordId ?? null, user ?? null, sealed, at, expiresAt];
      const ordinal = insert.get(realm, clientId, key, ...told)?.ordinal ?? 0;
      forgetOldest.run(clientId, ordinal - LIMITS.idempotencyKeysPerClientMax);
      return true;
    },
    forgetUser(realm, user, limit) {
      const told = forgetUser.run(realm, user, limit).changes;
      return told + forgetRecord.run(realm, user, limit - told).changes;
    },
    forgetRealm(realm, limit) {
      const told = forgetRealm.run(realm, limit).changes;
      // There was no realm to name when the answer to its creation was remembered.
      return told + forgetRecord.run(NIL_UUID, realm, limit - told).changes;
    },
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
