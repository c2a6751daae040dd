import { NIL_UUID, type Uuid } from '../../domain/id.ts';
import { LIMITS } from '../../domain/limits.ts';
import type { ProgressStore, RealmCursor } from '../../events/webhooks/port.ts';
import type { Dialect, ListDialect } from '../dialect.ts';
import { all, first, type Long } from '../transaction_work.ts';
import type { Transactions } from '../transactions.ts';

const COLUMNS = `k.realm_id, k.moved, k.seq as head, coalesce(p.seq, 0) as seq, coalesce(p.attempts, 0) as attempts,
  coalesce(p.next_at, 0) as next_at, coalesce(p.failed_seq, 0) as failed_seq`;
const CURSOR = `select ${COLUMNS} from realm_clock k
  left join webhook_progress p on p.webhook_id = ? and p.realm_id = k.realm_id`;
const MOVED = `${CURSOR} where (k.moved, k.realm_id) > (?, ?) and k.moved < ? and k.realm_id <> ?
  order by k.moved, k.realm_id limit ?`;
const AFTER = `${CURSOR} where k.realm_id > ? order by k.realm_id limit ?`;
const DUE = `select ${COLUMNS} from webhook_progress p join realm_clock k on k.realm_id = p.realm_id
  where p.webhook_id = ? and p.next_at > 0 and p.next_at <= ? order by p.next_at limit ?`;
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
  return {
    clockBounds: () =>
      read(function* () {
        const { begins, ends } = (yield* first<BoundsRow>(clockOrder.bounds)) as BoundsRow;
        return { begins: Number(begins), ends: Number(ends) };
      }),
    movedRealms: (webhookId, { moved, realm }, end, limit) =>
      read(function* () {
        const rows = yield* all<CursorRow>(MOVED, webhookId, moved, realm, end, NIL_UUID, limit);
        return rows.map((row) => ({ ...cursorOf(row), moved: Number(row.moved) }));
      }),
    realmsAfter: (webhookId, after, limit) =>
      read(function* () {
        return (yield* all<CursorRow>(AFTER, webhookId, after, limit)).map(cursorOf);
      }),
    dueRealms: (webhookId, now, limit) =>
      read(function* () {
        return (yield* all<CursorRow>(DUE, webhookId, now, limit)).map(cursorOf);
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

interface CursorRow {
  readonly realm_id: Uuid;
  readonly moved: Long;
  readonly head: Long;
  readonly seq: Long;
  readonly attempts: number;
  readonly next_at: Long;
  readonly failed_seq: Long;
}

function cursorOf({ realm_id, head, seq, attempts, next_at, failed_seq }: CursorRow): RealmCursor {
  const sequences = { head: Number(head), seq: Number(seq), failedSeq: Number(failed_seq) };
  return { realm: realm_id, ...sequences, attempts, nextAt: Number(next_at) };
}

/** Every statement about progress. */
export const webhookProgressTexts = ({ clockOrder, lists }: Dialect): readonly string[] => [
  ...[MOVED, AFTER, DUE, clockOrder.bounds, OLDEST_LAG, LAGGING_REALMS, deadLettersBy(lists)],
];
