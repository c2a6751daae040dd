import type { DeliveryResult } from '../../src/deliver/webhooks/webhook.ts';
import type { Uuid } from '../../src/model/id.ts';
import { LIMITS } from '../../src/model/limits.ts';
import { systemClock } from '../../src/ops/process/clock.ts';
import type { Service } from './service.ts';
import { holdLease } from './webhook_service.ts';

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
  const lease = await holdLease({ db });
  const attempts = LIMITS.webhookAttemptsMax;
  for (let seq = 1; seq <= count; seq += 1) {
    const range = { webhookId, realm, firstSeq: seq, lastSeq: seq };
    const result: DeliveryResult = {
      webhookId,
      deadLetter: { ...range, attempts, at: systemClock.now() },
      delivery: {
        ...range,
        deliveryId: systemClock.mintId(),
        messageId: `msg_${seq}`,
        attempt: attempts,
        outcome: 'refused',
        status: 503,
        durationMs: 1,
        at: systemClock.now(),
      },
    };
    if (!(await db.engine.webhooks.saveResult(lease, result))) {
      throw new Error(`there is no webhook target ${webhookId}`);
    }
  }
}
