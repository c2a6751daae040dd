import { z } from 'zod';
import type { StoredEntry } from '../../log/store/entry_row.ts';
import type { Uuid } from '../../model/id.ts';
import { LIMITS } from '../../model/limits.ts';
import { type AuditAction, createAuditEntry } from '../../model/log/audit_entry.ts';
import type { AnyRecord, Key, Resource } from '../../model/resource.ts';
import { passwordProfileInfo, realm as realmResource, user } from '../../model/resources.ts';
import { foldedKey } from '../../model/text/folded_key.ts';
import type { SignInName } from '../../sign_in/credentials.ts';
import { EXAMPLE_AT, exampleIdOf } from '../openapi/examples.ts';
import { pathParameters } from '../openapi/parameters.ts';
import { jsonAnswer, NOT_STORED } from '../openapi/responses.ts';
import { idSchema, link } from '../openapi/schemas.ts';
import type { Call } from '../pipeline/call.ts';
import { itemPattern, parameterNames, selfLinks } from '../pipeline/links.ts';
import type { Operation } from '../pipeline/operation.ts';
import { DONE, documentReply, faultReply, NOT_FOUND_REPLY } from '../server/reply.ts';
import type { SignInDeps } from './password_request.ts';
import { instant, type ProjectedMembers, projectionSchema, projector } from './projection.ts';
import { requestContext } from './record_writes.ts';

const STATE_PATH = `/v2${itemPattern(user)}/sign-in-state`;
const SIGN_OUT_PATH = `/v2${itemPattern(user)}/sign-out`;
const LIFT_PATH = `/v2${itemPattern(passwordProfileInfo)}/sign-in-throttle/lift`;

/** Sign-ins in an answer. */
const SIGN_INS_MAX = 10;

/** The name that signs in with a link. */
function nameOf(realmId: Uuid, { password_profile_id: profileId, username }: AnyRecord): SignInName {
  return { realmId, profileId: profileId as Uuid, usernameKey: foldedKey(String(username)) };
}

/** How a user can sign in, and did; undefined for a user that does not exist. */
async function readState([realm, userId]: readonly [Uuid, Uuid], { store, signIn, baseUrl }: SignInDeps) {
  const found = await store.getIncluding(user, [realm, userId], [passwordProfileInfo]);
  if (!found) return undefined;
  const usernames = found.included.flatMap(({ records }) => records);
  return {
    // One after the other: 100 of them are no load of one moment.
    usernames: await Array.fromAsync(usernames, async (record) => ({
      id: record.id,
      hasPassword: await signIn.hasPassword(realm, userId, record.id),
      throttles: await signIn.budgets.throttles(nameOf(realm, record)),
    })),
    areSignInsLogged: signIn.logSuccess !== undefined,
    signIns: await signIn.newestActsOf({ realm, user: userId }, 'sign-in.succeeded', SIGN_INS_MAX),
    self: `${selfLinks({ ...user, selfPrefix: '/v2' }, baseUrl)([realm, userId])}/sign-in-state`,
  };
}

type SignInState = NonNullable<Awaited<ReturnType<typeof readState>>>;
type UsernameState = SignInState['usernames'][number];

const THROTTLE: ProjectedMembers<UsernameState['throttles'][number]> = {
  attempts: z.enum(['without_device', 'network', 'device']).meta({
    description:
      '`without_device`: all without a device token. `network`: those of a network without one. `device`: those with a certain one, which is then ignored.',
  }),
  throttled_until: instant(({ until }) => until),
};

const USERNAME: ProjectedMembers<UsernameState> = {
  id: idSchema.meta({ description: `The ID of the ${passwordProfileInfo.name}.` }),
  has_password: z.boolean().meta({ description: 'Whether there is a password that a sign-in accepts.' }),
  throttles: listOf(THROTTLE, (state: UsernameState) => state.throttles, 'The attempts refused for now.'),
};

const SIGN_IN: ProjectedMembers<StoredEntry> = {
  at: instant(({ at }) => at),
  link_id: [idSchema, ({ columns }) => columns.object],
  mechanism: [
    z.enum(['password', 'oidc']),
    ({ columns }) => JSON.parse(String(columns.detail)).mechanism ?? 'password',
  ],
};

const STATE: ProjectedMembers<SignInState> = {
  data: {
    type: 'sign_in_state',
    usernames: listOf(USERNAME, (state: SignInState) => state.usernames, 'The newest 100.'),
    are_sign_ins_logged: z.boolean().meta({ description: 'Whether the service has `--log-sign-ins`.' }),
    sign_ins: listOf(SIGN_IN, (state: SignInState) => state.signIns, 'The last ten, newest first.'),
  },
  links: { self: link },
};
const stateBody = projector(STATE);

function listOf<From, Item>(
  members: ProjectedMembers<Item>,
  itemsOf: (from: From) => readonly Item[],
  description: string,
) {
  const show = projector(members);
  const schema = z.array(projectionSchema(members)).meta({ description });
  return [schema, (from: From) => itemsOf(from).map(show)] as const;
}

const LINK_ID = exampleIdOf(passwordProfileInfo);

