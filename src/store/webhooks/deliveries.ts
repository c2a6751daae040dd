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
import type { SqlValue } from '../records/statements.ts';
import {
  all,
  execute,
  executeAll,
  first,
  type Long,
  type Statement,
  type Work,
  type WorkResult,
} from '../transaction_work.ts';
import type { Transactions } from '../transactions.ts';

const DELIVERY = `select delivery_id, webhook_id, message_id, realm_id, first_seq, last_seq, attempt, outcome, status,
  duration_ms, at from delivery where webhook_id = ?`;
const NEWEST = `${DELIVERY} order by delivery_id desc limit ?`;
const NEWEST_BEFORE = `${DELIVERY} and delivery_id < ? order by delivery_id desc limit ?`;
const LETTER_COLUMNS = 'webhook_id, realm_id, first_seq, last_seq, attempts, at, redelivered_at';
const LETTER = `select ${LETTER_COLUMNS} from dead_letter where webhook_id = ?`;
const LETTERS = `${LETTER} order by realm_id, first_seq limit ?`;
const LETTERS_BEHIND = `${LETTER} and (realm_id, first_seq) > (?, ?) order by realm_id, first_seq limit ?`;
const waitingBy = ({ indexHint: by }: ListDialect): string => `select ${LETTER_COLUMNS}
  from dead_letter${by('dead_letter_waiting')} where webhook_id = ? and attempts = 0 order by realm_id, first_seq limit ?`;
const RESEND = `update dead_letter set attempts = 0, redelivered_at = null
  where webhook_id = ? and realm_id = ? and first_seq = ?`;
const RESEND_ALL = `update dead_letter set attempts = 0
  where webhook_id = ? and redelivered_at is null and attempts > 0`;

const KEEP_PROGRESS = `insert into webhook_progress (webhook_id, realm_id, seq, attempts, next_at, failed_seq, behind_since)
  values (?, ?, ?, ?, ?, ?, ?)
  on conflict (webhook_id, realm_id) do update set seq = excluded.seq, attempts = excluded.attempts,
  next_at = excluded.next_at, failed_seq = excluded.failed_seq, behind_since = excluded.behind_since`;
const KEEP_DELIVERY = `insert into delivery (webhook_id, delivery_id, message_id, realm_id, first_seq, last_seq, attempt,
  outcome, status, duration_ms, at) values (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`;
const KEEP_LETTER = `insert into dead_letter (webhook_id, realm_id, first_seq, last_seq, attempts, at, redelivered_at)
  values (?, ?, ?, ?, ?, ?, ?) on conflict (webhook_id, realm_id, first_seq)
  do update set last_seq = excluded.last_seq, attempts = excluded.attempts, redelivered_at = excluded.redelivered_at`;
const RECEIVER = 'select all_realms from webhook where webhook_id = ?';
const LISTED = 'select realm_id from webhook_realm where webhook_id = ?';
const TOO_MANY =
  'select delivery_id from delivery where webhook_id = ? order by delivery_id desc limit 1 offset ?';
const OLDEST = 'select delivery_id, at from delivery where webhook_id = ? order by delivery_id limit ?';
const REMOVE_UP_TO = 'delete from delivery where webhook_id = ? and delivery_id <= ?';
const RECEIVERS = 'select webhook_id from webhook order by webhook_id';
const OLD_LETTERS = 'select webhook_id, realm_id, first_seq from dead_letter where at < ? limit ?';
const REMOVE_LETTER = 'delete from dead_letter where webhook_id = ? and realm_id = ? and first_seq = ?';

type Elsewhere = 'list' | 'insert' | 'update' | 'rotate' | 'remove' | keyof ProgressStore;

