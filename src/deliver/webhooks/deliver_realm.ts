import type { Uuid } from '../../model/id.ts';
import { LIMITS } from '../../model/limits.ts';
import type { SequencedChange } from '../../model/log/change.ts';
import { progressAt } from '../store/progress.ts';
import { backoffMs } from './backoff.ts';
import { type DeliveryBatch, deliveryBatches } from './message.ts';
import { type DeliveryTarget, isNonEmpty, type NonEmpty, sendMessage } from './send_message.ts';
import type { DeadLetter, Delivery, RealmProgress } from './webhook.ts';

/** Pages that a realm sends before other realms have their turn. */
const PAGES_PER_TURN = 10;

/**
 * Sends the changes of a realm in their order and stores its progress, until there are no more changes, a message fails, or
 * its turn ends. Returns whether it has more to send now.
 */
export async function deliverRealm(target: DeliveryTarget, realm: Uuid): Promise<boolean> {
  const { deps, webhookId, webhook } = target;
  let progress: RealmProgress | undefined = await deps.store.progress(webhookId, realm);
  if (progress.nextAt > deps.clock.now()) return false;
  for (let page = 0; page < PAGES_PER_TURN; page += 1) {
    const rows = await deps.changes(realm, progress.seq, LIMITS.webhookEventsMax);
    progress = await skipGap(target, progress, rows[0]);
    for (const batch of deliveryBatches(rows, webhook())) {
      progress = progress && (await deliverBatch(target, progress, batch));
    }
    if (!progress || rows.length < LIMITS.webhookEventsMax) return false;
  }
  return true;
}

/** Returns the progress after the batch; undefined if the realm may not continue. */
async function deliverBatch(
  target: DeliveryTarget,
  before: RealmProgress,
  { changes, upTo }: DeliveryBatch,
): Promise<RealmProgress | undefined> {
  let progress = before;
  let left = changes;
  while (isNonEmpty(left)) {
    const delivery = await sendMessage(target, upToFailed(left, progress.failedSeq), progress.attempts + 1);
    if (!delivery) return undefined;
    const [{ at }] = left;
    left = left.filter(({ seq }) => seq > delivery.lastSeq);
    const { outcome, attempt: attempts, lastSeq } = delivery;
    if (outcome !== 'delivered' && attempts < LIMITS.webhookAttemptsMax) {
      const nextAt = target.deps.clock.now() + backoffMs(attempts, Math.random());
      const retry = { ...progress, attempts, nextAt, failedSeq: lastSeq, behindSince: at };
      await target.save({ delivery, progress: retry });
      return undefined;
    }
    progress = progressAt(progress.realm, left.length > 0 ? lastSeq : upTo);
    // After its last attempt a message that was not received becomes a dead letter, so that later changes are delivered.
    const deadLetter = outcome === 'delivered' ? undefined : lostMessage(target, delivery, attempts);
    if (!(await target.save({ delivery, progress, deadLetter }))) return undefined;
  }
  if (upTo <= progress.seq) return progress;
  progress = progressAt(progress.realm, upTo);
  return (await target.save({ progress })) ? progress : undefined;
}

/** A failed message is sent again unchanged, with the same ID, even if there are newer changes. */
function upToFailed(changes: NonEmpty<SequencedChange>, failedSeq: number): NonEmpty<SequencedChange> {
  const failed = changes.filter(({ seq }) => seq <= failedSeq);
  return isNonEmpty(failed) ? failed : changes;
}

function lostMessage(
  { deps, webhookId }: DeliveryTarget,
  { realm, firstSeq, lastSeq }: Pick<Delivery, 'realm' | 'firstSeq' | 'lastSeq'>,
  attempts: number,
): DeadLetter {
  return { webhookId, realm, firstSeq, lastSeq, attempts, at: deps.clock.now() };
}

/** Records a dead letter for changes that retention removed before they were delivered, so that the loss is visible. */
async function skipGap(
  target: DeliveryTarget,
  before: RealmProgress,
  next: SequencedChange | undefined,
): Promise<RealmProgress | undefined> {
  if (!next || next.seq === before.seq + 1) return before;
  const { realm } = before;
  const lost = { realm, firstSeq: before.seq + 1, lastSeq: next.seq - 1 };
  const progress = progressAt(realm, lost.lastSeq);
  return (await target.save({ progress, deadLetter: lostMessage(target, lost, 1) })) ? progress : undefined;
}