const EXAMPLE: SignInState = {
  usernames: [
    { id: LINK_ID, hasPassword: true, throttles: [{ attempts: 'without_device', until: EXAMPLE_AT }] },
  ],
  areSignInsLogged: true,
  signIns: [{ seq: 1, at: EXAMPLE_AT, columns: { object: LINK_ID, detail: '{}' }, tag: null }],
  self: `https://idp.example/v2/authentication-realms/${exampleIdOf(realmResource)}/user-authentication-info/${exampleIdOf(user)}/sign-in-state`,
};

const documented = (resource: Resource, path: string) => ({
  tag: resource.name,
  isExtension: true as const,
  path: pathParameters(resource, parameterNames(path)),
  headers: ['X-Request-Id'] as const,
});

/** Logs a sign-out or a lift. */
async function logUserAct(action: AuditAction, call: Call, { signIn, clock }: SignInDeps): Promise<void> {
  const [realm, userId, object = userId] = call.key as readonly [Uuid, Uuid, Uuid?];
  const fields = { id: clock.mintId(), realm, user: userId, object, detail: {} };
  const { actor, address, requestId } = requestContext(call);
  const caller = { actor, address, requestId };
  await signIn.log([createAuditEntry(action, fields, { ...clock, caller })]);
}

/** Lifts of a link within an hour: each forgives wrong passwords. Concurrent ones forgive the same. */
const LIFTS_MAX = 3;
const LIFTED = 'this username had three lifts within an hour';
const HOUR_S = 3_600;

/** The seconds until the throttles of a link can be lifted, by the log of its user; not positive if they can be now. */
async function liftWaitS(key: Key, { signIn, clock }: SignInDeps): Promise<number> {
  const [realm, user, link] = key as readonly [Uuid, Uuid, Uuid];
  const lifts = await signIn.newestActsOf({ realm, user }, 'sign-in.throttle-lifted', LIMITS.pageRecordsMax);
  const earliest = lifts.filter(({ columns }) => columns.object === link)[LIFTS_MAX - 1];
  return earliest ? Math.ceil((earliest.at - clock.now()) / 1_000) + HOUR_S : 0;
}

/** The sign-in state of a user, sign-out, and lifts of throttles (docs/wire.md#sign-ins-of-a-user). */
export const USER_SIGN_IN_OPERATIONS: readonly Operation<SignInDeps>[] = [
  {
    name: 'get-sign-in-state',
    method: 'GET',
    path: STATE_PATH,
    access: { scope: 'history:read' },
    work: 'get',
    locates: 'key',
    handle: (deps) => async (call) => {
      const state = await readState(call.key as readonly [Uuid, Uuid], deps);
      return state ? documentReply(stateBody(state), 'no-store') : NOT_FOUND_REPLY;
    },
    document: () => ({
      ...documented(user, STATE_PATH),
      summary: 'Get which usernames of a user have a password or are throttled, and the last sign-ins.',
      success: jsonAnswer(
        'How the user can sign in, and did.',
        NOT_STORED,
        projectionSchema(STATE).meta({ id: 'sign_in_state' }),
        stateBody(EXAMPLE),
      ),
    }),
  },
  {
    name: 'sign-out-user',
    method: 'POST',
    path: SIGN_OUT_PATH,
    access: { scope: `${user.scope}:write` },
    work: 'write',
    locates: 'key',
    handle: (deps) => async (call) => {
      const body = { data: { type: user.type } };
      const request = { verb: 'update', resource: user, key: call.key as Key, body } as const;
      const signOut = { ...request, expectedRevision: undefined, endsSignIns: true } as const;
      if (!(await deps.store.get(user, request.key))) return NOT_FOUND_REPLY;
      await logUserAct('sign-in.ended', call, deps);
      await deps.writeRecords([signOut], requestContext(call));
      return DONE;
    },
    document: () => ({
      ...documented(user, SIGN_OUT_PATH),
      summary: 'End all sign-ins of a user: account tokens and device tokens are no longer valid.',
      success: { status: 204, description: 'The user can sign in again.' },
      faults: ['unknown_outcome'],
    }),
  },
  {
    name: 'lift-sign-in-throttle',
    method: 'POST',
    path: LIFT_PATH,
    access: { scope: 'sign-in-throttles:write' },
    work: 'get',
    locates: 'key',
    handle: (deps) => async (call) => {
      const key = call.key as Key;
      const record = await deps.store.get(passwordProfileInfo, key);
      if (!record) return NOT_FOUND_REPLY;
      const waitS = await liftWaitS(key, deps);
      if (waitS > 0) return faultReply('rate_limited', { 'Retry-After': String(waitS) }, LIFTED);
      await logUserAct('sign-in.throttle-lifted', call, deps);
      await deps.signIn.budgets.refill(nameOf(key[0], record));
      return DONE;
    },
    document: () => ({
      ...documented(passwordProfileInfo, LIFT_PATH),
      summary: 'Have attempts to sign in with a username checked again, at most three times an hour.',
      success: { status: 204, description: 'All its wrong passwords are forgotten.' },
      faults: ['unknown_outcome'],
    }),
  },
];
