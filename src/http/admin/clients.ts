import { z } from 'zod';
import {
  CLIENT_ID_PATTERN,
  CLIENT_NAME,
  createClient,
  deleteClient,
  type Edited,
  editClient,
  type Grant,
  type Issued,
  type Patch,
  renewal,
  ruleAgainst,
} from '../../access/clients.ts';
import type { Client } from '../../access/port.ts';
import { Fault } from '../../domain/fault.ts';
import { LIMITS } from '../../domain/limits.ts';
import { parseScopes, SCOPE_WORDS, SCOPES, type Scopes } from '../../domain/principal.ts';
import { instant, link } from '../openapi_schemas.ts';
import { type AdminRooms, type Answered, type Asked, operation } from './operation.ts';
import { linksExample, pageBody, pageParameters, pageSchema, wantedOf } from './page.ts';
import { realmsOf, SAID_REALMS, SHOWN_REALMS, showRealms } from './realms.ts';

const CLIENT_ID = '019c1318-a400-7000-8000-000000000098';
const NAMED = { client_id: { description: 'The identifier of the client.', example: CLIENT_ID } };

const scopes = z
  .array(z.enum(SCOPE_WORDS as [string, ...string[]]))
  .min(1)
  .max(SCOPE_WORDS.length);

const shown = {
  id: z.string(),
  type: z.literal('client'),
  name: z.string(),
  scopes: z.array(z.enum(SCOPES as [string, ...string[]])),
  realms: SHOWN_REALMS.meta({ description: 'The realms it may touch; `*` is all there are.' }),
  is_disabled: z.boolean(),
  previous_secret_expires_at: instant
    .nullable()
    .meta({ description: 'Until when the secret before the last rotation is accepted; null where none is.' }),
  meta: z.strictObject({ created_at: instant, updated_at: instant }),
};
const links = z.strictObject({ self: link });
const one = z.strictObject({ data: z.strictObject(shown), links }).meta({ id: 'client' });
const issued = z
  .strictObject({
    data: z.strictObject({
      ...shown,
      client_secret: z.string().meta({
        description: 'Shown here and never again.',
        'x-authrealm-shown-once': true,
      }),
    }),
    links,
  })
  .meta({ id: 'client.issued' });
const lastUse = instant.nullable().meta({
  description: 'When it last asked for a token or used one, to the minute; null where it never did.',
});
const item = z.strictObject({ ...shown, last_used_at: lastUse, links }).meta({ id: 'client.item' });
const use = z
  .strictObject({
    data: z.strictObject({ id: z.string(), type: z.literal('client_use'), last_used_at: lastUse }),
    links,
  })
  .meta({ id: 'client_use' });

const AT = '2026-01-31T09:00:00.000Z';
const EXAMPLE = {
  id: CLIENT_ID,
  type: 'client',
  name: 'The shop',
  scopes: ['oidc-profile-infos:read'],
  realms: '*',
  is_disabled: false,
  previous_secret_expires_at: null,
  meta: { created_at: AT, updated_at: AT },
};
const SELF = { self: `https://idp.example/admin/v1/clients/${CLIENT_ID}` };
const SECRET = { client_secret: 'ars_3mZk9Q' };
const SHOWN = { status: 200, schema: one, example: { data: EXAMPLE, links: SELF }, hasEtag: true } as const;
const ISSUED = {
  schema: issued,
  example: { data: { ...EXAMPLE, ...SECRET }, links: SELF },
  hasEtag: true,
} as const;

type Any = Asked<unknown, unknown>;

function pathOf(clientId: string): string {
  return `/clients/${encodeURIComponent(clientId)}`;
}

function describe({ clientId, previous, ...client }: Client, now: number) {
  const overlaps = previous !== undefined && previous.expiresAt > now;
  return {
    id: clientId,
    type: 'client',
    name: client.name,
    scopes: [...client.scopes],
    realms: showRealms(client.realms),
    is_disabled: client.disabledAt !== undefined,
    previous_secret_expires_at: overlaps ? new Date(previous.expiresAt).toISOString() : null,
    meta: {
      created_at: new Date(client.createdAt).toISOString(),
      updated_at: new Date(client.updatedAt).toISOString(),
    },
  };
}

function present(client: Client, { url }: Any, { ambient }: AdminRooms, more: object = {}): Answered {
  const data = { ...describe(client, ambient.now()), ...more };
  return { body: { data, links: { self: url(pathOf(client.clientId)) } }, revision: client.revision };
}

function presentIssued({ client, secret }: Issued, asked: Any, rooms: AdminRooms): Answered {
  return present(client, asked, rooms, { client_secret: secret });
}

