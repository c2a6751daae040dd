import type { SequencedChange } from '../../domain/change.ts';
import { LIMITS } from '../../domain/limits.ts';
import { deliveryBatches } from './message.ts';
import type { DeadLetter, Delivery } from './port.ts';
import { type DeliveryTarget, isNonEmpty, sendMessage } from './send_message.ts';

/** Undefined if this process aborted the delivery: it is repeated later. */
type IsReceived = boolean | undefined;

/** Sends a dead letter once more; it stays a dead letter if that fails. */
export async function redeliverDeadLetter(target: DeliveryTarget, deadLetter: DeadLetter): Promise<void> {
  const isReceived = await sendAll(target, deadLetter);
  if (isReceived === undefined) return;
  const redeliveredAt = isReceived ? target.deps.clock.now() : undefined;
  target.log.addDeadLetter({ ...deadLetter, attempts: 1, redeliveredAt });
  await target.log.stored();
}

async function sendAll(target: DeliveryTarget, deadLetter: DeadLetter): Promise<IsReceived> {
  const { realm, firstSeq, lastSeq } = deadLetter;
  let seq = firstSeq - 1;
  while (seq < lastSeq) {
    const rows = await target.deps.changes(realm, seq, Math.min(lastSeq - seq, LIMITS.webhookEventsMax));
    if (rows[0]?.seq !== seq + 1) return reportExpired(target, deadLetter);
    for (const { changes, upTo } of deliveryBatches(rows, target.webhook())) {
      const isReceived = await sendBatch(target, changes);
      if (!isReceived) return isReceived;
      seq = upTo;
    }
  }
  return true;
}

async function sendBatch(target: DeliveryTarget, changes: readonly SequencedChange[]): Promise<IsReceived> {
  let left = changes;
  while (isNonEmpty(left)) {
    const delivery = await sendMessage(target, left, 1);
    if (!delivery) return undefined;
    if (delivery.outcome !== 'delivered') return false;
    left = left.filter(({ seq }) => seq > delivery.lastSeq);
  }
  return true;
}

/** Logs that retention has removed the changes. */
function reportExpired({ deps, log, webhookId }: DeliveryTarget, deadLetter: DeadLetter): false {
  const { realm, firstSeq, lastSeq } = deadLetter;
  const { now, mintId } = deps.clock;
  const of = { webhookId, realm, firstSeq, lastSeq, messageId: '', status: undefined };
  const delivery: Delivery = {
    ...of,
    deliveryId: mintId(),
    attempt: 1,
    outcome: 'expired',
    durationMs: 0,
    at: now(),
  };
  log.addDelivery(delivery);
  deps.onDelivery(delivery);
  return false;
}
