import { z } from 'zod';
import { type Complaint, Fault } from '../../domain/fault.ts';
import { LIMITS } from '../../domain/limits.ts';
import { httpUrl } from '../../domain/text.ts';
import type { Webhook } from '../../webhooks/port.ts';
import {
  changeWebhook,
  createWebhook,
  deleteWebhook,
  EVENT_NAMES,
  findWebhook,
  type IssuedWebhook,
  proveSeen,
  rotateWebhook,
  SKIPPED_CLIENT,
  WEBHOOK_NAME,
  WEBHOOK_URL_RULE,
  type WebhookPatch,
  type WebhookWish,
} from '../../webhooks/targets.ts';
import { instant, link } from '../openapi_schemas.ts';
import { type AdminRooms, type Answered, type Asked, operation } from './operation.ts';
import { linksExample, pageBody, pageParameters, pageSchema, sliceOf, wantedOf } from './page.ts';
import { complaintsAboutRealms, readRealms, SAID_REALMS, SHOWN_REALMS, showRealms } from './realms.ts';

export const WEBHOOK_ID = '019c1318-a400-7000-8000-000000000096';
/** The segment of a path that names a target. */
export const NAMED_WEBHOOK = {
  webhook_id: { description: 'The identifier of the target.', example: WEBHOOK_ID },
};

const event = z.enum(EVENT_NAMES as [string, ...string[]]);
const saidEvent = z
  .string()
  .refine((name) => EVENT_NAMES.includes(name), { error: `must be one of ${EVENT_NAMES.join(', ')}` })
  .meta({ enum: [...EVENT_NAMES] });
const eventsMax = z
  .int()
  .min(1)
  .max(LIMITS.webhookEventsMax)
  .meta({ description: 'Events of one message at most. With 1 they come by themselves, else as a list.' });
const withData = z.boolean().meta({
  description: 'Whether events hold the state of their record, and so what it says about a person.',
});
const skippedClient = { description: 'A client whose changes it is not told; null where it is told all.' };
const said = {
  name: WEBHOOK_NAME,
  url: httpUrl(LIMITS.webhookUrlCharactersMax),
  events: z.union([z.literal('*'), z.array(saidEvent).min(1).max(EVENT_NAMES.length)], {
    error: 'must be * or a list of names of events',
  }),
  realms: SAID_REALMS,
};
const more = {
  with_data: withData.optional(),
  events_max: eventsMax.optional(),
  skipped_client: SKIPPED_CLIENT.nullable().optional().meta(skippedClient),
};

const shown = {
  id: z.string(),
  type: z.literal('webhook'),
  name: z.string(),
  url: link,
  events: z
    .union([z.literal('*'), z.array(event)])
    .meta({ description: 'What it is told; `*` is everything.' }),
  realms: SHOWN_REALMS.meta({ description: 'The realms it is told of; `*` is all there are.' }),
  with_data: withData,
  events_max: eventsMax,
  skipped_client: z.string().nullable().meta(skippedClient),
  is_disabled: z.boolean(),
  previous_secret_expires_at: instant.nullable().meta({
    description: 'Until when the secret before the last rotation signs as well; null where none does.',
  }),
  meta: z.strictObject({ created_at: instant, updated_at: instant }),
};
const links = z.strictObject({ self: link });
const one = z.strictObject({ data: z.strictObject(shown), links }).meta({ id: 'webhook' });
const issued = z
  .strictObject({
    data: z.strictObject({
      ...shown,
      secret: z.string().meta({
        description: 'What signs its messages. Shown here and never again.',
        'x-authrealm-shown-once': true,
      }),
    }),
    links,
  })
  .meta({ id: 'webhook.issued' });
const item = z.strictObject({ ...shown, links }).meta({ id: 'webhook.item' });

const AT = '2026-01-31T09:00:00.000Z';
const WISH = {
  name: 'Shop search',
  url: 'https://search.example/hooks/authrealm',
  events: ['user-authentication-info.created', 'user-authentication-info.deleted'],
  realms: '*',
  with_data: false,
  events_max: 100,
  skipped_client: '019c1318-a400-7000-8000-000000000098',
};
const EXAMPLE = {
  id: WEBHOOK_ID,
  type: 'webhook',
  ...WISH,
  is_disabled: false,
  previous_secret_expires_at: null,
  meta: { created_at: AT, updated_at: AT },
};
const SELF = { self: `https://idp.example/admin/v1/webhooks/${WEBHOOK_ID}` };
const SECRET = { secret: 'whsec_C2FVsBQIhrscChlQIMV+b5sSYspob7oD' };
const SHOWN = { status: 200, schema: one, example: { data: EXAMPLE, links: SELF }, hasEtag: true } as const;
const ISSUED = {
  schema: issued,
  example: { data: { ...EXAMPLE, ...SECRET }, links: SELF },
  hasEtag: true,
} as const;

