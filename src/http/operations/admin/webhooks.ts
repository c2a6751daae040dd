import { z } from 'zod';
import {
  changeWebhook,
  createWebhook,
  deleteWebhook,
  EVENT_NAMES,
  rotateWebhook,
  SKIPPED_CLIENT,
  WEBHOOK_NAME,
  type WebhookPatch,
} from '../../../deliver/webhooks/targets.ts';
import type { Webhook, WebhookOptions } from '../../../deliver/webhooks/webhook.ts';
import { Fault, type FieldError } from '../../../model/fault.ts';
import { LIMITS } from '../../../model/limits.ts';
import { assertFound } from '../../../model/managed.ts';
import { wholeNumber } from '../../../model/rule.ts';
import { httpUrl } from '../../../model/text/text.ts';
import { link } from '../../openapi/schemas.ts';
import { type ManagedDeps, type ManagedKind, managedOperations } from './managed.ts';
import type { AdminDeps, AdminRequest } from './operation.ts';
import { pageSlice } from './page.ts';
import { absentRealmErrors, REALMS_INPUT, REALMS_OUTPUT, readRealms, showRealms } from './realms.ts';
import { EXAMPLE_STATUS, readStatus, STATUS, type TargetStatus, WEBHOOK_ID } from './webhook_status.ts';

/** The segment of a path that names a target. */
export const NAMED_WEBHOOK = {
  webhook_id: { description: 'The ID of the target.', example: WEBHOOK_ID },
};

const ALL_OR_SOME_EVENTS = '`*` for all events, or the names of some.';
const event = z
  .string()
  .refine((name) => EVENT_NAMES.includes(name), { error: `must be one of ${EVENT_NAMES.join(', ')}` })
  .meta({ id: 'EventName', enum: [...EVENT_NAMES] });
const eventsMax = wholeNumber(1, LIMITS.webhookEventsMax).meta({
  description:
    'The maximum number of events in a message. With 1, a message is a single event, otherwise a list.',
});
const withData = z.boolean().meta({
  description: 'Whether events include the record and so personal data.',
});
const skippedClient = { description: 'The client whose changes are not sent; null to send all changes.' };
const input = z.object({
  name: WEBHOOK_NAME,
  url: httpUrl(LIMITS.webhookUrlCharactersMax),
  events: z
    .union([z.literal('*'), z.array(event).min(1).max(EVENT_NAMES.length)], {
      error: 'must be * or a list of names of events',
    })
    .meta({ id: 'EventNamesInput', description: ALL_OR_SOME_EVENTS }),
  realms: REALMS_INPUT,
  with_data: withData.optional(),
  events_max: eventsMax.optional(),
  skipped_client: SKIPPED_CLIENT.nullable().optional().meta(skippedClient),
});
const created = input.extend({
  from: z.enum(['present', 'oldest']).optional().meta({
    description: 'Send only new changes (`present`, the default) or all retained ones (`oldest`).',
  }),
});
const change = input.partial();
type WebhookInput = z.output<typeof change>;

const TARGET_EXAMPLE = {
  name: 'Shop search',
  url: 'https://search.example/hooks/authrealm',
  events: ['user-authentication-info.created', 'user-authentication-info.deleted'],
  realms: '*' as const,
  with_data: false,
  events_max: 100,
  skipped_client: '019c1318-a400-7000-8000-000000000098',
};
/** The path of a target, or a path below it. */
export function webhookPath(webhookId: string, below = ''): string {
  return `/webhooks/${encodeURIComponent(webhookId)}${below}`;
}

const WEBHOOK_ID_PATTERN = /^[0-9a-f-]{36}$/;

/** The target that a path names. Throws Fault `not_found`, for a malformed ID as well. */
export async function webhookAt(
  { params: { webhook_id: id = '' } }: Pick<AdminRequest<unknown, unknown>, 'params'>,
  { webhooks }: Pick<AdminDeps, 'webhooks'>,
): Promise<Webhook> {
  return assertFound(WEBHOOK_ID_PATTERN.test(id) ? await webhooks.store.find(id) : undefined);
}

/** Throws Fault `conflict` if the URL is not allowed or a realm does not exist. */
async function assertReachable({ url, realms }: WebhookInput, deps: ManagedDeps): Promise<void> {
  const rule = deps.webhooks.brokenUrlRule(url);
  const fieldErrors: readonly FieldError[] = [
    ...(rule === undefined ? [] : [{ field: 'data.url', rule }]),
    ...(await absentRealmErrors('realms', realms, deps)),
  ];
  if (fieldErrors.length > 0) throw new Fault('conflict', fieldErrors);
}

