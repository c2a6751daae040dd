import { NIL_UUID, type Uuid } from '../../model/id.ts';
import { LIMITS } from '../../model/limits.ts';
import type { Dialect } from '../../sql/dialect.ts';
import { progressTable } from '../../sql/tables/webhooks.ts';
import { all, first, type Long, type Work } from '../../sql/transaction_work.ts';
import type { Transactions } from '../../sql/transactions.ts';
import type { RealmProgress, Webhook } from '../webhooks/webhook.ts';

const CLOCK = 'select realm_id, moved, seq as head from realm_clock';
const REACHED = `${progressTable.select} where webhook_id = ?`;

/** Every statement about progress. Clocks and progress are read separately: they are on different nodes of a cluster. */
export const webhookProgressTexts = ({ clockOrder, realm, lists: { isAmong } }: Dialect) => ({
  bounds: clockOrder.bounds,
  moved: `${CLOCK} where (moved, realm_id) > (?, ?) and moved < ? and realm_id <> ?
    order by moved, realm_id limit ?`,
  latest: `${CLOCK} where moved >= 0 and realm_id <> ? order by moved desc, realm_id desc limit ?`,
  clocksAmong: `${CLOCK} where ${isAmong('realm_id')}`,
  progress: `${REACHED} and realm_id = ?`,
  progressAmong: `${REACHED} and ${isAmong('realm_id')}`,
  retries: `select realm_id from webhook_progress where webhook_id = ? and next_at > 0 and next_at <= ?
    order by next_at limit ?`,
  oldestLag: `select behind_since from webhook_progress where webhook_id = ? and behind_since > 0
    order by behind_since limit 1`,
  laggingRealms: `select count(*) as n from (select 1 from webhook_progress
    where webhook_id = ? and behind_since > 0 limit ?) as counted`,
  deadLetters:
    'select count(*) as n from (select 1 from dead_letter where webhook_id = ? limit ?) as counted',
  /** The entries of a run share the time that its last one holds. */
  changedAt: `select at from log_entry
    where realm_id = ${realm('?')} and seq > ? and at is not null order by seq limit 1`,
});

/** Read at once: more than there are slots, because their messages may be in flight. */
const RETRIES_MAX = 2 * LIMITS.webhookRealmsAtOnceMax;
/** Realms whose oldest undelivered change is looked up for the lag. */
const LAG_REALMS_MAX = 8;

interface ClockRow {
  readonly realm_id: Uuid;
  readonly moved: Long;
  readonly head: Long;
}

type Target = Pick<Webhook, 'webhookId' | 'realms'>;

/** A position in the order in which the clocks of realms advanced; several realms may share a number. */
export interface ClockPosition {
  readonly moved: number;
  readonly realm: Uuid;
}

/** Realms of a target that have undelivered changes, as one page of clocks shows them. */
export interface DueRealms {
  /** Realms with a failed message whose next attempt is due, the earliest first. */
  readonly retries: readonly Uuid[];
  /** Realms whose clock advanced, in this order. Those that wait for a retry are not among them. */
  readonly moved: readonly Uuid[];
  /** The last clock of the page if there may be more after it. */
  readonly last: ClockPosition | undefined;
  /** No clock that becomes visible later gets a number below it. */
  readonly begins: number;
  /** Greater than the numbers of all visible clocks. */
  readonly ends: number;
}

/** How far behind a target is. Counts end at LIMITS.webhookLagCountedMax. */
export interface DeliveryLag {
  /** The time of the oldest change that is still to be delivered; undefined if there is none. */
  readonly behindSince: number | undefined;
  /** Realms with a failed message that is retried. */
  readonly failingRealms: number;
  readonly deadLetters: number;
}

