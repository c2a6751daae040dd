import { NIL_UUID } from '../../model/id.ts';
import { LIMITS } from '../../model/limits.ts';
import type { AuditEntry } from '../../model/log/audit_entry.ts';
import type { Dialect } from '../../sql/dialect.ts';
import { LEASE_TEXTS, type Lease } from '../../sql/leases.ts';
import { deadLetterTable, deliveryTable, progressTable } from '../../sql/tables/webhooks.ts';
import {
  all,
  execute,
  executeAll,
  first,
  type Row,
  type Statement,
  type Work,
  type WorkResult,
} from '../../sql/transaction_work.ts';
import type { Transactions } from '../../sql/transactions.ts';
import type { DeadLetterKey, Delivery, DeliveryResult } from '../webhooks/webhook.ts';

const REQUEUE = 'update dead_letter set attempts = 0 where webhook_id = ?';
const RETRY = 'update webhook_progress set next_at = 1 where webhook_id = ? and next_at > 0';

/** Every statement about deliveries and dead letters. */
export const deliveryTexts = ({ rowLocks, lists: { indexHint: by } }: Dialect) => ({
  isHeld: `${LEASE_TEXTS.isHeld}${rowLocks.shared}`,
  target: `select realms from webhook where webhook_id = ?${rowLocks.shared}`,
  saveProgress: `${progressTable.insert} on conflict (webhook_id, realm_id) do update
    set ${progressTable.replacement}`,
  /** A result whose commit had an unknown outcome is stored again. */
  saveDelivery: `${deliveryTable.insert} on conflict do nothing`,
  saveDeadLetter: `${deadLetterTable.insert} on conflict (webhook_id, realm_id, first_seq) do update
    set last_seq = excluded.last_seq, attempts = excluded.attempts`,
  newestBefore: `${deliveryTable.select} where webhook_id = ? and delivery_id < ? order by delivery_id desc limit ?`,
  newestFailed: `${deliveryTable.select}${by('delivery_failed')}
    where webhook_id = ? and outcome <> 'delivered' order by delivery_id desc limit 1`,
  deadLettersAfter: `${deadLetterTable.select} where webhook_id = ? and (realm_id, first_seq) > (?, ?)
    order by realm_id, first_seq limit ?`,
  pending: `${deadLetterTable.select}${by('dead_letter_waiting')} where webhook_id = ? and attempts = 0
    order by realm_id, first_seq limit ?`,
  requeue: `${REQUEUE} and realm_id = ? and first_seq = ?`,
  requeueAll: REQUEUE,
  retry: `${RETRY} and realm_id = ? and seq < ? and failed_seq >= ?`,
  retryAll: RETRY,
  targets: 'select webhook_id from webhook order by webhook_id',
  tooMany: 'select delivery_id from delivery where webhook_id = ? order by delivery_id desc limit 1 offset ?',
  removeOld: `delete from delivery where webhook_id = ? and delivery_id in (select delivery_id
    from (select delivery_id, at from delivery where webhook_id = ? order by delivery_id limit ?) as oldest
    where at < ? or delivery_id <= ?)`,
  removeOldDeadLetters: `delete from dead_letter where (webhook_id, realm_id, first_seq) in
    (select webhook_id, realm_id, first_seq from dead_letter where at < ? limit ?)`,
  removeDeadLetter: 'delete from dead_letter where webhook_id = ? and realm_id = ? and first_seq = ?',
});

type Texts = ReturnType<typeof deliveryTexts>;

/** Greater than the ID of every delivery, which is a UUID. */
const AFTER_ALL = 'g';

const readDelivery = (row: Row) => deliveryTable.read(row) as Delivery;

