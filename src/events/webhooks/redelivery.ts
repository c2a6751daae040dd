import type { SequencedChange } from '../../domain/change.ts';
import { LIMITS } from '../../domain/limits.ts';
import { deliveryBatches } from './message.ts';
import type { DeadLetter, Delivery } from './port.ts';
import { type DeliveryTarget, isNonEmpty, sendMessage } from './send_message.ts';

/** Undefined where this process broke it off: then it is sent again later. */
type IsReceived = boolean | undefined;

/** Sends a dead letter once more; where that fails it remains one. */
export async function redeliverDeadLetter(target: DeliveryTarget, letter: DeadLetter): Promise<void> {
  const isReceived = await sendAll(target, letter);
  if (isReceived === undefined) return;
  const redeliveredAt = isReceived ? target.deps.clock.now() : undefined;
  target.log.addDeadLetter({ ...letter, attempts: 1, redeliveredAt });
  await target.log.stored();
}

async function sendAll(target: DeliveryTarget, letter: DeadLetter): Promise<IsReceived> {
  const { realm, firstSeq, lastSeq } = letter;
  let seq = firstSeq - 1;
  while (seq < lastSeq) {
    const rows = await target.deps.changes(realm, seq, Math.min(lastSeq - seq, LIMITS.webhookEventsMax));
    if (rows[0]?.seq !== seq + 1) return reportExpired(target, letter);
    for (const { changes, upTo } of deliveryBatches(rows, target.webhook())) {
      const isReceived = await sendPortion(target, changes);
      if (!isReceived) return isReceived;
      seq = upTo;
    }
  }
  return true;
}

async function sendPortion(target: DeliveryTarget, changes: readonly SequencedChange[]): Promise<IsReceived> {
  let left = changes;
  while (isNonEmpty(left)) {
    const delivery = await sendMessage(target, left, 1);
    if (!delivery) return undefined;
    if (delivery.outcome !== 'delivered') return false;
    left = left.filter(({ seq }) => seq > delivery.lastSeq);
  }
  return true;
}

/** Changes that retention removed cannot be sent. */
function reportExpired({ deps, log, webhookId }: DeliveryTarget, letter: DeadLetter): false {
  const { realm, firstSeq, lastSeq } = letter;
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
