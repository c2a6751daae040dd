import type { Uuid } from '../../domain/id.ts';
import { LIMITS } from '../../domain/limits.ts';
import type {
  DeadLetter,
  Delivery,
  DeliveryOutcome,
  DeliveryResults,
  ProgressStore,
  RealmProgress,
  WebhookStore,
} from '../../events/webhooks/port.ts';
import type { Dialect, ListDialect } from '../dialect.ts';
import { IS_HELD } from '../leases.ts';
import {
  all,
  execute,
  executeAll,
  first,
  type Long,
  type SqlValue,
  type Statement,
  type Work,
  type WorkResult,
} from '../transaction_work.ts';
import type { Transactions } from '../transactions.ts';

const DELIVERY = `select delivery_id, webhook_id, message_id, realm_id, first_seq, last_seq, attempt, outcome, status,
  duration_ms, at from delivery where webhook_id = ?`;
const NEWEST = `${DELIVERY} order by delivery_id desc limit ?`;
const NEWEST_BEFORE = `${DELIVERY} and delivery_id < ? order by delivery_id desc limit ?`;
const DEAD_LETTER_COLUMNS = 'webhook_id, realm_id, first_seq, last_seq, attempts, at, redelivered_at';
const DEAD_LETTER = `select ${DEAD_LETTER_COLUMNS} from dead_letter where webhook_id = ?`;
const DEAD_LETTERS = `${DEAD_LETTER} order by realm_id, first_seq limit ?`;
const DEAD_LETTERS_AFTER = `${DEAD_LETTER} and (realm_id, first_seq) > (?, ?) order by realm_id, first_seq limit ?`;
const pendingBy = ({ indexHint: by }: ListDialect): string => `select ${DEAD_LETTER_COLUMNS}
  from dead_letter${by('dead_letter_waiting')} where webhook_id = ? and attempts = 0 order by realm_id, first_seq limit ?`;
const REQUEUE = `update dead_letter set attempts = 0, redelivered_at = null
  where webhook_id = ? and realm_id = ? and first_seq = ?`;
const REQUEUE_ALL = `update dead_letter set attempts = 0
  where webhook_id = ? and redelivered_at is null and attempts > 0`;

const SAVE_PROGRESS = `insert into webhook_progress (webhook_id, realm_id, seq, attempts, next_at, failed_seq, behind_since)
  values (?, ?, ?, ?, ?, ?, ?)
  on conflict (webhook_id, realm_id) do update set seq = excluded.seq, attempts = excluded.attempts,
  next_at = excluded.next_at, failed_seq = excluded.failed_seq, behind_since = excluded.behind_since`;
const SAVE_DELIVERY = `insert into delivery (webhook_id, delivery_id, message_id, realm_id, first_seq, last_seq, attempt,
  outcome, status, duration_ms, at) values (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`;
const SAVE_DEAD_LETTER = `insert into dead_letter (webhook_id, realm_id, first_seq, last_seq, attempts, at, redelivered_at)
  values (?, ?, ?, ?, ?, ?, ?) on conflict (webhook_id, realm_id, first_seq)
  do update set last_seq = excluded.last_seq, attempts = excluded.attempts, redelivered_at = excluded.redelivered_at`;
const TARGET = 'select all_realms from webhook where webhook_id = ?';
const LISTED = 'select realm_id from webhook_realm where webhook_id = ?';
const TOO_MANY =
  'select delivery_id from delivery where webhook_id = ? order by delivery_id desc limit 1 offset ?';
const OLDEST = 'select delivery_id, at from delivery where webhook_id = ? order by delivery_id limit ?';
const REMOVE_UP_TO = 'delete from delivery where webhook_id = ? and delivery_id <= ?';
const TARGETS = 'select webhook_id from webhook order by webhook_id';
const OLD_DEAD_LETTERS = 'select webhook_id, realm_id, first_seq from dead_letter where at < ? limit ?';
const REMOVE_DEAD_LETTER = 'delete from dead_letter where webhook_id = ? and realm_id = ? and first_seq = ?';

