import type { SequencedChange } from '../../domain/change.ts';
import { LIMITS } from '../../domain/limits.ts';
import { backoffMs } from './backoff.ts';
import { type DeliveryBatch, deliveryBatches } from './message.ts';
import type { Delivery, RealmCursor } from './port.ts';
import { type DeliveryTarget, isNonEmpty, type NonEmpty, sendMessage } from './send_message.ts';

/** Pages that a realm sends before other realms have their turn. */
const PAGES_PER_TURN = 10;

/**
 * Sends the changes of a realm in their order and advances its cursor, until there are no more changes, a message fails, or
 * its turn ends. Returns whether it has more to send now.
 */
export async function deliverRealm(target: DeliveryTarget, cursor: RealmCursor): Promise<boolean> {
  target.sending.delete(cursor.realm);
  for (let page = 0; page < PAGES_PER_TURN; page += 1) {
    const rows = await target.deps.changes(cursor.realm, cursor.seq, LIMITS.webhookEventsMax);
    reportGap(target, cursor.seq, rows[0]);
    for (const batch of deliveryBatches(rows, target.webhook())) {
      if (!(await deliverBatch(target, cursor, batch))) return false;
    }
    if (rows.length < LIMITS.webhookEventsMax) return false;
  }
  return true;
}

/** Returns whether the realm may continue after the batch. */
async function deliverBatch(
  target: DeliveryTarget,
  cursor: RealmCursor,
  { changes, upTo }: DeliveryBatch,
): Promise<boolean> {
  let left = changes;
  while (isNonEmpty(left)) {
    const [{ at }] = left;
    target.sending.set(cursor.realm, at);
    const delivery = await sendMessage(target, upToFailed(left, cursor.failedSeq), cursor.attempts + 1);
    target.sending.delete(cursor.realm);
    if (!delivery) return false;
    if (delivery.outcome !== 'delivered' && !isGivenUp(target, delivery)) {
      retryLater(target, cursor, delivery, at);
      return false;
    }
    advance(target, cursor, delivery.lastSeq);
    left = left.filter(({ seq }) => seq > delivery.lastSeq);
  }
  if (upTo > cursor.seq) advance(target, cursor, upTo);
  return true;
}

/** A failed message is sent again unchanged, with the same ID, even if there are newer changes. */
function upToFailed(changes: NonEmpty<SequencedChange>, failedSeq: number): NonEmpty<SequencedChange> {
  const failed = changes.filter(({ seq }) => seq <= failedSeq);
  return isNonEmpty(failed) ? failed : changes;
}

function advance({ log }: DeliveryTarget, cursor: RealmCursor, seq: number): void {
  Object.assign(cursor, { seq, attempts: 0, nextAt: 0, failedSeq: 0 });
  const { realm } = cursor;
  log.addProgress({ realm, seq, attempts: 0, nextAt: 0, failedSeq: 0, behindSince: 0 });
}

function retryLater(
  { deps, log }: DeliveryTarget,
  cursor: RealmCursor,
  { attempt: attempts, lastSeq: failedSeq }: Delivery,
  behindSince: number,
): void {
  const nextAt = deps.clock.now() + backoffMs(attempts, Math.random());
  Object.assign(cursor, { attempts, nextAt, failedSeq });
  const { realm, seq } = cursor;
  log.addProgress({ realm, seq, attempts, nextAt, failedSeq, behindSince });
}

/** After `webhookAttemptsMax` attempts a message becomes a dead letter, so that later changes are delivered. */
function isGivenUp({ deps, log, webhookId }: DeliveryTarget, delivery: Delivery): boolean {
  const { realm, firstSeq, lastSeq, attempt: attempts } = delivery;
  if (attempts < LIMITS.webhookAttemptsMax) return false;
  const at = deps.clock.now();
  log.addDeadLetter({ webhookId, realm, firstSeq, lastSeq, attempts, at, redeliveredAt: undefined });
  deps.onDeadLetter(webhookId);
  return true;
}

/** Records a dead letter for changes that retention removed before they were delivered, so that the loss is visible. */
function reportGap(
  { deps, log, webhookId }: DeliveryTarget,
  seq: number,
  next: SequencedChange | undefined,
): void {
  if (!next || next.seq === seq + 1) return;
  const lost = { webhookId, realm: next.realm, firstSeq: seq + 1, lastSeq: next.seq - 1, attempts: 1 };
  log.addDeadLetter({ ...lost, at: deps.clock.now(), redeliveredAt: undefined });
  deps.onDeadLetter(webhookId);
}
