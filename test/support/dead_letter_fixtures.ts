import type { Uuid } from '../../src/domain/id.ts';
import { LIMITS } from '../../src/domain/limits.ts';
import type { DeadLetter, Delivery } from '../../src/events/webhooks/port.ts';
import { systemClock } from '../../src/platform/clock.ts';
import type { Service } from './service.ts';

/**
 * Writes down that a target was not told the first changes of a realm (unless said, of one that is gone), each with its last
 * attempt: what a day of attempts in vain comes to.
 */
export async function createDeadLetters(
  { db }: Pick<Service, 'db'>,
  webhookId: string,
  count: number,
  realm: Uuid = systemClock.mintId(),
): Promise<void> {
  const { webhooks, leases } = db.engine;
  const lease = { name: `test ${webhookId}`, holder: 'test' };
  await leases.replace({ ...lease, until: 1 }, undefined);
  const places = Array.from({ length: count }, (_, at) => ({ realm, firstSeq: at + 1, lastSeq: at + 1 }));
  const deadLetters = places.map((place): DeadLetter => {
    const attempts = LIMITS.webhookAttemptsMax;
    return { webhookId, ...place, attempts, at: systemClock.now(), redeliveredAt: undefined };
  });
  const deliveries = places.map(
    (place): Delivery => ({
      deliveryId: systemClock.mintId(),
      messageId: `msg_${place.firstSeq}`,
      webhookId,
      ...place,
      attempt: LIMITS.webhookAttemptsMax,
      outcome: 'refused',
      status: 503,
      durationMs: 1,
      at: systemClock.now(),
    }),
  );
  if (!(await webhooks.saveResults(lease, { webhookId, progress: [], deliveries, deadLetters }))) {
    throw new Error(`there is no target ${webhookId}`);
  }
}
