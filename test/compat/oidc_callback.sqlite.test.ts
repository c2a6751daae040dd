import { describe, expect, test } from 'bun:test';
import { LIMITS } from '../../src/model/limits.ts';
import { oidcProfile } from '../../src/model/resources.ts';
import { systemClock } from '../../src/ops/process/clock.ts';
import { openOidcFlow } from '../../src/sign_in/oidc_flow.ts';
import {
  CODE_CHALLENGE,
  CODE_VERIFIER,
  callbackUrl,
  createOidcProfile,
  loginUrl,
  outcomeOf,
  REDIRECT_URI,
  REDIRECT_URI_WITH_QUERY,
  redirectOf,
  STATE,
  startOidcSignIn,
  visit,
} from '../support/oidc_sign_in.ts';
import { startService } from '../support/service.ts';

/** The callback, to which providers send browsers. */

const world = await startOidcSignIn({ requestLogging: 'full' });
const { service, provider, realm, profile, realms, login, callback } = world;
const flow = openOidcFlow(service.db.keyring, service.clock);
const other = systemClock.mintId();
const CODE = 'a.code-of_the~provider';
const UNKNOWN = 'the URL must name an OIDC profile of the realm of account members, which has redirect URIs';
const EXPIRED = 'state is not valid or has expired: sign in again';
const ELSEWHERE = 'the sign-in was begun in another browser, or is already completed';

/** What a browser brings back after a login. */
async function begin(changes: Parameters<typeof login>[0] = {}) {
  const { query, cookie } = redirectOf(await login(changes));
  return { state: query.state ?? '', cookie };
}

const refused = (text: string) => ({ status: 400, error: 'invalid_request', text, isShape: true });
const REMOVED = expect.stringMatching(
  /^authrealm-sign-in-[0-9a-f]=; Path=\/; HttpOnly; SameSite=Lax; Max-Age=0$/,
);

describe('a callback', () => {
  test('a browser is sent to the redirect URI with a code and the state, and its cookie is removed', async () => {
    const { state, cookie } = await begin();
    const answer = await callback({ state, code: CODE }, cookie);
    const outcome = await outcomeOf(answer);
    const code = expect.stringMatching(/^[\w-]{100,}$/);
    expect(outcome).toEqual({ status: 303, to: REDIRECT_URI, code, state: STATE, setCookie: REMOVED });
    expect(redirectOf(answer).cookie.split('=')[0]).toBe(cookie.split('=')[0] ?? '');
    const opened = flow.openCode(String(outcome.code), realm);
    expect(opened).toMatchObject({ profileId: profile, providerCode: CODE, codeChallenge: CODE_CHALLENGE });
    expect(opened && flow.isVerifierOf(opened, CODE_VERIFIER)).toBe(true);
  });

  test('a redirect URI with a query gets the code behind it', async () => {
    const { state, cookie } = await begin({ redirect_uri: REDIRECT_URI_WITH_QUERY });
    const { location } = redirectOf(await callback({ state, code: CODE }, cookie));
    expect(location).toStartWith(`${REDIRECT_URI_WITH_QUERY}&code=`);
  });

  test('other parameters of the provider are ignored, and a code of 4,096 characters is accepted', async () => {
    const { state, cookie } = await begin();
    const sent = { state, code: 'x'.repeat(4_096), session_state: 's', scope: 'openid', x: ['1', '2'] };
    expect(await outcomeOf(await callback(sent, cookie))).toMatchObject({ state: STATE, setCookie: REMOVED });
  });

  test('a sign-in that one process begins is completed by another one', async () => {
    const second = await startService({
      ...service.database.flags,
      ...{ baseUrl: service.url, allowPrivate: 'localhost 127.0.0.0/8' },
    });
    const { state, cookie } = await begin();
    const answer = await visit(callbackUrl(second.url, world, { state, code: CODE }), cookie);
    expect(await outcomeOf(answer)).toMatchObject({ to: REDIRECT_URI, state: STATE });
  });

  test('HEAD is answered as GET, methods without a handler are 405', async () => {
    const { state, cookie } = await begin();
    const url = callbackUrl(service.url, world, { state, code: CODE });
    const head = await visit(url, cookie, { method: 'HEAD' });
    expect([head.status, redirectOf(head).query.state]).toEqual([303, STATE]);
    for (const method of ['PUT', 'DELETE', 'PATCH'])
      expect([method, (await visit(url, cookie, { method })).status]).toEqual([method, 405]);
  });

  test('no log has a part of the query of a callback', async () => {
    const { state, cookie } = await begin();
    const { query } = redirectOf(await callback({ state, code: CODE }, cookie));
    await callback({ state, code: CODE });
    const log = JSON.stringify(service.log);
    expect(log).toContain('/oidc-idp/callback/stores/:store/authentication-realms/:realm/oidc-profiles/:id');
    for (const text of [state, CODE, query.code, STATE, cookie.split('=')[1]])
      expect([text, log.includes(text ?? '')]).toEqual([text, false]);
  });
});

