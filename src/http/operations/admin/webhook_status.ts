import { z } from 'zod';
import { LIMITS } from '../../../domain/limits.ts';
import { DELIVERY_OUTCOMES, type Delivery, type Webhook } from '../../../events/webhooks/webhook.ts';
import { idSchema, timestampSchema } from '../../openapi/schemas.ts';
import type { AdminDeps } from './operation.ts';

const REALM_ID = '019c1318-a400-7000-8000-000000000001';
const AT = '2026-01-31T09:00:00.000Z';

const seq = z.int().min(1);
/** The changes of a message. */
export const CHANGE_RANGE = {
  realm_id: idSchema,
  first_seq: seq.meta({ description: 'The position of its first change in the realm.' }),
  last_seq: seq.meta({ description: 'The position of its last change.' }),
};

/** The result of an attempt. */
export const OUTCOME = {
  outcome: z.enum(DELIVERY_OUTCOMES).meta({
    description:
      'A 2xx response; another response; no response in time; or nothing was sent because the changes are no longer retained.',
  }),
  status: z.int().nullable().meta({ description: 'The status of the response; null without a response.' }),
  duration_ms: z.int().min(0),
};

export const deliverySchema = z
  .strictObject({
    id: idSchema,
    type: z.literal('delivery'),
    message_id: z.string().nullable().meta({
      description: 'The `webhook-id` header, the same for every attempt; null if nothing was sent.',
    }),
    ...CHANGE_RANGE,
    attempt: z.int().min(1),
    ...OUTCOME,
    at: timestampSchema,
  })
  .meta({ id: 'webhook_delivery' });

export const DELIVERY_EXAMPLE = {
  id: '019c1318-a400-7000-8000-000000000095',
  type: 'delivery',
  message_id: 'msg_2b7c5f1e0a9d4c63',
  realm_id: REALM_ID,
  first_seq: 41,
  last_seq: 42,
  attempt: 1,
  outcome: 'delivered',
  status: 204,
  duration_ms: 12,
  at: AT,
};

export function describeDelivery(each: Delivery) {
  return {
    id: each.deliveryId,
    type: 'delivery',
    message_id: each.messageId || null,
    realm_id: each.realm,
    first_seq: each.firstSeq,
    last_seq: each.lastSeq,
    attempt: each.attempt,
    outcome: each.outcome,
    status: each.status ?? null,
    duration_ms: each.durationMs,
    at: new Date(each.at).toISOString(),
  };
}

const counted = z.int().min(0).max(LIMITS.webhookLagCountedMax);

/** How a target is doing. */
export const STATUS = {
  last_delivery: deliverySchema
    .nullable()
    .meta({ description: 'The newest attempt; null if there is none.' }),
  last_error: deliverySchema.nullable().meta({ description: 'The newest attempt that failed.' }),
  behind_since: timestampSchema.nullable().meta({
    description: 'The time of the oldest change that is still to be sent; null if there is none.',
  }),
  failing_realms: counted.meta({ description: 'Realms whose message failed and is sent again.' }),
  dead_letters: counted.meta({ description: 'Messages that are no longer retried and were not received.' }),
};

export const STATUS_EXAMPLE = {
  last_delivery: DELIVERY_EXAMPLE,
  last_error: null,
  behind_since: null,
  failing_realms: 0,
  dead_letters: 0,
};

export async function describeStatus(
  webhook: Pick<Webhook, 'webhookId' | 'realms'>,
  { webhooks: { store } }: Pick<AdminDeps, 'webhooks'>,
) {
  const [{ newest, failed }, lag] = await Promise.all([
    store.newestDeliveries(webhook.webhookId),
    store.lag(webhook),
  ]);
  return {
    last_delivery: newest ? describeDelivery(newest) : null,
    last_error: failed ? describeDelivery(failed) : null,
    behind_since: lag.since === undefined ? null : new Date(lag.since).toISOString(),
    failing_realms: lag.realms,
    dead_letters: lag.deadLetters,
  };
}
