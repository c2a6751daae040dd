import { z } from 'zod';
import { Fault } from '../../../domain/fault.ts';
import { parseUuid } from '../../../domain/id.ts';
import {
  DELIVERY_OUTCOMES,
  type DeadLetter,
  type DeadLetterKey,
  type Delivery,
} from '../../../events/webhooks/port.ts';
import { requestRedelivery } from '../../../events/webhooks/targets.ts';
import { idSchema, link, timestampSchema } from '../../openapi/schemas.ts';
import { managedOperation } from './managed.ts';
import { linksExample, pageBody, pageParameters, pageRangeOf, pageSchema } from './page.ts';
import { NAMED_WEBHOOK, WEBHOOK_ID, webhookAt, webhookPath } from './webhooks.ts';

const REALM_ID = '019c1318-a400-7000-8000-000000000001';
const DELIVERY_ID = '019c1318-a400-7000-8000-000000000095';
const EXAMPLE_DEAD_LETTER_ID = `${REALM_ID}.42`;
const AT = '2026-01-31T09:00:00.000Z';

const seq = z.int().min(1);
const changeRange = {
  realm_id: idSchema,
  first_seq: seq.meta({ description: 'The position of its first change in the realm.' }),
  last_seq: seq.meta({ description: 'The position of its last change.' }),
};

const delivery = z
  .strictObject({
    id: idSchema,
    type: z.literal('delivery'),
    message_id: z.string().nullable().meta({
      description: 'The `webhook-id` header, the same for every attempt; null if nothing was sent.',
    }),
    ...changeRange,
    attempt: z.int().min(1),
    outcome: z.enum(DELIVERY_OUTCOMES).meta({
      description:
        'A 2xx response; another response; no response in time; or nothing was sent because the changes are no longer retained.',
    }),
    status: z.int().nullable().meta({ description: 'The status of the response; null without a response.' }),
    duration_ms: z.int().min(0),
    at: timestampSchema,
  })
  .meta({ id: 'webhook_delivery' });

const deadLetter = z
  .strictObject({
    id: z.string().meta({ description: 'The realm and the position of its first change.' }),
    type: z.literal('dead_letter'),
    ...changeRange,
    state: z.enum(['dead', 'waiting', 'redelivered']).meta({
      description: 'Given up, waiting to be sent again, or received after a redelivery.',
    }),
    attempts: z
      .int()
      .min(0)
      .meta({ description: 'The number of attempts; 0 while it waits to be sent again.' }),
    at: timestampSchema.meta({ description: 'The time at which it was given up.' }),
    redelivered_at: timestampSchema.nullable(),
  })
  .meta({ id: 'webhook_dead_letter' });

const redelivery = z
  .strictObject({
    data: z.strictObject({
      id: z.string().meta({ description: 'The ID of the target.' }),
      type: z.literal('redelivery'),
      dead_letters: z.int().min(0).meta({ description: 'The number of dead letters that are sent again.' }),
    }),
    links: z.strictObject({ dead_letters: link, deliveries: link }),
  })
  .meta({ id: 'webhook_redelivery' });

