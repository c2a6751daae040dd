import { z } from 'zod';
import { exampleIdOf } from '../http/openapi/examples.ts';
import { offsetParameters } from '../http/openapi/parameters.ts';
import { HEADERS, jsonContent } from '../http/openapi/responses.ts';
import { countedMeta, idSchema, pageLinks } from '../http/openapi/schemas.ts';
import { shortListBody } from '../http/operations/lists.ts';
import type { OidcDeps } from '../http/operations/oidc_request.ts';
import {
  checkPassword,
  DEVICE,
  readEndUserAddress,
  SIGN_IN_SCOPE,
  SIGN_UP_SCOPE,
  type SignInDeps,
} from '../http/operations/password_request.ts';
import {
  accountTokenParameter,
  deviceHeader,
  signInParameters,
} from '../http/operations/password_schemas.ts';
import type { ProjectedMembers } from '../http/operations/projection.ts';
import { instant, projectionSchema, projector } from '../http/operations/projection.ts';
import { NOT_SENT, NOT_VALID } from '../http/pipeline/bearer.ts';
import { dataOf } from '../http/pipeline/body.ts';
import type { Call } from '../http/pipeline/call.ts';
import type { Operation } from '../http/pipeline/operation.ts';
import { readQuery } from '../http/pipeline/query.ts';
import { checkData } from '../http/pipeline/reading.ts';
import { faultReply, JSON_TYPE, type Reply } from '../http/server/reply.ts';
import { accountSettingsOf } from '../model/account_settings.ts';
import { parseUuid } from '../model/id.ts';
import { LIMITS } from '../model/limits.ts';
import type { AnyRecord } from '../model/resource.ts';
import { passwordProfile, user } from '../model/resources.ts';
import type { PresetOrigin } from '../records/presets.ts';
import type { AccountSignIn } from './account_token.ts';
import { CODE_MEMBERS, signInByCode } from './oidc_sign_in.ts';
import { refuseSelfSignup, SELF_SIGNUP, signUp } from './self_signup.ts';
import { accessibleRealm } from './settings.ts';

/**
 * The token call: an account member signs in by password, signs up, or renews an account token (docs/wire.md#account-tokens). It serves
 * the account realm alone.
 */
const PATH = '/v2/account-members/tokens';
const ORIGIN: PresetOrigin = 'account_authentication_settings';
const TYPE = 'account_management_authentication_token';
/** Carries the account token of a member. */
export const ACCOUNT_TOKEN = 'EP-Account-Management-Authentication-Token';

/** The same answer to a wrong password, an unknown username and an unknown profile. */
const AUTHENTICATION_FAILED = faultReply('authentication_failed');

/** The same where there is no account realm, or the profile is none of it. The log has the reason. */
function refuseRealm(call: Call): Reply {
  call.refused ??= 'not the account realm';
  return AUTHENTICATION_FAILED;
}

/** Without a challenge: clients take a 401 with one for their own access token (docs/wire.md#account-tokens). */
export function refuseAccountToken(token: string | null): Reply {
  return faultReply('invalid_account_token', {}, token ? NOT_VALID : NOT_SENT);
}

const requestBy = <const M extends string, S extends z.ZodRawShape>(mechanism: M, members: S) =>
  z
    .object({ type: z.literal(TYPE), authentication_mechanism: z.literal(mechanism), ...members })
    .meta({ id: `${TYPE}.request-${mechanism}` });
const text = z.string();
const byPassword = requestBy('password', { password_profile_id: text, username: text, password: text });
const bySelfSignup = requestBy('self_signup', SELF_SIGNUP);
const byCode = requestBy('oidc', CODE_MEMBERS);
const byToken = requestBy(TYPE, {});
const REQUESTS = [byPassword, bySelfSignup, byCode, byToken] as const;
const MECHANISMS = REQUESTS.map(({ shape }) => shape.authentication_mechanism.value);
const byAnother = z.object({ type: z.literal(TYPE), authentication_mechanism: z.enum(MECHANISMS) });
type PasswordRequest = z.output<typeof byPassword> | z.output<typeof bySelfSignup>;

