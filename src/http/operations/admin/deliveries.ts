import { z } from 'zod';
import { requestRedelivery } from '../../../deliver/webhooks/targets.ts';
import type { DeadLetter, DeadLetterKey, Webhook } from '../../../deliver/webhooks/webhook.ts';
import { conflict } from '../../../model/fault.ts';
import { parseUuid } from '../../../model/id.ts';
import { assertGenuine } from '../../../model/managed.ts';
import { timestampSchema } from '../../openapi/schemas.ts';
import { instant, type ProjectedMembers } from '../projection.ts';
import type { ManagedDeps } from './managed.ts';
import { adminOperation, answerForm, singleAnswer, urlAt } from './operation.ts';
import { listOperation } from './page.ts';
import {
  CHANGE_RANGE,
  EXAMPLE_DELIVERY,
  EXAMPLE_STATUS,
  OUTCOME,
  readStatus,
  SHOWN_DELIVERY,
  STATUS,
  WEBHOOK_ID,
} from './webhook_status.ts';
import { NAMED_WEBHOOK, webhookAt, webhookPath } from './webhooks.ts';

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

const EXAMPLE_LETTER: DeadLetter = {
  webhookId: WEBHOOK_ID,
  realm: EXAMPLE_DELIVERY.realm,
  firstSeq: 42,
  lastSeq: 42,
  attempts: 296,
  at: EXAMPLE_DELIVERY.at,
};

type Target = Pick<Webhook, 'webhookId'>;
const TARGET_ID: ProjectedMembers<Target> = {
  id: [z.string().meta({ description: 'The ID of the target.' }), ({ webhookId }) => webhookId],
};
const below =
  (name: string) =>
  ({ webhookId }: Target) =>
    webhookPath(webhookId, `/${name}`);

const STATUS_OF_TARGET = singleAnswer(
  'webhook_status',
  { ...TARGET_ID, type: 'webhook_status', ...STATUS },
  { webhookId: WEBHOOK_ID, ...EXAMPLE_STATUS },
  below('status'),
);
const TEST_RESULT = singleAnswer(
  'webhook_test',
  { ...TARGET_ID, type: 'webhook_test', ...OUTCOME },
  EXAMPLE_DELIVERY,
  below('test'),
);

const REDELIVERY: ProjectedMembers<Target & Awaited<ReturnType<typeof requestRedelivery>>> = {
  ...TARGET_ID,
  type: 'redelivery',
  dead_letters: z.int().min(0).meta({ description: 'The number of dead letters that are sent again.' }),
  retries: z.int().min(0).meta({ description: 'The number of failed messages that are retried at once.' }),
};
const REDELIVERED = answerForm(
  'webhook_redelivery',
  {
    data: REDELIVERY,
    links: { dead_letters: urlAt(below('dead-letters')), deliveries: urlAt(below('deliveries')) },
  },
  { webhookId: WEBHOOK_ID, deadLetters: 1, retries: 0 },
);

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
  listOperation({
    name: 'list-deliveries',
    path: '/webhooks/:webhook_id/deliveries',
    summary: 'List the recent delivery attempts of a target, newest first.',
    params: NAMED_WEBHOOK,
    page: {
      id: 'webhook_delivery.page',
      description: 'The attempts. Of a response, only the status is stored.',
      item: SHOWN_DELIVERY,
    },
    async read({ after, limit }, request, deps: ManagedDeps) {
      const { webhookId } = await webhookAt(request, deps);
      return { items: await deps.webhooks.store.deliveries(webhookId, after, limit) };
    },
  }),
  listOperation({
    name: 'list-dead-letters',
    path: '/webhooks/:webhook_id/dead-letters',
    summary:
      'List the dead letters of a target: messages that are no longer retried, ordered by realm and position.',
    params: NAMED_WEBHOOK,
    idPattern: DEAD_LETTER_ID,
    page: {
      id: 'webhook_dead_letter.page',
      description: 'The dead letters. One that is received after all is removed.',
      item: answerForm('webhook_dead_letter', DEAD_LETTER, EXAMPLE_LETTER),
    },
    async read({ after = '', limit }, request, deps: ManagedDeps) {
      const { webhookId } = await webhookAt(request, deps);
      return { items: await deps.webhooks.store.deadLetters(webhookId, deadLetterPosition(after), limit) };
    },
  }),
  adminOperation({
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
      ...REDELIVERED,
    },
    faults: ['conflict', 'unknown_outcome'],
    async handle(request, deps: ManagedDeps) {
      const { webhookId } = await webhookAt(request, deps);
      const which = deadLetterPosition(request.data.message);
      const { store } = deps.webhooks;
      const sent = await requestRedelivery(store, webhookId, which, request.auditContext);
      if (which && sent.deadLetters + sent.retries === 0) {
        throw conflict('data.message', 'is no dead letter and no failed message of this target');
      }
      return { webhookId, ...sent };
    },
  }),
  adminOperation({
    name: 'get-webhook-status',
    method: 'GET',
    path: '/webhooks/:webhook_id/status',
    summary: 'Get the last delivery and the last error of a target, and how far behind it is.',
    params: NAMED_WEBHOOK,
    success: { ...STATUS_OF_TARGET, status: 200, description: 'The status, as in the list of targets.' },
    async handle(request, deps: ManagedDeps) {
      const webhook = await webhookAt(request, deps);
      return { webhookId: webhook.webhookId, ...(await readStatus(webhook, deps)) };
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
    ...TEST_RESULT,
  },
  async handle(request, deps) {
    const webhook = await webhookAt(request, deps);
    assertGenuine(webhook);
    return deps.sendTest(webhook, request.urlOf(webhookPath(webhook.webhookId)));
  },
});
