import { createHash } from 'node:crypto';
import type { Flags } from '../../src/app/config/parse.ts';
import type { Uuid } from '../../src/model/id.ts';
import { type OpenedState, openOidcFlow } from '../../src/sign_in/oidc_flow.ts';
import { createKeyPair, issue, json, type RequestHandler } from './issuers.ts';
import {
  type Changes,
  CLIENT_SECRET,
  CODE_CHALLENGE,
  CODE_VERIFIER,
  type Place,
  REDIRECT_URI,
  redirectOf,
  STATE,
  startOidcSignIn,
} from './oidc_sign_in.ts';
import type { Service } from './service.ts';
import { type AccountTokensAnswer, createSignInClient, requestTokens } from './sign_in.ts';
import type { Json } from './token_forge.ts';

/** The token call with codes of a provider. */

export type TokenCalls = Awaited<ReturnType<typeof startTokenCalls>>;

/** How a call differs from one of a client with `sign-in` and `sign-up` at the service of the fixture. */
interface CallChanges {
  readonly members?: Json;
  readonly headers?: Record<string, string>;
  readonly token?: string;
  readonly to?: Pick<Service, 'post'>;
}

/** How a sign-in at the provider differs from one of the profile of the fixture. */
interface LoginChanges {
  readonly changes?: Changes;
  readonly at?: Partial<Place>;
}

let people = 0;

/** Claims of a person whom no other test has. */
export function newPerson(more: Json = {}): Json {
  people += 1;
  const name = `jane-${process.pid}-${people}`;
  return { sub: `auth0|${name}`, email: `${name}@example.com`, email_verified: true, ...more };
}

/** Starts a service and a provider, whose codes are each valid once, for one client, redirect URI and verifier. */
export async function startTokenCalls(flags: Flags = {}) {
  const world = await startOidcSignIn({ tokenLifetime: '86400', ...flags });
  const { service, provider, realm, profile } = world;
  const { routes, requestCounts } = provider;
  const pair = await createKeyPair('one');
  const flow = openOidcFlow(service.db.keyring, service.clock);
  const granted = new Map<string, { readonly claims: Json; readonly query: Record<string, string> }>();
  const now = () => Math.floor(service.clock.now() / 1000);
  const client = await createSignInClient(service, { scope: 'sign-in sign-up' });
  const token = await service.grant(client);
  let clientSecret = CLIENT_SECRET;
  let seen: (idToken: string) => void = () => undefined;

  const answerWith =
    (status: number, document: object): RequestHandler =>
    (request, response) => {
      response.statusCode = status;
      json(document)(request, response);
    };
  const redeem: RequestHandler = async (request, response) => {
    const body = Buffer.concat(await Array.fromAsync(request)).toString();
    const form = Object.fromEntries(new URLSearchParams(body));
    const secret = new URLSearchParams({ '': clientSecret }).toString().slice(1);
    if (request.headers.authorization !== `Basic ${btoa(`shop:${secret}`)}`)
      return answerWith(401, { error: 'invalid_client' })(request, response);
    const grant = granted.get(form.code ?? '');
    granted.delete(form.code ?? '');
    const challenge = createHash('sha256')
      .update(form.code_verifier ?? '')
      .digest('base64url');
    const { code_challenge, redirect_uri, nonce } = grant?.query ?? {};
    if (!grant || challenge !== code_challenge || form.redirect_uri !== redirect_uri)
      return answerWith(400, { error: 'invalid_grant' })(request, response);
    const times = { iat: now(), exp: now() + 300 };
    const claims = { iss: provider.issuer, aud: 'shop', nonce, ...times, ...grant.claims };
    const id_token = await issue(pair, claims, { typ: 'JWT' });
    seen(id_token);
    return json({ access_token: 'of-userinfo', token_type: 'Bearer', id_token })(request, response);
  };
  routes.set('/keys', json({ keys: [pair.publicJwk] }));
  routes.set('/token', redeem);

  /** A browser that begins at the login URL. */
  async function begin({ changes, at }: LoginChanges = {}) {
    const { cookie, query } = redirectOf(await world.login(changes, at));
    return { cookie, query };
  }

  /** Comes back from the provider with this code. Resolves to the code that the storefront gets. */
  async function complete(
    { cookie, query }: Awaited<ReturnType<typeof begin>>,
    code: string,
    at?: Partial<Place>,
  ) {
    const back = redirectOf(await world.callback({ state: query.state, code }, cookie, at));
    if (!back.query.code) throw new Error(`sent to ${back.location}`);
    return back.query.code;
  }

  /** The provider signs a person in. Resolves to its code. */
  function grant(query: Record<string, string>, claims: Json): string {
    const code = crypto.randomUUID();
    granted.set(code, { claims, query });
    return code;
  }

  async function authorize(claims: Json = newPerson(), { changes, at }: LoginChanges = {}): Promise<string> {
    const begun = await begin({ ...(changes && { changes }), ...(at && { at }) });
    return complete(begun, grant(begun.query, claims), at);
  }

  const bodyOf = (code: string, members: Json = {}) => ({
    data: {
      ...{ type: 'account_management_authentication_token', authentication_mechanism: 'oidc' },
      ...{ oauth_authorization_code: code, oauth_redirect_uri: REDIRECT_URI },
      ...{ oauth_code_verifier: CODE_VERIFIER, ...members },
    },
  });

  const send = (code: string, { members, headers, to = service.withoutRetry, ...by }: CallChanges = {}) =>
    requestTokens(to, by.token ?? token, bodyOf(code, members), headers);

  return {
    ...world,
    ...{ client, token, redeem, answerWith, begin, complete, grant, authorize, send, bodyOf },
    /** The number of codes that the provider was asked for. */
    exchanges: () => requestCounts.get('/token') ?? 0,
    /** The provider accepts this client secret alone. */
    setClientSecret(secret: string): void {
      clientSecret = secret;
    },
    /** Calls this function with the ID tokens that the provider sends from now on. */
    onIdToken(see: (idToken: string) => void): void {
      seen = see;
    },
    /** A code of the storefront, without a browser. */
    sealCode(providerCode: string, more: Partial<OpenedState> = {}, by = flow): string {
      const requested = { realmId: realm, profileId: profile, redirectUri: REDIRECT_URI, state: STATE };
      const { issuer } = provider;
      const begun = by.begin({ ...requested, issuer, codeChallenge: CODE_CHALLENGE, reportsReplay: false });
      const opened = by.openState(begun.state, realm, profile);
      if (!opened) throw new Error('the state does not open');
      return by.sealCode({ ...opened, ...more }, providerCode);
    },
    signIn: async (claims: Json = newPerson(), call: CallChanges = {}) => send(await authorize(claims), call),
  };
}

/** The user and account token of a sign-in. */
export async function signedInOf(answer: Response): Promise<{ readonly user: Uuid; readonly token: string }> {
  if (answer.status !== 201) throw new Error(`answered ${answer.status}: ${await answer.text()}`);
  const { data, meta } = (await answer.json()) as AccountTokensAnswer;
  return { user: meta.account_member_id as Uuid, token: data[0]?.token ?? '' };
}

export function claimsIn(token: string): Json {
  return JSON.parse(Buffer.from(token.split('.')[1] ?? '', 'base64url').toString());
}