/** What was tried, and what was given up. */
export function openDeliveries(
  { read, write }: Transactions,
  { rowLocks: claims, lists }: Dialect,
): Omit<WebhookStore, Elsewhere> {
  const isHeld = `${IS_HELD}${claims.shared}`;
  const waiting = waitingBy(lists);
  const claimed = `${RECEIVER}${claims.shared}`;

  /** What it was told of a realm that was taken off its list meanwhile is forgotten with that. */
  function* listed(webhookId: string, progress: readonly RealmProgress[]): Work<readonly RealmProgress[]> {
    const rows = yield* all<{ readonly realm_id: Uuid }>(LISTED, webhookId);
    const realms = new Set(rows.map(({ realm_id }) => realm_id));
    return progress.filter(({ realm }) => realms.has(realm));
  }

  function* settle(
    lease: { name: string; holder: string },
    settled: DeliveryResults,
  ): Work<WorkResult<boolean>> {
    if (!(yield* first(isHeld, lease.name, lease.holder))) return { value: false, keep: false };
    const { webhookId } = settled;
    const receiver = yield* first<{ readonly all_realms: number }>(claimed, webhookId);
    if (!receiver) return { value: false, keep: false };
    const progress =
      receiver.all_realms === 1 ? settled.progress : yield* listed(webhookId, settled.progress);
    yield* executeAll(statementsOf({ ...settled, progress }));
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
          ? yield* all<LetterRow>(LETTERS_BEHIND, webhookId, after.realm, after.firstSeq, limit)
          : yield* all<LetterRow>(LETTERS, webhookId, limit);
        return rows.map(letterOf);
      }),
    requestRedelivery: (webhookId, which, auditEntry) =>
      write('instance', function* () {
        const value = which
          ? yield* execute(RESEND, webhookId, which.realm, which.firstSeq)
          : yield* execute(RESEND_ALL, webhookId);
        return { value, keep: value > 0, auditEntries: [auditEntry] };
      }),
    pendingDeadLetters: (webhookId, limit) =>
      read(function* () {
        return (yield* all<LetterRow>(waiting, webhookId, limit)).map(letterOf);
      }),
    saveResults: (lease, settled) => write([], () => settle(lease, settled)),
    trim: (before) => write([], () => trimmed(before)),
  };
}

function statementsOf({
  webhookId,
  progress,
  deliveries,
  deadLetters,
}: DeliveryResults): readonly Statement[] {
  return [
    ...progress.map((each) => ({ text: KEEP_PROGRESS, values: progressColumns(webhookId, each) })),
    ...deliveries.map((each) => ({ text: KEEP_DELIVERY, values: deliveryColumns(each) })),
    ...deadLetters.map((each) => ({ text: KEEP_LETTER, values: letterColumns(each) })),
  ];
}

/** Removes what is too old, and of each receiver what is beyond the newest ones. */
function* trimmed(before: number): Work<WorkResult<number>> {
  const most = LIMITS.cascadeRecordsMax;
  let rows = 0;
  for (const { webhook_id } of yield* all<{ webhook_id: string }>(RECEIVERS)) {
    const oldest = yield* all<{ delivery_id: string; at: Long }>(OLDEST, webhook_id, most);
    const beyond = yield* first<{ delivery_id: string }>(TOO_MANY, webhook_id, LIMITS.deliveriesKeptMax);
    const isGone = ({ delivery_id, at }: { delivery_id: string; at: Long }) =>
      Number(at) < before || delivery_id <= (beyond?.delivery_id ?? '');
    const last = oldest.findLast(isGone);
    if (last) rows += yield* execute(REMOVE_UP_TO, webhook_id, last.delivery_id);
    if (rows >= most) return { value: rows, keep: true, rows };
  }
  const letters = yield* all<LetterRow>(OLD_LETTERS, before, most);
  for (const { webhook_id, realm_id, first_seq } of letters) {
    rows += yield* execute(REMOVE_LETTER, webhook_id, realm_id, first_seq);
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

interface LetterRow {
  readonly webhook_id: string;
  readonly realm_id: Uuid;
  readonly first_seq: Long;
  readonly last_seq: Long;
  readonly attempts: number;
  readonly at: Long;
  readonly redelivered_at: Long | null;
}

function letterOf(row: LetterRow): DeadLetter {
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

function letterColumns(letter: DeadLetter): readonly SqlValue[] {
  const { webhookId, realm, firstSeq, lastSeq, attempts, at, redeliveredAt } = letter;
  return [webhookId, realm, firstSeq, lastSeq, attempts, at, redeliveredAt ?? null];
}

function progressColumns(webhookId: string, progress: RealmProgress): readonly SqlValue[] {
  const { realm, seq, attempts, nextAt, failedSeq, behindSince } = progress;
  return [webhookId, realm, seq, attempts, nextAt, failedSeq, behindSince];
}

/** Every text about deliveries, the claimed ones without their claim. */
export const deliveryTexts = ({ lists }: Dialect): readonly string[] => [
  ...[NEWEST, NEWEST_BEFORE, LETTERS, LETTERS_BEHIND, waitingBy(lists), RESEND, RESEND_ALL],
  ...[KEEP_PROGRESS, KEEP_DELIVERY, KEEP_LETTER, TOO_MANY, OLDEST, REMOVE_UP_TO, RECEIVERS, OLD_LETTERS],
  ...[REMOVE_LETTER, RECEIVER, LISTED],
];