function describeDelivery(each: Delivery) {
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

function describeDeadLetter({ realm, firstSeq, lastSeq, attempts, at, redeliveredAt }: DeadLetter) {
  const waits = attempts === 0 ? 'waiting' : 'dead';
  return {
    id: `${realm}.${firstSeq}`,
    type: 'dead_letter',
    realm_id: realm,
    first_seq: firstSeq,
    last_seq: lastSeq,
    state: redeliveredAt === undefined ? waits : 'redelivered',
    attempts,
    at: new Date(at).toISOString(),
    redelivered_at: redeliveredAt === undefined ? null : new Date(redeliveredAt).toISOString(),
  };
}

/** The ID of a dead letter: its realm and the position of its first change. */
const DEAD_LETTER_ID = /^([0-9a-f-]{36})\.([1-9]\d{0,14})$/;

function deadLetterPosition(id: string): DeadLetterKey | undefined {
  const [, realm = '', firstSeq] = DEAD_LETTER_ID.exec(id) ?? [];
  const read = parseUuid(realm);
  return read && { realm: read, firstSeq: Number(firstSeq) };
}

const ALL = '*';

/** Deliveries and dead letters of webhook targets. */
export const DELIVERY_OPERATIONS = [
  managedOperation({
    name: 'list-deliveries',
    method: 'GET',
    path: '/webhooks/:webhook_id/deliveries',
    summary: 'List the recent delivery attempts of a target, newest first.',
    params: NAMED_WEBHOOK,
    query: z.object(pageParameters({ pattern: /^[0-9a-f-]{36}$/, example: DELIVERY_ID })),
    success: {
      status: 200,
      description: 'The attempts. Of a response, only the status is stored.',
      schema: pageSchema(delivery, 'webhook_delivery.page'),
      example: {
        data: [
          {
            id: DELIVERY_ID,
            type: 'delivery',
            message_id: 'msg_2b7c5f1e0a9d4c63',
            ...{ realm_id: REALM_ID, first_seq: 41, last_seq: 42, attempt: 1 },
            ...{ outcome: 'delivered', status: 204, duration_ms: 12, at: AT },
          },
        ],
        meta: { page: { limit: 25 } },
        links: linksExample(`/webhooks/${WEBHOOK_ID}/deliveries`),
      },
    },
    faults: ['not_found'],
    async handle(request, deps) {
      const { webhookId } = await webhookAt(request, deps);
      const wanted = pageRangeOf(request.query);
      const rows = await deps.webhooks.store.deliveries(webhookId, wanted.after, wanted.limit);
      const url = request.url(webhookPath(webhookId, '/deliveries'));
      return { body: pageBody(rows.map(describeDelivery), wanted, url) };
    },
  }),
  managedOperation({
    name: 'list-dead-letters',
    method: 'GET',
    path: '/webhooks/:webhook_id/dead-letters',
    summary:
      'List the dead letters of a target: messages that are no longer retried, ordered by realm and position.',
    params: NAMED_WEBHOOK,
    query: z.object(pageParameters({ pattern: DEAD_LETTER_ID, example: EXAMPLE_DEAD_LETTER_ID })),
    success: {
      status: 200,
      description: 'The dead letters, including redelivered ones.',
      schema: pageSchema(deadLetter, 'webhook_dead_letter.page'),
      example: {
        data: [
          {
            ...{
              id: EXAMPLE_DEAD_LETTER_ID,
              type: 'dead_letter',
              realm_id: REALM_ID,
              first_seq: 42,
              last_seq: 42,
            },
            ...{ state: 'dead', attempts: 296, at: AT, redelivered_at: null },
          },
        ],
        meta: { page: { limit: 25 } },
        links: linksExample(`/webhooks/${WEBHOOK_ID}/dead-letters`),
      },
    },
    faults: ['not_found'],
    async handle(request, deps) {
      const { webhookId } = await webhookAt(request, deps);
      const wanted = pageRangeOf(request.query);
      const after = deadLetterPosition(wanted.after ?? '');
      const rows = await deps.webhooks.store.deadLetters(webhookId, after, wanted.limit);
      const url = request.url(webhookPath(webhookId, '/dead-letters'));
      return { body: pageBody(rows.map(describeDeadLetter), wanted, url) };
    },
  }),
  managedOperation({
    name: 'redeliver-webhook',
    method: 'POST',
    path: '/webhooks/:webhook_id/redeliver',
    summary: 'Send one dead letter again, or with `*` all that were not received.',
    params: NAMED_WEBHOOK,
    data: {
      schema: z.object({
        dead_letter: z
          .string()
          .refine((id) => id === ALL || deadLetterPosition(id) !== undefined, {
            error: 'must be * or the id of a dead letter',
          })
          .meta({ pattern: `^(\\*|[0-9a-f-]{36}\\.[1-9]\\d{0,14})$` }),
      }),
      example: { dead_letter: ALL },
    },
    success: {
      status: 202,
      description: 'Each is sent once within seconds; the deliveries show the outcome.',
      schema: redelivery,
      example: {
        data: { id: WEBHOOK_ID, type: 'redelivery', dead_letters: 1 },
        links: {
          dead_letters: `https://idp.example/admin/v1/webhooks/${WEBHOOK_ID}/dead-letters`,
          deliveries: `https://idp.example/admin/v1/webhooks/${WEBHOOK_ID}/deliveries`,
        },
      },
    },
    faults: ['not_found', 'conflict', 'unknown_outcome'],
    async handle(request, deps) {
      const { webhookId } = await webhookAt(request, deps);
      const which = deadLetterPosition(request.data.dead_letter);
      const count = await requestRedelivery(deps.webhooks.store, webhookId, which, request.auditContext);
      if (which && count === 0) {
        throw new Fault('conflict', [
          { field: 'data.dead_letter', rule: 'is no dead letter of this target' },
        ]);
      }
      const below = (name: string) => request.url(webhookPath(webhookId, `/${name}`));
      return {
        body: {
          data: { id: webhookId, type: 'redelivery', dead_letters: count },
          links: { dead_letters: below('dead-letters'), deliveries: below('deliveries') },
        },
      };
    },
  }),
] as const;
