import { z } from 'zod';
import {
  CLIENT_ID_PATTERN,
  CLIENT_NAME,
  changeClient,
  createClient,
  deleteClient,
  rotateSecret,
} from '../../../access/clients/clients.ts';
import type { Client, ClientRights } from '../../../access/store/clients.ts';
import { Fault } from '../../../model/fault.ts';
import { parseImplicit } from '../../../model/implicit_rights.ts';
import { parseNetwork } from '../../../model/ip_address.ts';
import { LIMITS } from '../../../model/limits.ts';
import { assertFound } from '../../../model/managed.ts';
import {
  END_USER_ADDRESSES,
  IMPLICIT_SCOPES,
  parseScopes,
  SCOPE_WORDS,
  SCOPES,
} from '../../../model/principal.ts';
import { RATE_PATTERN, rateText } from '../../../model/token_buckets.ts';
import { EXAMPLE_AT } from '../../openapi/examples.ts';
import { timestampSchema } from '../../openapi/schemas.ts';
import { instant, type ProjectedMembers } from '../projection.ts';
import { type ManagedDeps, type ManagedKind, managedOperations } from './managed.ts';
import { type AdminRequest, adminOperation, singleAnswer } from './operation.ts';
import { absentRealmErrors, REALMS_INPUT, REALMS_OUTPUT, readRealms, showRealms } from './realms.ts';

const CLIENT_ID = '019c1318-a400-7000-8000-000000000098';
const RIGHTS = { name: 'The shop', scopes: ['oidc-profile-infos:read'], realms: '*' };

/** `N/SECONDS`. */
const rate = () => z.string().regex(RATE_PATTERN, 'must be a rate such as 60/60');

const endUserAddress = () => z.enum(END_USER_ADDRESSES).nullable();

const scopeWords = () => z.array(z.enum(SCOPE_WORDS as [string, ...string[]])).max(SCOPE_WORDS.length);

const storefront = z.string().refine((raw) => parseNetwork(raw) !== undefined, {
  error: 'must be an IP address, or a network in CIDR notation that is not all addresses',
});

const change = z
  .object({
    name: CLIENT_NAME,
    scopes: scopeWords().min(1),
    realms: REALMS_INPUT,
    implicit_scopes: scopeWords().meta({
      description: `What the ID alone gives, with \`grant_type=implicit\`: at most ${[...IMPLICIT_SCOPES].join(', ')}.`,
    }),
    implicit_realms: REALMS_INPUT.meta({
      description: 'Where it does; `*` for the realms of the client, which must then be named.',
    }),
    rate_per_address: rate().nullable().meta({
      description:
        'Required with `implicit_scopes`: how many requests each address may send, in how many seconds.',
    }),
    storefronts: z.array(storefront).max(LIMITS.storefrontsMax).meta({
      description:
        'Networks of servers of the storefront: without that rate, and without the address of the end user.',
    }),
    end_user_address: endUserAddress().meta({
      description:
        'Of a client with `sign-in`: `header` if each of its requests by the secret reports the address of the end user, `none` if ' +
        'none does. Null otherwise.',
    }),
  })
  .partial();
const input = change.required({ name: true, scopes: true, realms: true });

interface Use {
  readonly lastUsedAt: number | undefined;
}
const LAST_USE: ProjectedMembers<Use> = {
  last_used_at: instant(
    ({ lastUsedAt }) => lastUsedAt,
    timestampSchema.nullable().meta({
      description: 'When it last requested or used a token, to the minute; null if it never did.',
    }),
  ),
};

/** The members that a body contains. Rejects with Fault `conflict` for unknown realms. */
async function patchOf(data: z.output<typeof change>, deps: ManagedDeps): Promise<Partial<Client>> {
  const { name, scopes, realms, end_user_address: address } = data;
  const absent = await Promise.all([
    absentRealmErrors('realms', realms, deps),
    absentRealmErrors('implicit_realms', data.implicit_realms, deps),
  ]);
  if (absent.flat().length > 0) throw new Fault('conflict', absent.flat());
  return {
    ...(name === undefined ? {} : { name }),
    ...(scopes ? { scopes: parseScopes(scopes.join(' ')) ?? new Set<string>() } : {}),
    ...(realms ? { realms: readRealms(realms) } : {}),
    ...parseImplicit(data),
    ...(address === undefined ? {} : { endUserAddress: address ?? undefined }),
  };
}

/** Keeps an administrator from locking itself out. Throws Fault `conflict`. */
function assertNotCaller({ params, clientId }: AdminRequest<unknown, unknown>, field = 'id'): void {
  if (params.client_id !== clientId) return;
  const rule =
    'is the client of this request, which would lock itself out: use another client or the command line';
  throw new Fault('conflict', [{ field, rule }]);
}