/** Reads a request. Throws Fault `malformed` or `invalid`. */
function readRequest(body: string): z.output<(typeof REQUESTS)[number]> {
  const data = dataOf(body);
  const { authentication_mechanism: mechanism } = data;
  const schema = REQUESTS.find(({ shape }) => shape.authentication_mechanism.value === mechanism);
  // Another mechanism is an error of that member.
  return checkData(schema ?? byAnother, data) as z.output<(typeof REQUESTS)[number]>;
}

interface TokenScope {
  /** The account realm; undefined for a caller that may not access it. */
  readonly realm: AnyRecord | undefined;
  readonly page: Pick<ReturnType<typeof readQuery>, 'limit' | 'offset'>;
}

async function signIn(
  call: Call,
  request: PasswordRequest,
  { realm, page }: TokenScope,
  deps: SignInDeps,
): Promise<Reply> {
  const isSignUp = request.authentication_mechanism === 'self_signup';
  const refused = isSignUp ? refuseSelfSignup(call, realm) : undefined;
  if (refused) return refused;
  const profileId = parseUuid(request.password_profile_id);
  if (!realm || !profileId || !(await deps.store.get(passwordProfile, [realm.id, profileId])))
    return refuseRealm(call);
  const place = { realmId: realm.id, profileId };
  const { username, password } = request;
  const outcome = isSignUp
    ? await signUp(call, place, request, deps)
    : await checkPassword(call, 'password', { ...place, username, password }, deps);
  if ('status' in outcome) return outcome;
  if (outcome.kind === 'wrong') return AUTHENTICATION_FAILED;
  const { userId, infoId, version } = outcome.credential;
  const authTime = Math.floor(deps.clock.now() / 1000);
  // How the user authenticated: RFC 8176.
  const by = { mechanism: 'password', realmId: realm.id, userId, infoId, version, amr: ['pwd'] } as const;
  const reply = await tokensReply({ ...by, authTime }, { realm, page }, deps);
  return reply
    ? { ...reply, headers: { ...reply.headers, [DEVICE]: outcome.deviceToken } }
    : AUTHENTICATION_FAILED;
}

async function signInByProvider(
  call: Call,
  request: z.output<typeof byCode>,
  { realm, page }: TokenScope,
  deps: OidcDeps,
): Promise<Reply> {
  if (!realm) return refuseRealm(call);
  const signedIn = await signInByCode(call, request, realm, deps);
  if (signedIn === 'refused') return AUTHENTICATION_FAILED;
  if ('status' in signedIn) return signedIn;
  return (await tokensReply(signedIn, { realm, page }, deps)) ?? AUTHENTICATION_FAILED;
}

async function renew({ request }: Call, { realm, page }: TokenScope, deps: SignInDeps): Promise<Reply> {
  const token = request.headers.get(ACCOUNT_TOKEN);
  if (!token || !realm) return refuseAccountToken(token);
  const signedIn = await deps.signIn.accountTokens.verify(token, realm.id);
  return (signedIn && (await tokensReply(signedIn, { realm, page }, deps))) ?? refuseAccountToken(token);
}

/** The answer with the tokens of a member: of one account, or of none. Undefined if the user is deleted. */
async function tokensReply(
  signedIn: AccountSignIn,
  { realm, page: { limit, offset = 0 } }: TokenScope & { readonly realm: AnyRecord },
  { store, signIn: { accountTokens }, baseUrl }: SignInDeps,
): Promise<Reply | undefined> {
  const member = await store.get(user, [realm.id, signedIn.userId]);
  if (!member) return undefined;
  const settings = accountSettingsOf(realm);
  const total = settings.auto_create_account_for_account_members ? 1 : 0;
  const lifetime = settings.account_management_authentication_token_timeout_secs;
  const items = offset < total ? [itemOf({ member, ...(await accountTokens.mint(signedIn, lifetime)) })] : [];
  const page = { total, limit: limit ?? LIMITS.pageRecordsDefault, offset, url: baseUrl + PATH };
  const furtherMeta = { account_member_id: member.id };
  const headers = { 'Content-Type': JSON_TYPE, 'Cache-Control': 'no-store' };
  return { status: 201, headers, body: shortListBody(items, { ...page, furtherMeta }) };
}

