import { NIL_UUID, type Uuid } from '../../domain/id.ts';
import { LIMITS } from '../../domain/limits.ts';
import type { ProgressStore, RealmCursor } from '../../events/webhooks/port.ts';
import type { Dialect, ListDialect } from '../dialect.ts';
import { all, first, type Long, type Work } from '../transaction_work.ts';
import type { Transactions } from '../transactions.ts';

/** Clocks and progress are read by separate statements: they are on different nodes of a cluster. */
const CLOCK = 'select realm_id, moved, seq as head from realm_clock';
const MOVED = `${CLOCK} where (moved, realm_id) > (?, ?) and moved < ? and realm_id <> ?
  order by moved, realm_id limit ?`;
const AFTER = `${CLOCK} where realm_id > ? order by realm_id limit ?`;
const amongRealms = ({ isAmong }: ListDialect): string => `${CLOCK} where ${isAmong('realm_id')}`;
const PROGRESS =
  'select realm_id, seq, attempts, next_at, failed_seq from webhook_progress where webhook_id = ?';
const progressAmong = ({ isAmong }: ListDialect): string => `${PROGRESS} and ${isAmong('realm_id')}`;
const DUE = `${PROGRESS} and next_at > 0 and next_at <= ? order by next_at limit ?`;
const OLDEST_LAG = `select behind_since from webhook_progress where webhook_id = ? and behind_since > 0
  order by behind_since limit 1`;
const LAGGING_REALMS = `select count(*) as n from (select 1 from webhook_progress
  where webhook_id = ? and behind_since > 0 limit ?) as counted`;
const deadLettersBy = ({ indexHint: by }: ListDialect): string => `select count(*) as n from (select 1
  from dead_letter${by('dead_letter_left')} where webhook_id = ? and redelivered_at is null limit ?) as counted`;

/** The progress of targets in realms. Except for sweeps, indexes find only realms with undelivered changes. */
export function openProgressStore(
  { read }: Pick<Transactions, 'read'>,
  { clockOrder, lists }: Dialect,
): ProgressStore {
  const countDeadLetters = deadLettersBy(lists);
  const selectProgress = progressAmong(lists);
  const selectClocks = amongRealms(lists);

  /** The cursors of a target in the realms of these clocks, in their order. */
  function* cursorsOf(webhookId: string, clocks: readonly ClockRow[]): Work<readonly RealmCursor[]> {
    if (clocks.length === 0) return [];
    const realms = lists.among(clocks.map(({ realm_id }) => realm_id));
    const progress = byRealm(yield* all<ProgressRow>(selectProgress, webhookId, realms));
    return clocks.map((clock) => cursorOf(clock, progress.get(clock.realm_id)));
  }

  return {
    clockBounds: () =>
      read(function* () {
        const { begins, ends } = (yield* first<BoundsRow>(clockOrder.bounds)) as BoundsRow;
        return { begins: Number(begins), ends: Number(ends) };
      }),
    movedRealms: (webhookId, { moved, realm }, end, limit) =>
      read(function* () {
        const clocks = yield* all<ClockRow>(MOVED, moved, realm, end, NIL_UUID, limit);
        const cursors = yield* cursorsOf(webhookId, clocks);
        return cursors.map((cursor, at) => ({ ...cursor, moved: Number(clocks[at]?.moved) }));
      }),
    realmsAfter: (webhookId, after, limit) =>
      read(function* () {
        return yield* cursorsOf(webhookId, yield* all<ClockRow>(AFTER, after, limit));
      }),
    dueRealms: (webhookId, now, limit) =>
      read(function* () {
        const due = yield* all<ProgressRow>(DUE, webhookId, now, limit);
        if (due.length === 0) return [];
        const realms = lists.among(due.map(({ realm_id }) => realm_id));
        const clocks = byRealm(yield* all<ClockRow>(selectClocks, realms));
        return due.flatMap((progress) => {
          const clock = clocks.get(progress.realm_id);
          return clock ? [cursorOf(clock, progress)] : [];
        });
      }),
    lag: (webhookId) =>
      read(function* () {
        const since = (yield* first<{ readonly behind_since: Long }>(OLDEST_LAG, webhookId))?.behind_since;
        const most = LIMITS.webhookLagCountedMax;
        const realms = yield* first<{ readonly n: Long }>(LAGGING_REALMS, webhookId, most);
        const deadLetterCount = yield* first<{ readonly n: Long }>(countDeadLetters, webhookId, most);
        return {
          since: since === undefined ? undefined : Number(since),
          realms: Number(realms?.n),
          deadLetters: Number(deadLetterCount?.n),
        };
      }),
  };
}

interface BoundsRow {
  readonly begins: Long;
  readonly ends: Long;
}

interface ClockRow {
  readonly realm_id: Uuid;
  readonly moved: Long;
  readonly head: Long;
}

interface ProgressRow {
  readonly realm_id: Uuid;
  readonly seq: Long;
  readonly attempts: number;
  readonly next_at: Long;
  readonly failed_seq: Long;
}

function byRealm<Row extends { readonly realm_id: Uuid }>(rows: readonly Row[]): ReadonlyMap<Uuid, Row> {
  return new Map(rows.map((row) => [row.realm_id, row]));
}

/** A target without progress in a realm has been sent nothing of it. */
function cursorOf({ realm_id, head }: ClockRow, progress: ProgressRow | undefined): RealmCursor {
  return {
    realm: realm_id,
    head: Number(head),
    seq: Number(progress?.seq ?? 0),
    failedSeq: Number(progress?.failed_seq ?? 0),
    attempts: progress?.attempts ?? 0,
    nextAt: Number(progress?.next_at ?? 0),
  };
}

/** Every statement about progress. */
export const webhookProgressTexts = ({ clockOrder, lists }: Dialect): readonly string[] => [
  ...[MOVED, AFTER, amongRealms(lists), progressAmong(lists), DUE, clockOrder.bounds],
  ...[OLDEST_LAG, LAGGING_REALMS, deadLettersBy(lists)],
];
