import type { Memory, MemoryPlace } from '../../directory/store.ts';
import { NIL_UUID, type Uuid } from '../../domain/id.ts';
import { LIMITS } from '../../domain/limits.ts';
import type { Key, Resource } from '../../domain/resource.ts';
import { realm, user } from '../../domain/resources.ts';
import type { Dialect } from '../dialect.ts';
import { unlessPurged } from '../records/purge_mark.ts';
import { first, type Long, run, type Work } from '../work.ts';

/** Answers that are kept for the repetition of their request. */
export interface Memories {
  /** What is remembered at a place, unless it has expired at `now` or what it tells about is being purged. */
  recall(place: MemoryPlace, now: number): Work<Memory | undefined>;
  /**
   * Keeps an answer; answers false where `recall` would find one. Some of those that have expired, and the oldest of a
   * client that has too many, are forgotten on the way.
   */
  keep(memory: Memory): Work<boolean>;
  /** Forgets at most `limit` answers that have expired at `now`, and says how many. */
  sweep(now: number, limit: number): Work<number>;
  /**
   * Counts the answers that end with a record, no further than `limit`: those that tell about a user; those in a realm,
   * and the one to its creation. None end with another record.
   */
  count(resource: Resource, key: Key, limit: number): Work<number>;
  /** Forgets at most `limit` of them, and says how many. */
  forget(resource: Resource, key: Key, limit: number): Work<number>;
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

const SELECT = `select ${COLUMNS} from idempotency m
  where realm_id = ? and client_id = ? and key = ? and expires_at > ?${UNLESS_PURGED}`;
const CLEAR = 'delete from idempotency where realm_id = ? and client_id = ? and key = ?';
// A client's numbers only grow as long as one of its answers is kept: the newest is the last one of their index.
const INSERT = `insert into idempotency (${COLUMNS})
  values (?1, ?2, ?3, coalesce((select max(ordinal) from idempotency where client_id = ?2), 0) + 1,
    ?4, ?5, ?6, ?7, ?8, ?9, ?10) returning ordinal`;

/** Deletes the answers that a selection names. */
export function forgetting(selection: string): string {
  return `delete from idempotency where (realm_id, client_id, key) in
    (select realm_id, client_id, key from idempotency where ${selection})`;
}

export function openMemories(dialect: Pick<Dialect, 'claims'>): Memories {
  const { forgetOldest, sweep, endings } = deletionsOf(dialect);

  /** What becomes of the answers that end with a record. */
  function endingsOf({ foreignKey }: Resource): readonly Ending[] {
    return foreignKey ? endings[foreignKey] : [];
  }

  return {
    *recall({ realm: at, clientId, key }, now) {
      const row = yield* first<MemoryRow>(SELECT, at, clientId, key, now);
      return row && memoryOf(row);
    },
    *keep({ realm: where, clientId, key, body, status, recordId, user: owner, sealed, at, expiresAt }) {
      if (yield* first(SELECT, where, clientId, key, at)) return false;
      yield* run(CLEAR, where, clientId, key);
      yield* run(sweep, at, SWEPT_AT_ONCE);
      const told = [body, status, recordId ?? null, owner ?? null, sealed, at, expiresAt];
      const row = yield* first<{ ordinal: Long }>(INSERT, where, clientId, key, ...told);
      yield* run(forgetOldest, clientId, Number(row?.ordinal ?? 0) - LIMITS.idempotencyKeysPerClientMax);
      return true;
    },
    sweep: (now, limit) => run(sweep, now, limit),
    *count(resource, key, limit) {
      let sum = 0;
      for (const { count } of endingsOf(resource)) {
        const row = yield* first<{ n: Long }>(count, key[0], key.at(-1) as Uuid, limit - sum);
        sum += Number(row?.n ?? 0);
      }
      return sum;
    },
    *forget(resource, key, limit) {
      let sum = 0;
      for (const { forget } of endingsOf(resource)) {
        sum += yield* run(forget, key[0], key.at(-1) as Uuid, limit - sum);
      }
      return sum;
    },
  };
}

/** What becomes of at most so many answers of one condition. Parameters: realm, identifier, limit. */
interface Ending {
  readonly count: string;
  readonly forget: string;
}

type Endings = Readonly<Record<NonNullable<Resource['foreignKey']>, readonly Ending[]>>;

/**
 * The texts that forget. Those of a client or of a time reach into realms that others write in, and leave what these
 * claim for the next one; those that go with a record must have them all.
 */
function deletionsOf({ claims }: Pick<Dialect, 'claims'>) {
  const endingOf = (condition: string): Ending => ({
    count: `select count(*) as n from (select 1 from idempotency where ${condition} limit ?3) as ending`,
    forget: forgetting(`${condition} limit ?3${claims.alone}`),
  });
  const endings: Endings = {
    realm_id: [
      'realm_id = ?1 and realm_id = ?2',
      // There was no realm to name when the answer to its creation was remembered.
      `realm_id = '${NIL_UUID}' and record_id = ?1 and record_id = ?2`,
    ].map(endingOf),
    user_id: [
      'realm_id = ?1 and user_id = ?2',
      'realm_id = ?1 and record_id = ?2 and user_id is distinct from ?2',
    ].map(endingOf),
  };
  return {
    forgetOldest: forgetting(`client_id = ? and ordinal <= ?${claims.free}`),
    sweep: forgetting(`expires_at <= ?1 order by expires_at limit ?2${claims.free}`),
    endings,
  };
}

/** Every text about answers. */
export function memoryTexts(dialect: Pick<Dialect, 'claims'>): readonly string[] {
  const { forgetOldest, sweep, endings } = deletionsOf(dialect);
  const ofEndings = Object.values(endings).flat();
  return [
    SELECT,
    CLEAR,
    INSERT,
    forgetOldest,
    sweep,
    ...ofEndings.flatMap(({ count, forget }) => [count, forget]),
  ];
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
  readonly at: Long;
  readonly expires_at: Long;
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
    at: Number(row.at),
    expiresAt: Number(row.expires_at),
  };
}