/** Deliveries and dead letters. */
export function openDeliveries({ read, write }: Transactions, dialect: Dialect) {
  const sql = deliveryTexts(dialect);

  return {
    /** The newest deliveries, or those before a delivery ID. */
    deliveries: (webhookId: string, before: string | undefined, limit: number) =>
      read(function* () {
        return (yield* all(sql.newestBefore, webhookId, before ?? AFTER_ALL, limit)).map(readDelivery);
      }),
    /** The newest delivery, and the newest that failed. */
    newestDeliveries: (webhookId: string) =>
      read(function* () {
        const newest = yield* first(sql.newestBefore, webhookId, AFTER_ALL, 1);
        const failed = yield* first(sql.newestFailed, webhookId);
        return { newest: newest && readDelivery(newest), failed: failed && readDelivery(failed) };
      }),
    /** Dead letters after a key. */
    deadLetters: (webhookId: string, after: DeadLetterKey | undefined, limit: number) =>
      read(function* () {
        const { realm, firstSeq } = after ?? { realm: NIL_UUID, firstSeq: 0 };
        return (yield* all(sql.deadLettersAfter, webhookId, realm, firstSeq, limit)).map(
          deadLetterTable.read,
        );
      }),
    /**
     * Queues a dead letter for redelivery, or makes the retry of a failed message due; with undefined all of them that were not
     * received. Returns how many.
     */
    requestRedelivery: (webhookId: string, which: DeadLetterKey | undefined, auditEntry: AuditEntry) =>
      write('instance', function* () {
        const deadLetters = which
          ? yield* execute(sql.requeue, webhookId, which.realm, which.firstSeq)
          : yield* execute(sql.requeueAll, webhookId);
        const retries = which
          ? yield* execute(sql.retry, webhookId, which.realm, which.firstSeq, which.firstSeq)
          : yield* execute(sql.retryAll, webhookId);
        const keep = deadLetters + retries > 0;
        return { value: { deadLetters, retries }, keep, auditEntries: [auditEntry] };
      }),
    /** Dead letters that wait for redelivery, oldest first. */
    pendingDeadLetters: (webhookId: string, limit: number) =>
      read(function* () {
        return (yield* all(sql.pending, webhookId, limit)).map(deadLetterTable.read);
      }),
    /** Stores the result of a message. Returns false, and stores nothing, if the lease has another holder. */
    saveResult: (lease: Pick<Lease, 'name' | 'holder'>, result: DeliveryResult) =>
      write([], () => saveResult(sql, lease, result)),
    /** Deletes a bounded number of deliveries and dead letters from before a time. Returns how many. */
    trim: (before: number) => write([], () => trim(sql, before)),
  };
}

function* saveResult(
  sql: Texts,
  lease: Pick<Lease, 'name' | 'holder'>,
  { webhookId, progress, delivery, deadLetter, received }: DeliveryResult,
): Work<WorkResult<boolean>> {
  if (!(yield* first(sql.isHeld, lease.name, lease.holder))) return { value: false, keep: false };
  const target = yield* first<{ readonly realms: string }>(sql.target, webhookId);
  if (!target) return { value: false, keep: false };
  const statements: Statement[] = [];
  // Not in a realm that was removed from the target meanwhile.
  if (progress && (target.realms === '*' || target.realms.includes(progress.realm))) {
    statements.push({ text: sql.saveProgress, values: progressTable.values({ webhookId, ...progress }) });
  }
  if (delivery) statements.push({ text: sql.saveDelivery, values: deliveryTable.values(delivery) });
  if (deadLetter) statements.push({ text: sql.saveDeadLetter, values: deadLetterTable.values(deadLetter) });
  if (received) {
    statements.push({ text: sql.removeDeadLetter, values: [webhookId, received.realm, received.firstSeq] });
  }
  yield* executeAll(statements);
  return { value: true, keep: true };
}

/** Deletes deliveries that are too old or beyond the newest ones of their target, and old dead letters. */
function* trim(sql: Texts, before: number): Work<WorkResult<number>> {
  const most = LIMITS.cascadeRecordsMax;
  let rows = 0;
  for (const { webhook_id } of yield* all<{ webhook_id: string }>(sql.targets)) {
    const beyond = yield* first<{ delivery_id: string }>(sql.tooMany, webhook_id, LIMITS.deliveriesKeptMax);
    const values = [webhook_id, webhook_id, most, before, beyond?.delivery_id ?? ''];
    rows += yield* execute(sql.removeOld, ...values);
    if (rows >= most) return { value: rows, keep: true, rows };
  }
  rows += yield* execute(sql.removeOldDeadLetters, before, most);
  return { value: rows, keep: rows > 0, rows };
}