describe('a callback that cannot be sent back', () => {
  test.each([
    ['another store', { store: other }],
    ['an unknown realm', { realm: other }],
    ['another realm', { realm: realms.buyers }],
    ['an unknown profile', { profile: other }],
    ['a malformed profile', { profile: 'none' }],
  ])('%s is 400', async (_, at) => {
    const { state, cookie } = await begin();
    expect(await outcomeOf(await callback({ state, code: CODE }, cookie, at))).toEqual(refused(UNKNOWN));
  });

  test('a state of another profile of the realm is 400', async () => {
    const second = await createOidcProfile(service.db, realm, provider.issuer);
    const { state, cookie } = await begin();
    const answer = await callback({ state, code: CODE }, cookie, { profile: second });
    expect(await outcomeOf(answer)).toEqual(refused(EXPIRED));
  });

  test.each([
    ['no state', () => undefined],
    ['an empty state', () => ''],
    ['a state given twice', (state: string) => [state, state]],
    [
      'a state with another first character',
      (state: string) => (state[0] === 'A' ? 'B' : 'A') + state.slice(1),
    ],
    [
      'a state with another last character',
      (state: string) => state.slice(0, -1) + (state.endsWith('A') ? 'B' : 'A'),
    ],
    ['a state of another text', () => 'x'.repeat(200)],
    ['a state with padding', (state: string) => `${state}=`],
    [
      'a code in place of the state',
      (state: string) => {
        const opened = flow.openState(state, realm, profile);
        return opened && flow.sealCode(opened, CODE);
      },
    ],
  ] as const)('%s is 400', async (_, change) => {
    const { state, cookie } = await begin();
    const answer = await callback({ state: change(state), code: CODE }, cookie);
    expect(await outcomeOf(answer)).toEqual(refused(EXPIRED));
  });

  test('a state is 400 a second after its end, one second before it is accepted', async () => {
    const own = await startOidcSignIn();
    const { query, cookie } = redirectOf(await own.login());
    const sent = { state: query.state, code: CODE };
    own.service.clock.advance((LIMITS.oidcStateSeconds - 1) * 1_000);
    expect((await own.callback(sent, cookie)).status).toBe(303);
    own.service.clock.advance(2_000);
    expect(await outcomeOf(await own.callback(sent, cookie))).toEqual(refused(EXPIRED));
  });

  test('a state of another installation is 400', async () => {
    const own = await startOidcSignIn();
    const { query, cookie } = redirectOf(await own.login());
    expect(await outcomeOf(await callback({ state: query.state, code: CODE }, cookie))).toEqual(
      refused(EXPIRED),
    );
  });

  test('a redirect URI that the realm no longer has is 400, as is one after the last is removed', async () => {
    const own = await startOidcSignIn();
    const { query, cookie } = redirectOf(await own.login());
    const sent = { state: query.state, code: CODE };
    await own.setRedirectUris(REDIRECT_URI_WITH_QUERY);
    expect(await outcomeOf(await own.callback(sent, cookie))).toEqual(
      refused('redirect_uri or issuer of the sign-in has changed: sign in again'),
    );
    await own.setRedirectUris();
    expect(await outcomeOf(await own.callback(sent, cookie))).toEqual(refused(UNKNOWN));
  });

  test('a profile that was deleted is 400', async () => {
    const own = await startOidcSignIn();
    const { query, cookie } = redirectOf(await own.login());
    const token = await own.service.token('profiles:write');
    const path = `/v2/authentication-realms/${own.realm}/${oidcProfile.collection}/${own.profile}`;
    expect((await own.service.del(path, token)).status).toBe(204);
    expect(await outcomeOf(await own.callback({ state: query.state, code: CODE }, cookie))).toEqual(
      refused(UNKNOWN),
    );
  });

  test.each([
    ['without a cookie', () => undefined],
    ['with an empty one', (cookie: string) => `${cookie.split('=')[0]}=`],
    ['with that of another browser', (cookie: string) => `${cookie.split('=')[0]}=${'A'.repeat(22)}`],
    ['with one that has the prefix of https', (cookie: string) => `__Host-${cookie}`],
    [
      'with one of another digit',
      (cookie: string) => cookie.replace(/-.=/, (digit) => (digit === '-0=' ? '-1=' : '-0=')),
    ],
  ] as const)('a callback %s is 400, or reported where the login asks for it', async (_, change) => {
    const plain = await begin();
    const answer = await callback({ state: plain.state, code: CODE }, change(plain.cookie));
    expect(await outcomeOf(answer)).toEqual(refused(ELSEWHERE));
    const { state, cookie } = await begin({ ep_report_callback_replay_error: 'true' });
    const reported = await callback({ state, code: CODE }, change(cookie));
    const error = { error: 'callback_replay', text: ELSEWHERE, state: STATE };
    expect(await outcomeOf(reported)).toEqual({ status: 303, to: REDIRECT_URI, ...error });
  });

  test.each([
    [undefined, refused(ELSEWHERE)],
    ['true', { status: 303, to: REDIRECT_URI, error: 'callback_replay', text: ELSEWHERE, state: STATE }],
  ])('a callback that a browser repeats finds no cookie (replay flag %p)', async (flag, expected) => {
    const { state, cookie } = await begin({ ep_report_callback_replay_error: flag });
    const url = callbackUrl(service.url, world, { state, code: CODE });
    const first = await visit(url, cookie);
    expect(first.status).toBe(303);
    // The browser follows the removal.
    expect(redirectOf(first).setCookie).toContain('Max-Age=0');
    expect(await outcomeOf(await visit(url))).toEqual(expected);
  });
});