/** Throws Fault `not_found` for what no client is called. */
function clientIdIn({ params: { client_id: id = '' } }: Any): string {
  if (!CLIENT_ID_PATTERN.test(id)) throw new Fault('not_found');
  return id;
}

async function clientAt(asked: Any, { accessStore }: AdminRooms): Promise<Client> {
  const client = await accessStore.client(clientIdIn(asked));
  if (!client) throw new Fault('not_found');
  return client;
}

/** The client that an edit came to. Throws what became of it otherwise. */
function done(outcome: Edited): Client {
  switch (outcome.kind) {
    case 'done':
      return outcome.client;
    case 'absent':
      throw new Fault('not_found');
    case 'moved':
      throw new Fault('precondition_failed');
    case 'refused':
      throw new Fault('conflict', [{ field: 'data.scopes', rule: outcome.rule }]);
  }
}

async function edit(asked: Any, rooms: AdminRooms, patch: Patch): Promise<Client> {
  const clientId = clientIdIn(asked);
  const seen = await asked.seen(async () => (await clientAt(asked, rooms)).revision);
  return done(await editClient(rooms.accessStore, clientId, { patch, seen }, asked.occasion));
}

/** Nobody locks the door behind themselves by accident. Throws Fault `conflict`. */
function proveOther({ params, clientId }: Any, field = 'id'): void {
  if (params.client_id !== clientId) return;
  const rule =
    'is the client that asks, which would lock itself out: ask as another one, or at the command line';
  throw new Fault('conflict', [{ field, rule }]);
}

/** Words that a schema has accepted. */
function scopesOf(words: readonly string[]): Scopes {
  return parseScopes(words.join(' ')) ?? new Set();
}

function proveGrantable(grant: Grant): void {
  const rule = ruleAgainst(grant);
  if (rule !== undefined) throw new Fault('conflict', [{ field: 'data.scopes', rule }]);
}

/** Enables or disables; a client that is so already stays as it is. */
function turning(name: 'disable' | 'enable', summary: string) {
  const isOff = name === 'disable';
  return operation({
    name: `${name}-client`,
    method: 'POST',
    path: `/clients/:client_id/${name}`,
    summary,
    params: NAMED,
    isConditional: true,
    success: { ...SHOWN, description: 'The client as it is now.' },
    faults: ['not_found', 'outcome_unknown', ...(isOff ? (['conflict'] as const) : [])],
    async act(asked, rooms) {
      if (isOff) proveOther(asked);
      const now = rooms.ambient.now();
      const client = await edit(asked, rooms, ({ disabledAt }) =>
        (disabledAt !== undefined) === isOff ? undefined : { disabledAt: isOff ? now : undefined },
      );
      return present(client, asked, rooms);
    },
  });
}

