import { z } from 'zod';
import { Fault } from '../../../domain/fault.ts';
import { parseUuid } from '../../../domain/id.ts';
import { assertGenuine } from '../../../domain/managed.ts';
import { requestRedelivery } from '../../../events/webhooks/targets.ts';
import type { DeadLetter, DeadLetterKey, Webhook } from '../../../events/webhooks/webhook.ts';
import { link, timestampSchema } from '../../openapi/schemas.ts';
import { instant, type ProjectedMembers, projectionSchema, projector } from '../projection.ts';
import { type ManagedDeps, managedOperation } from './managed.ts';
import { ADMIN_PATH, adminOperation, singleAnswer } from './operation.ts';
import { listOperation } from './page.ts';
import {
  CHANGE_RANGE,
  DELIVERY_EXAMPLE,
  deliverySchema,
  describeDelivery,
  OUTCOME,
  readStatus,
  STATUS,
  STATUS_EXAMPLE,
} from './webhook_status.ts';
import { NAMED_WEBHOOK, WEBHOOK_ID, webhookAt, webhookPath } from './webhooks.ts';

const DEAD_LETTER: ProjectedMembers<DeadLetter> = {
  id: [
    z.string().meta({ description: 'The realm and the position of its first change.' }),
    ({ realm, firstSeq }) => `${realm}.${firstSeq}`,
  ],
  type: 'dead_letter',
  ...CHANGE_RANGE,
  state: [
    z.enum(['dead', 'waiting']).meta({ description: 'Given up, or waiting to be sent again.' }),
    ({ attempts }) => (attempts === 0 ? 'waiting' : 'dead'),
  ],
  attempts: z
    .int()
    .min(0)
    .meta({ description: 'The number of attempts; 0 while it waits to be sent again.' }),
  at: instant(({ at }) => at, timestampSchema.meta({ description: 'The time at which it was given up.' })),
};

const targetId = z.string().meta({ description: 'The ID of the target.' });
const TARGET_ID: ProjectedMembers<Pick<Webhook, 'webhookId'>> = {
  id: [targetId, ({ webhookId }) => webhookId],
};
const STATUS_OF_TARGET = { ...TARGET_ID, type: 'webhook_status', ...STATUS };
const TEST_RESULT = { ...TARGET_ID, type: 'webhook_test', ...OUTCOME };

const redelivery = z
  .strictObject({
    data: z.strictObject({
      id: targetId,
      type: z.literal('redelivery'),
      dead_letters: z.int().min(0).meta({ description: 'The number of dead letters that are sent again.' }),
      retries: z
        .int()
        .min(0)
        .meta({ description: 'The number of failed messages that are retried at once.' }),
    }),
    links: z.strictObject({ dead_letters: link, deliveries: link }),
  })
  .meta({ id: 'webhook_redelivery' });