interface MintedToken {
  readonly member: Pick<AnyRecord, 'id'> & Readonly<Record<string, unknown>>;
  readonly token: string;
  readonly expiresAt: number;
}

/** The account of a member is the member. */
const ITEM: ProjectedMembers<MintedToken> = {
  type: TYPE,
  account_id: [idSchema, ({ member }) => member.id],
  account_name: [z.string(), ({ member }) => member.name],
  token: z.string().meta({ description: 'A JWT, verifiable with the key set of the service.' }),
  expires: instant(({ expiresAt }) => expiresAt),
};
const itemOf = projector(ITEM);

const answerSchema = () =>
  z
    .strictObject({
      data: z.array(projectionSchema(ITEM)),
      meta: z.strictObject({ account_member_id: idSchema, ...countedMeta.shape }),
      links: pageLinks,
    })
    .meta({ id: `${TYPE}.page` });

function exampleAnswer(baseUrl: string): unknown {
  const id = exampleIdOf(user);
  const token = 'eyJhbGciOiJFZDI1NTE5In0.e30.c2lnbmF0dXJl';
  const item = itemOf({ member: { id, name: 'Jane Doe' }, token, expiresAt: 1_769_853_600_000 });
  const page = { total: 1, limit: 25, url: baseUrl + PATH, furtherMeta: { account_member_id: id } };
  return JSON.parse(shortListBody([item], page));
}

export const CREATE_ACCOUNT_TOKENS: Operation<OidcDeps> = {
  name: 'create-account-management-authentication-token',
  method: 'POST',
  path: PATH,
  access: { scope: SIGN_IN_SCOPE },
  work: 'get',
  body: 'json',
  handle: (deps) => async (call) => {
    readEndUserAddress(call);
    const page = readQuery(call.request.url);
    const request = readRequest(call.body ?? '');
    const realm = accessibleRealm(call, await deps.settingsRealms.find(ORIGIN));
    if (request.authentication_mechanism === TYPE) return renew(call, { realm, page }, deps);
    if (request.authentication_mechanism === 'oidc')
      return signInByProvider(call, request, { realm, page }, deps);
    return signIn(call, request, { realm, page }, deps);
  },
  document: ({ baseUrl }) => ({
    summary: 'Sign in by password or through a provider, sign up, or renew an account token.',
    furtherScopes: [SIGN_UP_SCOPE],
    tag: 'account-members',
    query: offsetParameters(),
    headers: ['X-Request-Id'],
    ownHeaders: { ...signInParameters(), [ACCOUNT_TOKEN]: accountTokenParameter() },
    body: {
      schema: z
        .object({ data: z.discriminatedUnion('authentication_mechanism', REQUESTS) })
        .meta({ id: `${TYPE}.request` }),
      example: {
        data: {
          type: TYPE,
          authentication_mechanism: 'password',
          password_profile_id: exampleIdOf(passwordProfile),
          username: 'jane@example.com',
          password: 'correct horse battery staple',
        },
      },
    },
    success: {
      status: 201,
      description: 'The tokens of the member, one for each account; none if members have no accounts.',
      headers: { 'Cache-Control': HEADERS.noStore, [DEVICE]: deviceHeader() },
      content: jsonContent(answerSchema(), exampleAnswer(baseUrl)),
    },
    faults: [
      'authentication_failed',
      'invalid_account_token',
      'conflict',
      'unknown_outcome',
      'provider_unavailable',
    ],
  }),
};