type OfOtherFiles = 'list' | 'find' | 'insert' | 'update' | 'rotate' | 'remove' | keyof ProgressStore;

/** Deliveries and dead letters. */
export function openDeliveries(
  { read, write }: Transactions,
  { rowLocks, lists }: Dialect,
): Omit<WebhookStore, OfOtherFiles> {
  const isHeld = `${IS_HELD}${rowLocks.shared}`;
  const pending = pendingBy(lists);
  const selectTarget = `${TARGET}${rowLocks.shared}`;

  /** Drops the progress in realms that were removed from the target meanwhile. */
  function* ofListedRealms(
    webhookId: string,
    progress: readonly RealmProgress[],
  ): Work<readonly RealmProgress[]> {
    const rows = yield* all<{ readonly realm_id: Uuid }>(LISTED, webhookId);
    const realms = new Set(rows.map(({ realm_id }) => realm_id));
    return progress.filter(({ realm }) => realms.has(realm));
  }

  function* saveResults(
    lease: { name: string; holder: string },
    results: DeliveryResults,
  ): Work<WorkResult<boolean>> {
    if (!(yield* first(isHeld, lease.name, lease.holder))) return { value: false, keep: false };
    const { webhookId } = results;
    const target = yield* first<{ readonly all_realms: number }>(selectTarget, webhookId);
    if (!target) return { value: false, keep: false };
    const progress =
      target.all_realms === 1 ? results.progress : yield* ofListedRealms(webhookId, results.progress);
    yield* executeAll(statementsOf({ ...results, progress }));
    return { value: true, keep: true };
  }

  return {
    deliveries: (webhookId, before, limit) =>
      read(function* () {
        const rows =
          before === undefined
            ? yield* all<DeliveryRow>(NEWEST, webhookId, limit)
            : yield* all<DeliveryRow>(NEWEST_BEFORE, webhookId, before, limit);
        return rows.map(deliveryOf);
      }),
    deadLetters: (webhookId, after, limit) =>
      read(function* () {
        const rows = after
          ? yield* all<DeadLetterRow>(DEAD_LETTERS_AFTER, webhookId, after.realm, after.firstSeq, limit)
          : yield* all<DeadLetterRow>(DEAD_LETTERS, webhookId, limit);
        return rows.map(deadLetterOf);
      }),
    requestRedelivery: (webhookId, which, auditEntry) =>
      write('instance', function* () {
        const value = which
          ? yield* execute(REQUEUE, webhookId, which.realm, which.firstSeq)
          : yield* execute(REQUEUE_ALL, webhookId);
        return { value, keep: value > 0, auditEntries: [auditEntry] };
      }),
    pendingDeadLetters: (webhookId, limit) =>
      read(function* () {
        return (yield* all<DeadLetterRow>(pending, webhookId, limit)).map(deadLetterOf);
      }),
    saveResults: (lease, results) => write([], () => saveResults(lease, results)),
    trim: (before) => write([], () => trim(before)),
  };
}

function statementsOf({
  webhookId,
  progress,
  deliveries,
  deadLetters,
}: DeliveryResults): readonly Statement[] {
  return [
    ...progress.map((each) => ({ text: SAVE_PROGRESS, values: progressColumns(webhookId, each) })),
    ...deliveries.map((each) => ({ text: SAVE_DELIVERY, values: deliveryColumns(each) })),
    ...deadLetters.map((each) => ({ text: SAVE_DEAD_LETTER, values: deadLetterColumns(each) })),
  ];
}