const DEAD_LETTER_EXAMPLE = {
  id: `${DELIVERY_EXAMPLE.realm_id}.42`,
  type: 'dead_letter',
  realm_id: DELIVERY_EXAMPLE.realm_id,
  first_seq: 42,
  last_seq: 42,
  state: 'dead',
  attempts: 296,
  at: DELIVERY_EXAMPLE.at,
};

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
  listOperation<ManagedDeps>({
    name: 'list-deliveries',
    path: '/webhooks/:webhook_id/deliveries',
    summary: 'List the recent delivery attempts of a target, newest first.',
    params: NAMED_WEBHOOK,
    idPattern: /^[0-9a-f-]{36}$/,
    page: {
      id: 'webhook_delivery.page',
      description: 'The attempts. Of a response, only the status is stored.',
      item: deliverySchema,
      example: DELIVERY_EXAMPLE,
    },
    faults: ['not_found'],
    async read({ after, limit }, request, deps) {
      const { webhookId } = await webhookAt(request, deps);
      const deliveries = await deps.webhooks.store.deliveries(webhookId, after, limit);
      return { items: deliveries.map(describeDelivery) };
    },
  }),
  listOperation<ManagedDeps>({
    name: 'list-dead-letters',
    path: '/webhooks/:webhook_id/dead-letters',
    summary:
      'List the dead letters of a target: messages that are no longer retried, ordered by realm and position.',
    params: NAMED_WEBHOOK,
    idPattern: DEAD_LETTER_ID,
    page: {
      id: 'webhook_dead_letter.page',
      description: 'The dead letters. One that is received after all is removed.',
      item: projectionSchema(DEAD_LETTER).meta({ id: 'webhook_dead_letter' }),
      example: DEAD_LETTER_EXAMPLE,
    },
    faults: ['not_found'],
    async read({ after = '', limit }, request, deps) {
      const { webhookId } = await webhookAt(request, deps);
      const { store } = deps.webhooks;
      const deadLetters = await store.deadLetters(webhookId, deadLetterPosition(after), limit);
      return { items: deadLetters.map(projector(DEAD_LETTER)) };
    },
  }),
  managedOperation({
    name: 'redeliver-webhook',
    method: 'POST',
    path: '/webhooks/:webhook_id/redeliver',
    summary: 'Send a dead letter or a failed message again, or with `*` all that were not received.',
    description:
      'A failed message that waits for its next attempt is sent at once, and keeps its place in the order.',
    params: NAMED_WEBHOOK,
    data: {
      schema: z.object({
        message: z
          .string()
          .refine((id) => id === ALL || deadLetterPosition(id) !== undefined, {
            error: 'must be *, or a realm and a position as in the id of a dead letter',
          })
          .meta({ pattern: `^(\\*|[0-9a-f-]{36}\\.[1-9]\\d{0,14})$` }),
      }),
      example: { message: ALL },
    },
    success: {
      status: 202,
      description: 'Each is sent once within seconds; the deliveries show the outcome.',
      schema: redelivery,
      example: {
        data: { id: WEBHOOK_ID, type: 'redelivery', dead_letters: 1, retries: 0 },
        links: {
          dead_letters: `https://idp.example${ADMIN_PATH}/webhooks/${WEBHOOK_ID}/dead-letters`,
          deliveries: `https://idp.example${ADMIN_PATH}/webhooks/${WEBHOOK_ID}/deliveries`,
        },
      },
    },
    faults: ['not_found', 'conflict', 'unknown_outcome'],
    async handle(request, deps) {
      const { webhookId } = await webhookAt(request, deps);
      const which = deadLetterPosition(request.data.message);
      const { store } = deps.webhooks;
      const { deadLetters, retries } = await requestRedelivery(store, webhookId, which, request.auditContext);
      if (which && deadLetters + retries === 0) {
        throw new Fault('conflict', [
          { field: 'data.message', rule: 'is no dead letter and no failed message of this target' },
        ]);
      }
      const below = (name: string) => request.url(webhookPath(webhookId, `/${name}`));
      return {
        body: {
          data: { id: webhookId, type: 'redelivery', dead_letters: deadLetters, retries },
          links: { dead_letters: below('dead-letters'), deliveries: below('deliveries') },
        },
      };
    },
  }),
  managedOperation({
    name: 'get-webhook-status',
    method: 'GET',
    path: '/webhooks/:webhook_id/status',
    summary: 'Get the last delivery and the last error of a target, and how far behind it is.',
    params: NAMED_WEBHOOK,
    success: {
      status: 200,
      description: 'The status, as in the list of targets.',
      ...singleAnswer(
        'webhook_status',
        STATUS_OF_TARGET,
        { id: WEBHOOK_ID, type: 'webhook_status', ...STATUS_EXAMPLE },
        webhookPath(WEBHOOK_ID, '/status'),
      ),
    },
    faults: ['not_found'],
    async handle(request, deps) {
      const webhook = await webhookAt(request, deps);
      const { webhookId } = webhook;
      const data = projector(STATUS_OF_TARGET)({ webhookId, ...(await readStatus(webhook, deps)) });
      return { body: { data, links: { self: request.url(webhookPath(webhookId, '/status')) } } };
    },
  }),
] as const;

/** It sends from the process that serves the request, so the command line does not have it. */
export const TEST_WEBHOOK_OPERATION = adminOperation({
  name: 'test-webhook',
  method: 'POST',
  path: '/webhooks/:webhook_id/test',
  summary: 'Send a signed event of the type `webhook.test` to a target, and return the outcome.',
  description: 'Nothing is stored or sent again. A disabled target receives it as well.',
  params: NAMED_WEBHOOK,
  success: {
    status: 200,
    description: 'The outcome, also of a target that did not accept it.',
    ...singleAnswer(
      'webhook_test',
      TEST_RESULT,
      { id: WEBHOOK_ID, type: 'webhook_test', outcome: 'delivered', status: 204, duration_ms: 12 },
      webhookPath(WEBHOOK_ID, '/test'),
    ),
  },
  faults: ['not_found'],
  async handle(request, deps) {
    const webhook = await webhookAt(request, deps);
    assertGenuine(webhook);
    const { webhookId } = webhook;
    const delivery = await deps.sendTest(webhook, request.url(webhookPath(webhookId)));
    const links = { self: request.url(webhookPath(webhookId, '/test')) };
    return { body: { data: projector(TEST_RESULT)(delivery), links } };
  },
});