type Any = Asked<unknown, unknown>;

/** The path of a target, or of what lies below it. */
export function webhookPath(webhookId: string, below = ''): string {
  return `/webhooks/${encodeURIComponent(webhookId)}${below}`;
}

function describe(webhook: Webhook, now: number) {
  const { previous } = webhook;
  const overlaps = previous !== undefined && previous.expiresAt > now;
  return {
    id: webhook.webhookId,
    type: 'webhook',
    name: webhook.name,
    url: webhook.url,
    events: webhook.events,
    realms: showRealms(webhook.realms),
    with_data: webhook.withData,
    events_max: webhook.eventsMax,
    skipped_client: webhook.skippedClient ?? null,
    is_disabled: webhook.disabledAt !== undefined,
    previous_secret_expires_at: overlaps ? new Date(previous.expiresAt).toISOString() : null,
    meta: {
      created_at: new Date(webhook.createdAt).toISOString(),
      updated_at: new Date(webhook.updatedAt).toISOString(),
    },
  };
}

function present(webhook: Webhook, { url }: Any, { ambient }: AdminRooms, more: object = {}): Answered {
  const data = { ...describe(webhook, ambient.now()), ...more };
  return { body: { data, links: { self: url(webhookPath(webhook.webhookId)) } }, revision: webhook.revision };
}

function presentIssued({ webhook, secret }: IssuedWebhook, asked: Any, rooms: AdminRooms): Answered {
  return present(webhook, asked, rooms, { secret });
}

/** The target that a path names. Throws Fault `not_found`. */
export async function webhookAt(
  { params }: Pick<Any, 'params'>,
  { webhooks }: Pick<AdminRooms, 'webhooks'>,
): Promise<Webhook> {
  return found(await findWebhook(webhooks.store, params.webhook_id ?? ''));
}

function found<T>(what: T | undefined): T {
  if (what === undefined) throw new Fault('not_found');
  return what;
}

type Edit = (found: Webhook) => WebhookPatch | undefined;

async function edit(asked: Any, rooms: AdminRooms, wanted: Edit): Promise<Webhook> {
  const { params, occasion } = asked;
  const seen = await asked.seen(async () => (await webhookAt(asked, rooms)).revision);
  const judged: Edit = (target) => {
    proveSeen(target, seen);
    return wanted(target);
  };
  return found(await changeWebhook(rooms.webhooks, params.webhook_id ?? '', judged, occasion));
}

const whole = z.object({ ...said, ...more });
const some = whole.partial();
type Said = z.output<typeof some>;

/** Throws Fault `conflict` that names what is well-formed and stands for nothing that events can go to or come from. */
async function proveReachable({ url, realms = '*' }: Said, rooms: AdminRooms): Promise<void> {
  const isAllowed = url === undefined || rooms.webhooks.isAllowed(url);
  const complaints: readonly Complaint[] = [
    ...(isAllowed ? [] : [{ field: 'data.url', rule: WEBHOOK_URL_RULE }]),
    ...(await complaintsAboutRealms(realms, rooms)),
  ];
  if (complaints.length > 0) throw new Fault('conflict', complaints);
}