/** Who may ask for tokens, and what they may do. */
export const CLIENT_OPERATIONS = [
  operation({
    name: 'list-clients',
    method: 'GET',
    path: '/clients',
    summary: 'List the clients, in the order of their identifiers.',
    query: z.object(pageParameters({ pattern: CLIENT_ID_PATTERN, example: CLIENT_ID })),
    success: {
      status: 200,
      description: 'The clients, without secrets.',
      schema: pageSchema(item, 'client.page'),
      example: {
        data: [{ ...EXAMPLE, last_used_at: AT, links: SELF }],
        meta: { page: { limit: 25 } },
        links: linksExample('/clients'),
      },
    },
    async act({ query, url }, { accessStore, ambient, pageLength }) {
      const wanted = wantedOf(query, pageLength);
      const clients = await accessStore.clientsBehind(wanted.after ?? '', wanted.limit);
      const uses = await accessStore.uses();
      const items = clients.map((client) => ({
        ...describe(client, ambient.now()),
        last_used_at: momentOf(uses.get(client.clientId)),
        links: { self: url(pathOf(client.clientId)) },
      }));
      return { body: pageBody(items, wanted, url('/clients')) };
    },
  }),
  operation({
    name: 'create-client',
    method: 'POST',
    path: '/clients',
    summary: 'Make a client; its secret is in this answer and in no other.',
    description: 'Felt by every process within a second.',
    data: {
      schema: z.object({ name: CLIENT_NAME, scopes, realms: SAID_REALMS }),
      example: { name: 'The shop', scopes: ['oidc-profile-infos:read'], realms: '*' },
    },
    success: {
      ...ISSUED,
      status: 201,
      description: 'The client and its secret.',
      location: `/clients/${CLIENT_ID}`,
    },
    faults: ['conflict', 'outcome_unknown'],
    async act(asked, rooms) {
      const { name, scopes: words, realms: where } = asked.data;
      const grant = { scopes: scopesOf(words), realms: await realmsOf(where, rooms) };
      proveGrantable(grant);
      const made = await createClient(rooms.accessStore, name, grant, asked.occasion);
      return {
        ...presentIssued(made, asked, rooms),
        location: asked.url(pathOf(made.client.clientId)),
      };
    },
  }),
  operation({
    name: 'get-client',
    method: 'GET',
    path: '/clients/:client_id',
    summary: 'Get one client.',
    params: NAMED,
    success: { ...SHOWN, description: 'The client, without secrets.' },
    faults: ['not_found'],
    act: async (asked, rooms) => present(await clientAt(asked, rooms), asked, rooms),
  }),
  operation({
    name: 'update-client',
    method: 'PUT',
    path: '/clients/:client_id',
    summary: 'Change name, scopes or realms of a client: what the body does not say stays as it is.',
    description:
      'Fewer rights end within a second, for tokens already given as well. No client takes `admin` from itself.',
    params: NAMED,
    isConditional: true,
    data: {
      schema: z.object({ name: CLIENT_NAME, scopes, realms: SAID_REALMS }).partial(),
      example: { name: 'The shop', scopes: ['oidc-profile-infos:read'], realms: '*' },
    },
    success: { ...SHOWN, description: 'The client as it is now.' },
    faults: ['not_found', 'conflict', 'outcome_unknown'],
    async act(asked, rooms) {
      const { name, scopes: words, realms: where } = asked.data;
      const held = words && scopesOf(words);
      if (held && !held.has('admin')) proveOther(asked, 'data.scopes');
      const patch = {
        ...(name === undefined ? {} : { name }),
        ...(held ? { scopes: held } : {}),
        ...(where === undefined ? {} : { realms: await realmsOf(where, rooms) }),
      };
      const isSaid = Object.keys(patch).length > 0;
      return present(await edit(asked, rooms, isSaid ? patch : () => undefined), asked, rooms);
    },
  }),
  operation({
    name: 'delete-client',
    method: 'DELETE',
    path: '/clients/:client_id',
    summary: 'Delete a client: its tokens are refused within a second. What it did stays in the log.',
    params: NAMED,
    isConditional: true,
    success: { status: 204, description: 'It is gone.' },
    faults: ['not_found', 'conflict', 'outcome_unknown'],
    async act(asked, rooms) {
      proveOther(asked);
      const clientId = clientIdIn(asked);
      const seen = await asked.seen(async () => (await clientAt(asked, rooms)).revision);
      done(await deleteClient(rooms.accessStore, clientId, seen, asked.occasion));
      return undefined;
    },
  }),
  operation({
    name: 'rotate-client',
    method: 'POST',
    path: '/clients/:client_id/rotate',
    summary: 'Give a client a new secret; it is in this answer and in no other.',
    params: NAMED,
    isConditional: true,
    data: {
      schema: z.object({
        overlap_seconds: z
          .int()
          .min(0)
          .max(LIMITS.secretOverlapHoursMax * 3_600)
          .optional()
          .meta({ description: 'How long the old secret is accepted beside it; 24 hours unless said.' }),
      }),
      example: { overlap_seconds: 7_200 },
    },
    success: { ...ISSUED, status: 200, description: 'The client and its new secret.' },
    faults: ['not_found', 'outcome_unknown'],
    async act(asked, rooms) {
      const { overlap_seconds: seconds = LIMITS.secretOverlapMs / 1_000 } = asked.data;
      const { secret, patch } = renewal(seconds * 1_000, rooms.ambient);
      return presentIssued({ client: await edit(asked, rooms, patch), secret }, asked, rooms);
    },
  }),
  turning('disable', 'Refuse a client and its tokens, within a second.'),
  turning('enable', 'Accept a disabled client again.'),
  operation({
    name: 'get-client-use',
    method: 'GET',
    path: '/clients/:client_id/use',
    summary: 'When a client last asked for a token or used one.',
    params: NAMED,
    success: {
      status: 200,
      description: 'To the minute.',
      schema: use,
      example: {
        data: { id: CLIENT_ID, type: 'client_use', last_used_at: AT },
        links: { self: `${SELF.self}/use` },
      },
    },
    faults: ['not_found'],
    async act(asked, rooms) {
      const { clientId } = await clientAt(asked, rooms);
      const at = (await rooms.accessStore.uses()).get(clientId);
      const data = { id: clientId, type: 'client_use', last_used_at: momentOf(at) };
      return { body: { data, links: { self: asked.url(`${pathOf(clientId)}/use`) } } };
    },
  }),
] as const;

function momentOf(at: number | undefined): string | null {
  return at === undefined ? null : new Date(at).toISOString();
}
