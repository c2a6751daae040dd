import { z } from 'zod';
import { DELIVERY_OUTCOMES, type Delivery, type Webhook } from '../../../deliver/webhooks/webhook.ts';
import { LIMITS } from '../../../model/limits.ts';
import { realm } from '../../../model/resources.ts';
import { EXAMPLE_AT, exampleIdOf } from '../../openapi/examples.ts';
import { idSchema, timestampSchema } from '../../openapi/schemas.ts';
import { instant, type ProjectedMembers, type Projection, projector } from '../projection.ts';
import { type AdminDeps, answerForm } from './operation.ts';

export const WEBHOOK_ID = '019c1318-a400-7000-8000-000000000096';

const seq = z.int().min(1);
/** The changes of a message. */
export const CHANGE_RANGE: ProjectedMembers<Pick<Delivery, 'realm' | 'firstSeq' | 'lastSeq'>> = {
  realm_id: [idSchema, ({ realm }) => realm],
  first_seq: seq.meta({ description: 'The position of its first change in the realm.' }),
  last_seq: seq.meta({ description: 'The position of its last change.' }),
};

/** The result of an attempt. */
export const OUTCOME: ProjectedMembers<Pick<Delivery, 'outcome' | 'status' | 'durationMs'>> = {
  outcome: z.enum(DELIVERY_OUTCOMES).meta({
    description:
      'A 2xx response; another response; no response in time; or nothing was sent because the changes are no longer retained.',
  }),
  status: z.int().nullable().meta({ description: 'The status of the response; null without a response.' }),
  duration_ms: z.int().min(0),
};

const DELIVERY: ProjectedMembers<Delivery> = {
  id: [idSchema, ({ deliveryId }) => deliveryId],
  type: 'delivery',
  message_id: [
    z.string().nullable().meta({
      description: 'The `webhook-id` header, the same for every attempt; null if nothing was sent.',
    }),
    ({ messageId }) => messageId || null,
  ],
  ...CHANGE_RANGE,
  attempt: z.int().min(1),
  ...OUTCOME,
  at: instant(({ at }) => at),
};
export const EXAMPLE_DELIVERY = {
  deliveryId: '019c1318-a400-7000-8000-000000000095',
  webhookId: WEBHOOK_ID,
  messageId: 'msg_2b7c5f1e0a9d4c63',
  realm: exampleIdOf(realm),
  firstSeq: 41,
  lastSeq: 42,
  attempt: 1,
  outcome: 'delivered',
  status: 204,
  durationMs: 12,
  at: EXAMPLE_AT,
} as const satisfies Delivery;
export const SHOWN_DELIVERY = answerForm('webhook_delivery', DELIVERY, EXAMPLE_DELIVERY);

export type TargetStatus = Awaited<ReturnType<typeof readStatus>>;

/** Reads how a target is doing. */
export async function readStatus(
  webhook: Pick<Webhook, 'webhookId' | 'realms'>,
  { webhooks: { store } }: Pick<AdminDeps, 'webhooks'>,
) {
  const [attempts, lag] = await Promise.all([store.newestDeliveries(webhook.webhookId), store.lag(webhook)]);
  return { ...attempts, ...lag };
}

const describeDelivery = projector(DELIVERY);
const counted = z.int().min(0).max(LIMITS.webhookLagCountedMax);

/** An attempt, or null. */
const attempt = (of: 'newest' | 'failed', description: string): Projection<TargetStatus> => [
  () => SHOWN_DELIVERY.schema().nullable().meta({ description }),
  ({ [of]: found }) => (found ? describeDelivery(found) : null),
];

export const STATUS: ProjectedMembers<TargetStatus> = {
  last_delivery: attempt('newest', 'The newest attempt; null if there is none.'),
  last_error: attempt('failed', 'The newest attempt that failed.'),
  behind_since: instant(
    ({ behindSince }) => behindSince,
    timestampSchema.nullable().meta({
      description: 'The time of the oldest change that is still to be sent; null if there is none.',
    }),
  ),
  failing_realms: counted.meta({ description: 'Realms whose message failed and is sent again.' }),
  dead_letters: counted.meta({ description: 'Messages that are no longer retried and were not received.' }),
};

export const EXAMPLE_STATUS: TargetStatus = {
  newest: EXAMPLE_DELIVERY,
  failed: undefined,
  behindSince: undefined,
  failingRealms: 0,
  deadLetters: 0,
};
