import { z } from 'zod';
import {
  CLIENT_ID_PATTERN,
  CLIENT_NAME,
  changeClient,
  createClient,
  createPublicClient,
  deleteClient,
  rotateSecret,
} from '../../../auth/clients/clients.ts';
import type { Client } from '../../../auth/port.ts';
import { Fault } from '../../../domain/fault.ts';
import {
  END_USER_ADDRESSES,
  parseScopes,
  SCOPE_WORDS,
  SCOPES,
  type Scopes,
} from '../../../domain/principal.ts';
import { parseRate, RATE_PATTERN, rateText } from '../../../domain/token_buckets.ts';
import { link, timestampSchema } from '../../openapi/schemas.ts';
import { type ManagedKind, managedOperation, managedOperations } from './managed.ts';
import type { AdminRequest } from './operation.ts';
import { existingRealms, REALMS_INPUT, REALMS_OUTPUT, showRealms } from './realms.ts';

const CLIENT_ID = '019c1318-a400-7000-8000-000000000098';
const AT = '2026-01-31T09:00:00.000Z';
const RIGHTS = { name: 'The shop', scopes: ['oidc-profile-infos:read'], realms: '*' };

/** The rate of a public client, as `N/SECONDS`. */
const rate = () => z.string().regex(RATE_PATTERN, 'must be a rate such as 60/60');

const endUserAddress = () => z.enum(END_USER_ADDRESSES).nullable();

const change = z
  .object({
    name: CLIENT_NAME,
    scopes: z
      .array(z.enum(SCOPE_WORDS as [string, ...string[]]))
      .min(1)
      .max(SCOPE_WORDS.length),
    realms: REALMS_INPUT,
    rate_per_address: rate().nullable().meta({
      description:
        'Of a public client: the number of requests that each address may send, and in how many seconds.',
    }),
    end_user_address: endUserAddress().meta({
      description:
        'Of a client with `sign-in` and a secret: `required` if each of its requests reports the address of the end user, ' +
        '`none` if none does. Null otherwise.',
    }),
  })
  .partial();
const input = change.required({ name: true, scopes: true, realms: true }).extend({
  is_public: z
    .boolean()
    .optional()
    .meta({
      description:
        'Whether it has no secret. It then holds at most `settings:read`, `profiles:read` and `sign-in`, for named realms, and ' +
        'needs a `rate_per_address`. It cannot be changed.',
    }),
});

const lastUse = timestampSchema.nullable().meta({
  description: 'When it last requested or used a token, to the minute; null if it never did.',
});

/** The scopes of words that a schema has accepted. */
function scopesOf(words: readonly string[]): Scopes {
  return parseScopes(words.join(' ')) ?? new Set();
}

/** The rate of a new public client; undefined for others. Throws Fault `conflict`. */
function rateOf(
  { rate_per_address: rate }: { rate_per_address?: string | null | undefined },
  isPublic: boolean,
) {
  const isGiven = rate !== undefined && rate !== null;
  if (isGiven === isPublic) return isGiven ? parseRate(rate) : undefined;
  const rule = isPublic ? 'is required for a public client' : 'is for public clients only';
  throw new Fault('conflict', [{ field: 'data.rate_per_address', rule }]);
}

/** Keeps an administrator from locking itself out. Throws Fault `conflict`. */
function assertNotCaller({ params, clientId }: AdminRequest<unknown, unknown>, field = 'id'): void {
  if (params.client_id !== clientId) return;
  const rule =
    'is the client of this request, which would lock itself out: use another client or the command line';
  throw new Fault('conflict', [{ field, rule }]);
}

function timestamp(at: number | undefined): string | null {
  return at === undefined ? null : new Date(at).toISOString();
}

