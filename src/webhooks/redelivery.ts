import type { SequencedChange } from '../domain/change.ts';
import { LIMITS } from '../domain/limits.ts';
import { isSome, type Line, sendSome } from './line.ts';
import { portionsOf } from './message.ts';
import type { DeadLetter, Delivery } from './port.ts';

/** What became of it: undefined where we broke it off, and it is sent again later. */
type Received = boolean | undefined;

/** Sends what was given up once more; where that fails it stays a dead letter. */
export async function sendAgain(line: Line, letter: DeadLetter): Promise<void> {
  const isReceived = await sendAll(line, letter);
  if (isReceived === undefined) return;
  const redeliveredAt = isReceived ? line.rooms.ambient.now() : undefined;
  line.ledger.noteLetter({ ...letter, attempts: 1, redeliveredAt });
  await line.ledger.settled();
}

async function sendAll(line: Line, letter: DeadLetter): Promise<Received> {
  const { realm, firstSeq, lastSeq } = letter;
  let seq = firstSeq - 1;
  while (seq < lastSeq) {
    const rows = await line.rooms.changes(realm, seq, Math.min(lastSeq - seq, LIMITS.webhookEventsMax));
    if (rows[0]?.seq !== seq + 1) return noteExpired(line, letter);
    for (const { changes, upTo } of portionsOf(rows, line.webhook())) {
      const isReceived = await sendPortion(line, changes);
      if (!isReceived) return isReceived;
      seq = upTo;
    }
  }
  return true;
}

async function sendPortion(line: Line, changes: readonly SequencedChange[]): Promise<Received> {
  let left = changes;
  while (isSome(left)) {
    const delivery = await sendSome(line, left, 1);
    if (!delivery) return undefined;
    if (delivery.outcome !== 'delivered') return false;
    left = left.filter(({ seq }) => seq > delivery.lastSeq);
  }
  return true;
}

/** What is not kept any more cannot be sent. */
function noteExpired({ rooms, ledger, webhookId }: Line, letter: DeadLetter): false {
  const { realm, firstSeq, lastSeq } = letter;
  const { now, mintId } = rooms.ambient;
  const of = { webhookId, realm, firstSeq, lastSeq, messageId: '', status: undefined };
  const delivery: Delivery = {
    ...of,
    deliveryId: mintId(),
    attempt: 1,
    outcome: 'expired',
    durationMs: 0,
    at: now(),
  };
  ledger.noteDelivery(delivery);
  rooms.onDelivery(delivery);
  return false;
}