/** Deletes deliveries that are too old or beyond the newest ones of their target, and old dead letters. */
function* trim(before: number): Work<WorkResult<number>> {
  const most = LIMITS.cascadeRecordsMax;
  let rows = 0;
  for (const { webhook_id } of yield* all<{ webhook_id: string }>(TARGETS)) {
    const oldest = yield* all<{ delivery_id: string; at: Long }>(OLDEST, webhook_id, most);
    const beyond = yield* first<{ delivery_id: string }>(TOO_MANY, webhook_id, LIMITS.deliveriesKeptMax);
    const isExpired = ({ delivery_id, at }: { delivery_id: string; at: Long }) =>
      Number(at) < before || delivery_id <= (beyond?.delivery_id ?? '');
    const last = oldest.findLast(isExpired);
    if (last) rows += yield* execute(REMOVE_UP_TO, webhook_id, last.delivery_id);
    if (rows >= most) return { value: rows, keep: true, rows };
  }
  const deadLetters = yield* all<DeadLetterRow>(OLD_DEAD_LETTERS, before, most);
  for (const { webhook_id, realm_id, first_seq } of deadLetters) {
    rows += yield* execute(REMOVE_DEAD_LETTER, webhook_id, realm_id, first_seq);
  }
  return { value: rows, keep: rows > 0, rows };
}

interface DeliveryRow {
  readonly delivery_id: string;
  readonly webhook_id: string;
  readonly message_id: string;
  readonly realm_id: Uuid;
  readonly first_seq: Long;
  readonly last_seq: Long;
  readonly attempt: number;
  readonly outcome: DeliveryOutcome;
  readonly status: number | null;
  readonly duration_ms: number;
  readonly at: Long;
}

function deliveryOf(row: DeliveryRow): Delivery {
  return {
    deliveryId: row.delivery_id,
    webhookId: row.webhook_id,
    messageId: row.message_id,
    realm: row.realm_id,
    firstSeq: Number(row.first_seq),
    lastSeq: Number(row.last_seq),
    attempt: row.attempt,
    outcome: row.outcome,
    status: row.status ?? undefined,
    durationMs: row.duration_ms,
    at: Number(row.at),
  };
}

function deliveryColumns(delivery: Delivery): readonly SqlValue[] {
  const { webhookId, deliveryId, messageId, realm, firstSeq, lastSeq, attempt, outcome, status } = delivery;
  return [
    ...[webhookId, deliveryId, messageId, realm, firstSeq, lastSeq, attempt, outcome, status ?? null],
    ...[delivery.durationMs, delivery.at],
  ];
}

interface DeadLetterRow {
  readonly webhook_id: string;
  readonly realm_id: Uuid;
  readonly first_seq: Long;
  readonly last_seq: Long;
  readonly attempts: number;
  readonly at: Long;
  readonly redelivered_at: Long | null;
}

function deadLetterOf(row: DeadLetterRow): DeadLetter {
  return {
    webhookId: row.webhook_id,
    realm: row.realm_id,
    firstSeq: Number(row.first_seq),
    lastSeq: Number(row.last_seq),
    attempts: row.attempts,
    at: Number(row.at),
    redeliveredAt: row.redelivered_at === null ? undefined : Number(row.redelivered_at),
  };
}

function deadLetterColumns(deadLetter: DeadLetter): readonly SqlValue[] {
  const { webhookId, realm, firstSeq, lastSeq, attempts, at, redeliveredAt } = deadLetter;
  return [webhookId, realm, firstSeq, lastSeq, attempts, at, redeliveredAt ?? null];
}

function progressColumns(webhookId: string, progress: RealmProgress): readonly SqlValue[] {
  const { realm, seq, attempts, nextAt, failedSeq, behindSince } = progress;
  return [webhookId, realm, seq, attempts, nextAt, failedSeq, behindSince];
}

/** Every statement about deliveries. */
export const deliveryTexts = ({ lists, rowLocks }: Dialect): readonly string[] => [
  ...[NEWEST, NEWEST_BEFORE, DEAD_LETTERS, DEAD_LETTERS_AFTER, pendingBy(lists), REQUEUE, REQUEUE_ALL],
  ...[
    SAVE_PROGRESS,
    SAVE_DELIVERY,
    SAVE_DEAD_LETTER,
    TOO_MANY,
    OLDEST,
    REMOVE_UP_TO,
    TARGETS,
    OLD_DEAD_LETTERS,
  ],
  ...[REMOVE_DEAD_LETTER, `${TARGET}${rowLocks.shared}`, LISTED],
];