const EXAMPLE_CLIENT = {
  clientId: CLIENT_ID,
  name: RIGHTS.name,
  scopes: new Set(RIGHTS.scopes),
  realms: '*',
  lastUsedAt: EXAMPLE_AT,
} as const;

/** API clients: they request tokens, with these scopes and realms. */
const CLIENTS: ManagedKind<Client, Use, typeof input, typeof change> = {
  type: 'client',
  idPattern: CLIENT_ID_PATTERN,
  created: { schema: input, example: RIGHTS },
  updated: { schema: change, example: RIGHTS },
  members: {
    name: z.string(),
    scopes: [z.array(z.enum(SCOPES as [string, ...string[]])), ({ scopes }) => [...scopes]],
    realms: [
      REALMS_OUTPUT.meta({ description: 'The realms it may access; `*` means all realms.' }),
      ({ realms }) => showRealms(realms),
    ],
    implicit_scopes: [
      z.array(z.enum([...IMPLICIT_SCOPES] as [string, ...string[]])),
      ({ implicitScopes = [] }) => [...implicitScopes],
    ],
    implicit_realms: [REALMS_OUTPUT, ({ implicitRealms = '*' }) => showRealms(implicitRealms)],
    rate_per_address: [
      rate().nullable(),
      ({ ratePerAddress }) => (ratePerAddress ? rateText(ratePerAddress) : null),
    ],
    storefronts: [z.array(z.string()), ({ storefronts = [] }) => storefronts.map(({ cidr }) => cidr)],
    end_user_address: endUserAddress(),
  },
  listed: LAST_USE,
  example: EXAMPLE_CLIENT,
  secret: { member: 'client_secret', description: 'Returned only here.', example: 'ars_3mZk9Q' },
  texts: {
    noun: 'client',
    fullNoun: 'client',
    create: 'Takes effect in every process within a second.',
    update:
      'Change name, scopes or realms of a client, or what its ID alone gives. Members absent from the body are unchanged.',
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
  async page({ after = '', limit }, { accessStore }) {
    const clients = await accessStore.clientsAfter(after, limit);
    const uses = await accessStore.clientUsage();
    return clients.map((client) => ({ ...client, lastUsedAt: uses.get(client.clientId) }));
  },
  find: (id, { accessStore }) => accessStore.client(id),
  async create({ name, ...data }, deps, auditContext) {
    // The schema requires scopes and realms.
    const rights = (await patchOf(data, deps)) as ClientRights;
    const { client, secret } = await createClient(deps.accessStore, name, rights, auditContext);
    return { ...client, secret };
  },
  async patch(data, deps, request) {
    const patch = await patchOf(data, deps);
    if (patch.scopes && !patch.scopes.has('admin')) assertNotCaller(request, 'data.scopes');
    return patch;
  },
  change: (id, edit, { accessStore }, auditContext) => changeClient(accessStore, id, edit, auditContext),
  async rotate(id, rotation, { accessStore }, auditContext) {
    const { client, secret } = await rotateSecret(accessStore, id, rotation, auditContext);
    return { ...client, secret };
  },
  remove: (id, seen, { accessStore }, auditContext) => deleteClient(accessStore, id, seen, auditContext),
  assertNotCaller,
};

const USE: ProjectedMembers<Pick<Client, 'clientId'> & Use> = {
  id: [z.string(), ({ clientId }) => clientId],
  type: 'client_use',
  ...LAST_USE,
};
const CLIENT_USE = singleAnswer(
  'client_use',
  USE,
  EXAMPLE_CLIENT,
  ({ clientId }) => `/clients/${encodeURIComponent(clientId)}/use`,
);

export const CLIENT_OPERATIONS = [
  ...managedOperations(CLIENTS),
  adminOperation({
    name: 'get-client-use',
    method: 'GET',
    path: '/clients/:client_id/use',
    summary: 'Get when a client last requested or used a token.',
    params: { client_id: { description: 'The identifier of the client.', example: CLIENT_ID } },
    success: { ...CLIENT_USE, status: 200, description: 'The time, to the minute.' },
    async handle(request, { accessStore }: ManagedDeps) {
      const { client_id: clientId = '' } = request.params;
      if (!CLIENT_ID_PATTERN.test(clientId)) throw new Fault('not_found');
      assertFound(await accessStore.client(clientId));
      return { clientId, lastUsedAt: (await accessStore.clientUsage()).get(clientId) };
    },
  }),
] as const;