/** What a body says, and nothing of what it does not. */
function patchOf({ events, realms, skipped_client, ...data }: Said): WebhookPatch {
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

/** Disables or enables; a target that is so already stays as it is. */
function turning(verb: 'disable' | 'enable', summary: string) {
  const isOff = verb === 'disable';
  return operation({
    name: `${verb}-webhook`,
    method: 'POST',
    path: `/webhooks/:webhook_id/${verb}`,
    summary,
    params: NAMED_WEBHOOK,
    isConditional: true,
    success: { ...SHOWN, description: 'The target as it is now.' },
    faults: ['not_found', 'outcome_unknown'],
    async act(asked, rooms) {
      const now = rooms.ambient.now();
      const webhook = await edit(asked, rooms, ({ disabledAt }) =>
        (disabledAt !== undefined) === isOff ? undefined : { disabledAt: isOff ? now : undefined },
      );
      return present(webhook, asked, rooms);
    },
  });
}

/** Who is told what changes. */
export const WEBHOOK_OPERATIONS = [
  operation({
    name: 'list-webhooks',
    method: 'GET',
    path: '/webhooks',
    summary: 'List the webhook targets, in the order of their identifiers.',
    query: z.object(pageParameters({ pattern: /^[0-9a-f-]{36}$/, example: WEBHOOK_ID })),
    success: {
      status: 200,
      description: 'The targets, without secrets.',
      schema: pageSchema(item, 'webhook.page'),
      example: {
        data: [{ ...EXAMPLE, links: SELF }],
        meta: { page: { limit: 25 } },
        links: linksExample('/webhooks'),
      },
    },
    async act({ query, url }, { webhooks, ambient, pageLength }) {
      const wanted = wantedOf(query, pageLength);
      const targets = sliceOf(await webhooks.store.list(), ({ webhookId }) => webhookId, wanted);
      const items = targets.map((webhook) => ({
        ...describe(webhook, ambient.now()),
        links: { self: url(webhookPath(webhook.webhookId)) },
      }));
      return { body: pageBody(items, wanted, url('/webhooks')) };
    },
  }),
  operation({
    name: 'create-webhook',
    method: 'POST',
    path: '/webhooks',
    summary: 'Make a webhook target; its secret is in this answer and in no other.',
    description: `There may be ${LIMITS.webhooksMax} of them.`,
    data: {
      schema: whole.extend({
        from: z.enum(['present', 'oldest']).optional().meta({
          description: 'Whether it is told what comes, which is so unless said, or everything that is kept.',
        }),
      }),
      example: { ...WISH, from: 'present' },
    },
    success: {
      ...ISSUED,
      status: 201,
      description: 'The target and its secret.',
      location: `/webhooks/${WEBHOOK_ID}`,
    },
    faults: ['conflict', 'outcome_unknown'],
    async act(asked, rooms) {
      const { from = 'present', ...wish } = asked.data;
      await proveReachable(wish, rooms);
      const unsaid = { withData: false, eventsMax: 1, skippedClient: undefined };
      const wanted = { ...unsaid, ...patchOf(wish) } as WebhookWish;
      const made = await createWebhook(rooms.webhooks, wanted, from, asked.occasion);
      return {
        ...presentIssued(made, asked, rooms),
        location: asked.url(webhookPath(made.webhook.webhookId)),
      };
    },
  }),
  operation({
    name: 'get-webhook',
    method: 'GET',
    path: '/webhooks/:webhook_id',
    summary: 'Get one webhook target.',
    params: NAMED_WEBHOOK,
    success: { ...SHOWN, description: 'The target, without secrets.' },
    faults: ['not_found'],
    act: async (asked, rooms) => present(await webhookAt(asked, rooms), asked, rooms),
  }),
  operation({
    name: 'update-webhook',
    method: 'PUT',
    path: '/webhooks/:webhook_id',
    summary: 'Change what a target is told, and where: what the body does not say stays as it is.',
    description:
      'Felt within seconds. Of realms that it did not have before it is told what comes from now on.',
    params: NAMED_WEBHOOK,
    isConditional: true,
    data: { schema: some, example: WISH },
    success: { ...SHOWN, description: 'The target as it is now.' },
    faults: ['not_found', 'conflict', 'outcome_unknown'],
    async act(asked, rooms) {
      await webhookAt(asked, rooms);
      await proveReachable(asked.data, rooms);
      const patch = patchOf(asked.data);
      const isSaid = Object.keys(patch).length > 0;
      return present(await edit(asked, rooms, () => (isSaid ? patch : undefined)), asked, rooms);
    },
  }),
  operation({
    name: 'delete-webhook',
    method: 'DELETE',
    path: '/webhooks/:webhook_id',
    summary: 'Delete a target, its deliveries and what it was not told.',
    params: NAMED_WEBHOOK,
    isConditional: true,
    success: { status: 204, description: 'It is gone.' },
    faults: ['not_found', 'outcome_unknown'],
    async act(asked, rooms) {
      const seen = await asked.seen(async () => (await webhookAt(asked, rooms)).revision);
      const { webhook_id: webhookId = '' } = asked.params;
      const isGone = await deleteWebhook(rooms.webhooks.store, webhookId, asked.occasion, seen);
      found(isGone || undefined);
      return undefined;
    },
  }),
  operation({
    name: 'rotate-webhook',
    method: 'POST',
    path: '/webhooks/:webhook_id/rotate',
    summary: 'Give a target a new secret; it is in this answer and in no other.',
    params: NAMED_WEBHOOK,
    data: {
      schema: z.object({
        overlap_seconds: z
          .int()
          .min(0)
          .max(LIMITS.secretOverlapHoursMax * 3_600)
          .optional()
          .meta({ description: 'How long the old secret signs beside it; 24 hours unless said.' }),
      }),
      example: { overlap_seconds: 7_200 },
    },
    success: { ...ISSUED, status: 200, description: 'The target and its new secret.' },
    faults: ['not_found', 'outcome_unknown'],
    async act(asked, rooms) {
      const { overlap_seconds: seconds = LIMITS.secretOverlapMs / 1_000 } = asked.data;
      const { webhook_id: webhookId = '' } = asked.params;
      const rotated = await rotateWebhook(rooms.webhooks, webhookId, seconds * 1_000, asked.occasion);
      return presentIssued(found(rotated), asked, rooms);
    },
  }),
  turning('disable', 'Tell a target nothing for now; it is told later what it missed.'),
  turning('enable', 'Go on telling a disabled target, from where it was.'),
] as const;