describe('a response of a provider', () => {
  const failed = (error: string, text: string) => ({
    ...{ status: 303, to: REDIRECT_URI, error, text, state: STATE, setCookie: REMOVED },
  });
  const MIXED_UP = failed('server_error', 'the response is not of the provider that was asked');
  const NO_CODE = failed('server_error', 'the provider sent no valid code');

  test.each([
    ['iss of another provider', { iss: 'https://evil.example' }],
    ['iss with a final slash', { iss: `${provider.issuer}/` }],
    ['an empty iss', { iss: '' }],
    ['iss given twice', { iss: [provider.issuer, provider.issuer] }],
    ['iss of another provider, and an error', { iss: 'https://evil.example', error: 'access_denied' }],
  ])('%s is reported as server_error', async (_, sent) => {
    const { state, cookie } = await begin();
    expect(await outcomeOf(await callback({ state, code: CODE, ...sent }, cookie))).toEqual(MIXED_UP);
  });

  test('a missing iss is server_error where the provider announces it, and an iss that is right is accepted', async () => {
    const own = await startOidcSignIn();
    own.describe({ authorization_response_iss_parameter_supported: true });
    const { query, cookie } = redirectOf(await own.login());
    const sent = { state: query.state, code: CODE };
    expect(await outcomeOf(await own.callback(sent, cookie))).toEqual(MIXED_UP);
    const right = await own.callback({ ...sent, iss: own.provider.issuer }, cookie);
    expect(await outcomeOf(right)).toMatchObject({ code: expect.any(String) });
  });

  test('without iss and without the metadata of the provider a response is temporarily_unavailable', async () => {
    const own = await startOidcSignIn();
    const { query, cookie } = redirectOf(await own.login());
    own.provider.routes.clear();
    own.service.clock.advance(LIMITS.issuerKeysFreshMs);
    const sent = { state: query.state, code: CODE };
    expect(await outcomeOf(await own.callback(sent, cookie))).toMatchObject({
      error: 'temporarily_unavailable',
    });
    const right = await own.callback({ ...sent, iss: own.provider.issuer }, cookie);
    expect(await outcomeOf(right)).toMatchObject({ code: expect.any(String) });
  });

  test.each([
    ...[
      'invalid_request',
      'unauthorized_client',
      'access_denied',
      'unsupported_response_type',
      'invalid_scope',
    ],
    ...['server_error', 'temporarily_unavailable', 'interaction_required', 'login_required'],
    ...['account_selection_required', 'consent_required', 'invalid_request_uri', 'invalid_request_object'],
    ...['request_not_supported', 'request_uri_not_supported', 'registration_not_supported'],
  ])('the error %s is passed on, and its description is not', async (error) => {
    const { state, cookie } = await begin();
    const answer = await callback(
      { state, error, error_description: 'jane@example.com', code: CODE },
      cookie,
    );
    expect(await outcomeOf(answer)).toEqual(failed(error, 'the provider did not sign the person in'));
  });

  test.each([
    ['of no standard', 'user_cancelled_login'],
    ['of this service', 'callback_replay'],
    ['without a value', ''],
    ['of 5,000 characters', 'x'.repeat(5_000)],
    ['given twice', ['access_denied', 'access_denied']],
  ] as const)('an error %s is reported as server_error', async (_, error) => {
    const { state, cookie } = await begin();
    expect(await outcomeOf(await callback({ state, error }, cookie))).toEqual(
      failed('server_error', 'the provider did not sign the person in'),
    );
  });

  test.each([
    ['no code', undefined],
    ['an empty code', ''],
    ['a code given twice', [CODE, CODE]],
    ['a code of 4,097 characters', 'x'.repeat(4_097)],
  ])('%s is reported as server_error', async (_, code) => {
    const { state, cookie } = await begin();
    expect(await outcomeOf(await callback({ state, code }, cookie))).toEqual(NO_CODE);
  });
});