/** The members that a body contains. */
function patchOf({ events, realms, skipped_client, ...data }: WebhookInput): WebhookPatch {
  return {
    ...(data.name === undefined ? {} : { name: data.name }),
    ...(data.url === undefined ? {} : { url: data.url }),
    ...(events === undefined ? {} : { events: events === '*' ? events : [...new Set(events)] }),
    ...(realms === undefined ? {} : { realms: readRealms(realms) }),
    ...(data.with_data === undefined ? {} : { withData: data.with_data }),
    ...(data.events_max === undefined ? {} : { eventsMax: data.events_max }),
    ...(skipped_client === undefined ? {} : { skippedClient: skipped_client ?? undefined }),
  };
}

/** Webhook targets, which receive events. */
const WEBHOOKS: ManagedKind<Webhook, TargetStatus, typeof created, typeof change> = {
  type: 'webhook',
  idPattern: WEBHOOK_ID_PATTERN,
  created: { schema: created, example: { ...TARGET_EXAMPLE, from: 'present' } },
  updated: { schema: change, example: TARGET_EXAMPLE },
  members: {
    name: z.string(),
    url: link,
    events: z
      .union([z.literal('*'), z.array(event)])
      .meta({ id: 'EventNames', description: ALL_OR_SOME_EVENTS }),
    realms: [
      REALMS_OUTPUT.meta({ description: 'The realms whose events are sent; `*` means all.' }),
      ({ realms }) => showRealms(realms),
    ],
    with_data: withData,
    events_max: eventsMax,
    skipped_client: z.string().nullable().meta(skippedClient),
  },
  listed: STATUS,
  example: { webhookId: WEBHOOK_ID, ...patchOf(TARGET_EXAMPLE), ...EXAMPLE_STATUS },
  secret: {
    member: 'secret',
    description: 'The secret that signs messages. Returned only here.',
    example: 'whsec_C2FVsBQIhrscChlQIMV+b5sSYspob7oD',
  },
  texts: {
    noun: 'target',
    fullNoun: 'webhook target',
    create: `At most ${LIMITS.webhooksMax} targets can exist.`,
    update: 'Change a webhook target. Members absent from the body are unchanged.',
    updateMore: 'Takes effect within seconds. From added realms, only new changes are sent.',
    delete: 'Delete a target, its deliveries and its pending changes.',
    disable: 'Disable a target. Changes are sent after it is enabled again.',
    enable: 'Enable a disabled target. Delivery continues where it stopped.',
    previousSecret: 'Until when the previous secret signs as well; null if it does not.',
    overlap: 'How long the previous secret signs as well; 24 hours by default.',
  },
  rotatesConditionally: false,
  idOf: ({ webhookId }) => webhookId,
  async page(wanted, deps) {
    const page = pageSlice(await deps.webhooks.store.list(), ({ webhookId }) => webhookId, wanted);
    return Promise.all(page.map(async (webhook) => ({ ...webhook, ...(await readStatus(webhook, deps)) })));
  },
  find: (id, { webhooks }) => webhooks.store.find(id),
  async create({ from = 'present', ...data }, deps, auditContext) {
    await assertReachable(data, deps);
    const defaults = { withData: false, eventsMax: 1, skippedClient: undefined };
    const settings = { ...defaults, ...patchOf(data) } as WebhookOptions;
    const { webhook, secret } = await createWebhook(deps.webhooks, settings, from, auditContext);
    return { ...webhook, secret };
  },
  async patch(data, deps, request) {
    await webhookAt(request, deps);
    await assertReachable(data, deps);
    return patchOf(data);
  },
  change: async (id, edit, { webhooks }, auditContext) =>
    assertFound(await changeWebhook(webhooks, id, edit, auditContext)),
  async rotate(id, { overlapMs }, { webhooks }, auditContext) {
    const { webhook, secret } = assertFound(await rotateWebhook(webhooks, id, overlapMs, auditContext));
    return { ...webhook, secret };
  },
  remove: (id, seen, { webhooks }, auditContext) => deleteWebhook(webhooks.store, id, auditContext, seen),
};

export const WEBHOOK_OPERATIONS = managedOperations(WEBHOOKS);
