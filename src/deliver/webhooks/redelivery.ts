import { LIMITS } from '../../model/limits.ts';
import type { SequencedChange } from '../../model/log/change.ts';
import { deliveryBatches } from './message.ts';
import { type DeliveryTarget, isNonEmpty, sendMessage } from './send_message.ts';
import type { DeadLetter, Delivery } from './webhook.ts';

/** Undefined if this process aborted the delivery: it is repeated later. */
type IsReceived = boolean | undefined;

/** Sends a dead letter once more; it stays a dead letter if that fails. */
export async function redeliverDeadLetter(target: DeliveryTarget, deadLetter: DeadLetter): Promise<void> {
  const isReceived = await sendAll(target, deadLetter);
  if (isReceived === undefined) return;
  await target.save(isReceived ? { received: deadLetter } : { deadLetter: { ...deadLetter, attempts: 1 } });
}

async function sendAll(target: DeliveryTarget, deadLetter: DeadLetter): Promise<IsReceived> {
  const { realm, firstSeq, lastSeq } = deadLetter;
  let seq = firstSeq - 1;
  while (seq < lastSeq) {
    const rows = await target.deps.changes(realm, seq, Math.min(lastSeq - seq, LIMITS.webhookEventsMax));
    if (rows[0]?.seq !== seq + 1) return saveExpired(target, deadLetter);
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
    if (!delivery || !(await target.save({ delivery }))) return undefined;
    if (delivery.outcome !== 'delivered') return false;
    left = left.filter(({ seq }) => seq > delivery.lastSeq);
  }
  return true;
}

/** Logs that retention has removed the changes. */
async function saveExpired(target: DeliveryTarget, deadLetter: DeadLetter): Promise<IsReceived> {
  const { attempts: _, ...changes } = deadLetter;
  const { now, mintId } = target.deps.clock;
  const delivery: Delivery = {
    ...changes,
    deliveryId: mintId(),
    messageId: '',
    attempt: 1,
    outcome: 'expired',
    status: undefined,
    durationMs: 0,
    at: now(),
  };
  target.deps.onDelivery(delivery);
  return (await target.save({ delivery })) ? false : undefined;
}
