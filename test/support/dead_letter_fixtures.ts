import type { Uuid } from '../../src/domain/id.ts';
import { LIMITS } from '../../src/domain/limits.ts';
import type { DeadLetter, Delivery } from '../../src/events/webhooks/port.ts';
import { systemClock } from '../../src/platform/clock.ts';
import type { Service } from './service.ts';

/**
 * Stores dead letters for the first changes of a realm, each with its last failed delivery, as a day of failed attempts does.
 * By default the realm does not exist.
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
  const ranges = Array.from({ length: count }, (_, at) => ({ realm, firstSeq: at + 1, lastSeq: at + 1 }));
  const deadLetters = ranges.map((range): DeadLetter => {
    const attempts = LIMITS.webhookAttemptsMax;
    return { webhookId, ...range, attempts, at: systemClock.now(), redeliveredAt: undefined };
  });
  const deliveries = ranges.map(
    (range): Delivery => ({
      deliveryId: systemClock.mintId(),
      messageId: `msg_${range.firstSeq}`,
      webhookId,
      ...range,
      attempt: LIMITS.webhookAttemptsMax,
      outcome: 'refused',
      status: 503,
      durationMs: 1,
      at: systemClock.now(),
    }),
  );
  if (!(await webhooks.saveResults(lease, { webhookId, progress: [], deliveries, deadLetters }))) {
    throw new Error(`there is no webhook target ${webhookId}`);
  }
}