describe('a form of a provider', () => {
  const post = (body: NonNullable<RequestInit['body']>, at = world) =>
    visit(callbackUrl(service.url, at, {}), undefined, { method: 'POST', body });

  test('a form is answered with a redirect to the same path, which has code, state, iss and error alone', async () => {
    const { state, cookie } = await begin();
    const user = JSON.stringify({ name: { firstName: 'Jane' }, email: 'jane@example.com' });
    const fields = { state, code: CODE, user, iss: provider.issuer, id_token: 'x' };
    const answer = await post(new URLSearchParams(fields));
    const { location, setCookie } = redirectOf(answer);
    const query = { state, code: CODE, iss: provider.issuer };
    expect([answer.status, location, setCookie]).toEqual([303, callbackUrl(service.url, world, query), '']);
    expect(await outcomeOf(await visit(location, cookie))).toMatchObject({ to: REDIRECT_URI, state: STATE });
  });

  test('a field that a form has twice is refused at the redirect', async () => {
    const { state, cookie } = await begin();
    const { location } = redirectOf(
      await post(
        new URLSearchParams([
          ['state', state],
          ['state', state],
        ]),
      ),
    );
    expect(await outcomeOf(await visit(location, cookie))).toEqual(refused(EXPIRED));
  });

  test('a form for another store, or with a malformed ID, is 400, and so is a body that is not UTF-8', async () => {
    for (const at of [{ store: other }, { realm: 'none' }, { profile: 'https:' }])
      expect(await outcomeOf(await post('code=x', { ...world, ...at } as typeof world))).toEqual(
        refused(UNKNOWN),
      );
    expect(await outcomeOf(await post(Uint8Array.of(0xff)))).toEqual(refused('the body must be UTF-8 text'));
  });

  test('a form of 64 KiB is redirected, one byte more is 413', async () => {
    const form = (bytes: number) => `user=${'x'.repeat(bytes - 5)}`;
    expect((await post(form(65_536))).status).toBe(303);
    expect((await post(form(65_537))).status).toBe(413);
  });

  test('a form whose fields no request could have in its query is 400, however many they are', async () => {
    for (const body of [`code=${'x'.repeat(16_400)}`, 'code=x&'.repeat(2_500), `code=${'ü'.repeat(3_000)}`])
      expect(await outcomeOf(await post(body))).toEqual(refused('the body is too long'));
    expect((await post(`code=${'x'.repeat(4_097)}`)).status).toBe(303);
  });

  test('a form for a service whose base URL is http and not on this machine is 400', async () => {
    const own = await startOidcSignIn({ baseUrl: 'http://id.example' });
    const answer = await visit(callbackUrl(own.service.url, own, {}), undefined, {
      method: 'POST',
      body: 'code=x',
    });
    expect(await outcomeOf(answer)).toEqual(refused(UNKNOWN));
  });
});

test('with a base URL of https and a path prefix a sign-in uses cookies of the host, and forms keep the prefix', async () => {
  const own = await startOidcSignIn({ baseUrl: 'https://id.example/sso' });
  const url = `${own.service.url}/sso`;
  const { query, cookie } = redirectOf(await visit(loginUrl(url, own)));
  expect(cookie).toStartWith('__Host-authrealm-sign-in-');
  const sent = { state: query.state, code: CODE };
  expect(await outcomeOf(await visit(callbackUrl(url, own, sent), cookie.slice('__Host-'.length)))).toEqual(
    refused(ELSEWHERE),
  );
  const outcome = await outcomeOf(await visit(callbackUrl(url, own, sent), cookie));
  expect(outcome).toMatchObject({
    ...{ to: REDIRECT_URI, state: STATE },
    setCookie: `${cookie.split('=')[0]}=; Path=/; Secure; HttpOnly; SameSite=Lax; Max-Age=0`,
  });
  const form = await visit(callbackUrl(url, own, {}), undefined, { method: 'POST', body: 'code=x' });
  expect(redirectOf(form).location).toBe(callbackUrl('https://id.example/sso', own, { code: 'x' }));
});