/** The progress of targets in realms. Except for sweeps, indexes find only realms with undelivered changes. */
export function openProgressStore({ read }: Pick<Transactions, 'read'>, dialect: Dialect) {
  const { lists } = dialect;
  const sql = webhookProgressTexts(dialect);

  /** The realms of these clocks that have changes after the progress of a target, and wait for no retry. */
  function* undelivered(
    { webhookId, realms }: Target,
    clocks: readonly ClockRow[],
  ): Work<readonly RealmProgress[]> {
    const listed = clocks.filter(({ realm_id }) => realms === '*' || realms.has(realm_id));
    if (listed.length === 0) return [];
    const among = lists.among(listed.map(({ realm_id }) => realm_id));
    const rows = (yield* all(sql.progressAmong, webhookId, among)).map(progressTable.read);
    const progress = new Map(rows.map((row) => [row.realm, row]));
    return listed.flatMap(({ realm_id: realm, head }) => {
      const reached = progress.get(realm) ?? progressAt(realm, 0);
      return Number(head) > reached.seq && reached.nextAt === 0 ? [reached] : [];
    });
  }

  /** The times of the oldest changes in realms that have not failed, of those that advanced lately. */
  function* waitingSince(target: Target): Work<readonly number[]> {
    const most = LIMITS.webhookScanRealms;
    const clocks =
      target.realms === '*'
        ? yield* all<ClockRow>(sql.latest, NIL_UUID, most)
        : yield* all<ClockRow>(sql.clocksAmong, lists.among([...target.realms].slice(0, most)));
    const byAge = clocks.toSorted((left, right) => Number(left.moved) - Number(right.moved));
    const times: number[] = [];
    for (const { realm, seq } of (yield* undelivered(target, byAge)).slice(0, LAG_REALMS_MAX)) {
      const change = yield* first<{ readonly at: Long }>(sql.changedAt, realm, seq);
      if (change) times.push(Number(change.at));
    }
    return times;
  }

  function* count(text: string, webhookId: string): Work<number> {
    const row = yield* first<{ readonly n: Long }>(text, webhookId, LIMITS.webhookLagCountedMax);
    return Number(row?.n);
  }

  return {
    /** The realms to deliver to, from the page of clocks after a position; without one only realms whose retry is due. */
    dueRealms: (target: Target, now: number, after: ClockPosition | undefined) =>
      read(function* (): Work<DueRealms> {
        const due = yield* all<{ readonly realm_id: Uuid }>(sql.retries, target.webhookId, now, RETRIES_MAX);
        const retries = due.map(({ realm_id }) => realm_id);
        if (!after) return { retries, moved: [], last: undefined, begins: 0, ends: 0 };
        // Before the rows: the next scan reads clocks that become visible between the two.
        const bounds = yield* first<{ readonly begins: Long; readonly ends: Long }>(sql.bounds);
        const [begins, ends] = [Number(bounds?.begins), Number(bounds?.ends)];
        const limit = LIMITS.webhookScanRealms;
        const clocks = yield* all<ClockRow>(sql.moved, after.moved, after.realm, ends, NIL_UUID, limit);
        const moved = (yield* undelivered(target, clocks)).map(({ realm }) => realm);
        const full = clocks[limit - 1];
        const last = full && { moved: Number(full.moved), realm: full.realm_id };
        return { retries, moved, last, begins, ends };
      }),
    /** The progress of a target in a realm. A target without any has been sent nothing of it. */
    progress: (webhookId: string, realm: Uuid) =>
      read(function* () {
        const row = yield* first(sql.progress, webhookId, realm);
        return row ? progressTable.read(row) : progressAt(realm, 0);
      }),
    lag: (target: Target) =>
      read(function* (): Work<DeliveryLag> {
        const { webhookId } = target;
        const failed = yield* first<{ readonly behind_since: Long }>(sql.oldestLag, webhookId);
        const times = [...(failed ? [Number(failed.behind_since)] : []), ...(yield* waitingSince(target))];
        return {
          behindSince: times.length > 0 ? Math.min(...times) : undefined,
          failingRealms: yield* count(sql.laggingRealms, webhookId),
          deadLetters: yield* count(sql.deadLetters, webhookId),
        };
      }),
  };
}

/** The progress of a target that needs nothing up to here. */
export function progressAt(realm: Uuid, seq: number): RealmProgress {
  return { realm, seq, attempts: 0, nextAt: 0, failedSeq: 0, behindSince: 0 };
}