/** API clients: they request tokens, with these scopes and realms. */
const CLIENTS: ManagedKind<Client, typeof input, typeof change> = {
  type: 'client',
  idPattern: CLIENT_ID_PATTERN,
  created: { schema: input, example: RIGHTS },
  updated: { schema: change, example: RIGHTS },
  members: {
    name: z.string(),
    scopes: z.array(z.enum(SCOPES as [string, ...string[]])),
    realms: REALMS_OUTPUT.meta({ description: 'The realms it may access; `*` means all realms.' }),
    is_public: z.boolean().meta({ description: 'Whether it has no secret.' }),
    rate_per_address: rate().nullable(),
    end_user_address: endUserAddress(),
  },
  listed: { last_used_at: lastUse },
  secret: {
    member: 'client_secret',
    description: 'Returned only here. A public client has none.',
    example: 'ars_3mZk9Q',
    isOptional: true,
  },
  example: {
    id: CLIENT_ID,
    members: { ...RIGHTS, is_public: false, rate_per_address: null, end_user_address: null },
    listed: { last_used_at: AT },
  },
  texts: {
    noun: 'client',
    fullNoun: 'client',
    create: 'Takes effect in every process within a second.',
    update: 'Change name, scopes or realms of a client. Members absent from the body are unchanged.',
    updateMore:
      'Removed rights end within a second, for issued tokens as well. A client cannot remove `admin` from itself.',
    delete: 'Delete a client. Its tokens are rejected within a second; its audit entries remain.',
    disable: 'Disable a client. It and its tokens are rejected within a second.',
    enable: 'Enable a disabled client.',
    previousSecret: 'Until when the previous secret is accepted; null if it is not.',
    overlap: 'How long the previous secret stays valid; 24 hours by default.',
  },
  rotatesConditionally: true,
  idOf: ({ clientId }) => clientId,
  membersOf: ({ name, scopes, realms, ratePerAddress: rate, endUserAddress: address }) => ({
    ...{ name, scopes: [...scopes], realms: showRealms(realms) },
    ...{ is_public: rate !== undefined, rate_per_address: rate ? rateText(rate) : null },
    end_user_address: address ?? null,
  }),
  async page({ after = '', limit }, { accessStore }) {
    const clients = await accessStore.clientsAfter(after, limit);
    const uses = await accessStore.clientUsage();
    return clients.map((thing) => ({
      thing,
      listed: { last_used_at: timestamp(uses.get(thing.clientId)) },
    }));
  },
  find: (id, { accessStore }) => accessStore.client(id),
  async create({ name, scopes, realms, is_public: isPublic = false, ...input }, deps, auditContext) {
    const ratePerAddress = rateOf(input, isPublic);
    const endUserAddress = input.end_user_address ?? undefined;
    const grant = { scopes: scopesOf(scopes), realms: await existingRealms(realms, deps), endUserAddress };
    if (ratePerAddress) {
      const rights = { ...grant, ratePerAddress };
      return {
        thing: await createPublicClient(deps.accessStore, name, rights, auditContext),
        secret: undefined,
      };
    }
    const { client, secret } = await createClient(deps.accessStore, name, grant, auditContext);
    return { thing: client, secret };
  },
  async patch({ name, scopes, realms, rate_per_address: rate, end_user_address: address }, deps, request) {
    const granted = scopes && scopesOf(scopes);
    if (granted && !granted.has('admin')) assertNotCaller(request, 'data.scopes');
    return {
      ...(name === undefined ? {} : { name }),
      ...(granted ? { scopes: granted } : {}),
      ...(realms === undefined ? {} : { realms: await existingRealms(realms, deps) }),
      ...(rate === undefined ? {} : { ratePerAddress: rate === null ? undefined : parseRate(rate) }),
      ...(address === undefined ? {} : { endUserAddress: address ?? undefined }),
    };
  },
  change: (id, edit, { accessStore }, auditContext) => changeClient(accessStore, id, edit, auditContext),
  async rotate(id, rotation, { accessStore }, auditContext) {
    const { client, secret } = await rotateSecret(accessStore, id, rotation, auditContext);
    return { thing: client, secret };
  },
  remove: (id, seen, { accessStore }, auditContext) => deleteClient(accessStore, id, seen, auditContext),
  assertNotCaller,
};

const use = z
  .strictObject({
    data: z.strictObject({ id: z.string(), type: z.literal('client_use'), last_used_at: lastUse }),
    links: z.strictObject({ self: link }),
  })
  .meta({ id: 'client_use' });

export const CLIENT_OPERATIONS = [
  ...managedOperations(CLIENTS),
  managedOperation({
    name: 'get-client-use',
    method: 'GET',
    path: '/clients/:client_id/use',
    summary: 'Get when a client last requested or used a token.',
    params: { client_id: { description: 'The identifier of the client.', example: CLIENT_ID } },
    success: {
      status: 200,
      description: 'The time, to the minute.',
      schema: use,
      example: {
        data: { id: CLIENT_ID, type: 'client_use', last_used_at: AT },
        links: { self: `https://idp.example/admin/v1/clients/${CLIENT_ID}/use` },
      },
    },
    faults: ['not_found'],
    async handle({ params: { client_id: id = '' }, url }, { accessStore }) {
      if (!CLIENT_ID_PATTERN.test(id) || !(await accessStore.client(id))) throw new Fault('not_found');
      const data = {
        id,
        type: 'client_use',
        last_used_at: timestamp((await accessStore.clientUsage()).get(id)),
      };
      return { body: { data, links: { self: url(`/clients/${encodeURIComponent(id)}/use`) } } };
    },
  }),
] as const;
