import { describe, expect, test } from 'bun:test';
import { LOGIN_OPERATIONS } from '../../src/compat/oidc_browser.ts';
import type { OidcDeps } from '../../src/http/operations/oidc_request.ts';
import { openCall } from '../../src/http/pipeline/call.ts';
import { LIMITS } from '../../src/model/limits.ts';
import { systemClock } from '../../src/ops/process/clock.ts';
import { openSettingsRealms } from '../../src/records/settings_realms.ts';
import { openOidcFlow } from '../../src/sign_in/oidc_flow.ts';
import { DISCOVERY } from '../support/issuers.ts';
import {
  CODE_CHALLENGE,
  createOidcProfile,
  discoveryUrl,
  LOGIN,
  loginUrl,
  outcomeOf,
  PROFILE_PARAMETER,
  REDIRECT_URI,
  REDIRECT_URI_WITH_QUERY,
  redirectOf,
  STATE,
  startOidcSignIn,
  visit,
} from '../support/oidc_sign_in.ts';

/** The login URL, to which storefronts send browsers. */

const world = await startOidcSignIn({ requestLogging: 'full' });
const { service, provider, realm, profile, store, realms, login } = world;
const other = systemClock.mintId();
const buyersProfile = await createOidcProfile(service.db, realms.buyers, provider.issuer);
const UNKNOWN = 'the URL must name an OIDC profile of the realm of account members, which has redirect URIs';

describe('a login', () => {
  test('a browser is sent to the provider with a state, a nonce, a code challenge and a cookie', async () => {
    const answer = await login();
    expect(answer.status).toBe(303);
    const { location, query, setCookie } = redirectOf(answer);
    expect(location.split('?')[0]).toBe(`${provider.issuer}/authorize`);
    expect(query).toEqual({
      response_type: 'code',
      client_id: 'shop',
      redirect_uri: `${service.url}/oidc-idp/callback/stores/${store}/authentication-realms/${realm}/oidc-profiles/${profile}`,
      scope: 'openid email profile',
      state: expect.stringMatching(/^[\w-]{150,}$/),
      nonce: expect.stringMatching(/^[\w-]{22,}$/),
      code_challenge: expect.stringMatching(/^[\w-]{43}$/),
      code_challenge_method: 'S256',
    });
    expect(query.code_challenge).not.toBe(CODE_CHALLENGE);
    expect(setCookie).toMatch(
      /^authrealm-sign-in-[0-9a-f]=[\w-]{22}; Path=\/; HttpOnly; SameSite=Lax; Max-Age=600$/,
    );
    expect(await outcomeOf(answer)).toMatchObject({ status: 303 });
    const opened = openOidcFlow(service.db.keyring, service.clock).openState(
      query.state ?? '',
      realm,
      profile,
    );
    expect(opened).toMatchObject({ state: STATE, codeChallenge: CODE_CHALLENGE, reportsReplay: false });
  });

  test('the links of a profile lead to the login, the callback and the discovery document', async () => {
    const token = await service.token('profiles:read');
    const path = `/v2/authentication-realms/${realm}/oidc-profiles/${profile}`;
    const { links } = (await (await service.get(path, token)).json()) as { links: Record<string, string> };
    const rest = new URLSearchParams(LOGIN);
    expect((await visit(`${links['authorization-endpoint']}&${rest}`)).status).toBe(303);
    expect(redirectOf(await login()).query.redirect_uri).toBe(links['callback-endpoint']);
    expect((await visit(links['client-discovery-url'] ?? '')).status).toBe(200);
  });

  test('HEAD is answered as GET, other methods are 405', async () => {
    const url = loginUrl(service.url, world);
    const head = await visit(url, undefined, { method: 'HEAD' });
    expect([head.status, redirectOf(head).setCookie !== '']).toEqual([303, true]);
    for (const method of ['POST', 'PUT', 'DELETE', 'PATCH'])
      expect([method, (await visit(url, undefined, { method })).status]).toEqual([method, 405]);
  });

  test('prompt, display, ui_locales and login_hint are passed on, unknown parameters and further scopes are not', async () => {
    const hints = { prompt: 'login', display: 'popup', ui_locales: 'de fr', login_hint: 'x'.repeat(255) };
    const sent = { ...hints, claims: '{}', nonce: 'mine', acr_values: '1', scope: 'name phone openid' };
    const { query } = redirectOf(await login(sent));
    expect(query).toMatchObject({ ...hints, scope: 'openid email profile' });
    expect(Object.keys(query)).not.toContain('claims');
    expect(query.nonce).not.toBe('mine');
  });

  test('an authorization endpoint with a query, and one with other letters, is kept', async () => {
    for (const [path, sent] of [
      ['/authorize?tenant=one', '/authorize?tenant=one&response_type=code'],
      ['/anmelden/für', '/anmelden/f%C3%BCr?response_type=code'],
    ]) {
      const own = await startOidcSignIn();
      own.describe({ authorization_endpoint: own.provider.issuer + path });
      expect(redirectOf(await own.login()).location).toStartWith(own.provider.issuer + sent);
    }
  });

  test('IDs may be in any letter case, and an empty optional parameter counts as absent', async () => {
    const upper = { store: store.toUpperCase(), realm: realm.toUpperCase(), profile: profile.toUpperCase() };
    const answer = await login({ response_mode: '', prompt: '' }, upper);
    expect(redirectOf(answer).query.redirect_uri).toContain(profile);
  });

  test('the replay flag is sealed into the state', async () => {
    const flow = openOidcFlow(service.db.keyring, service.clock);
    for (const [flag, expected] of [
      ['true', true],
      ['false', false],
      ['1', false],
    ] as const) {
      const { query } = redirectOf(await login({ ep_report_callback_replay_error: flag }));
      expect([flag, flow.openState(query.state ?? '', realm, profile)?.reportsReplay]).toEqual([
        flag,
        expected,
      ]);
    }
  });
});

describe('a login that cannot be sent back', () => {
  test.each([
    ['another store', {}, { store: other }, UNKNOWN],
    ['a malformed store', {}, { store: 'none' }, UNKNOWN],
    ['an unknown realm', {}, { realm: other }, UNKNOWN],
    ['a malformed realm', {}, { realm: '\0' }, UNKNOWN],
    ['another realm, with its profile', {}, { realm: realms.buyers, profile: buyersProfile }, UNKNOWN],
    ['a profile of another realm', {}, { profile: buyersProfile }, UNKNOWN],
    ['an unknown profile', {}, { profile: other }, UNKNOWN],
    ['a malformed profile', { [PROFILE_PARAMETER]: 'none' }, {}, UNKNOWN],
    ['no profile', { [PROFILE_PARAMETER]: undefined }, {}, UNKNOWN],
    ['a profile given twice', { [PROFILE_PARAMETER]: [profile, profile] }, {}, UNKNOWN],
    ['no client', { client_id: undefined }, {}, 'client_id must be account-management'],
    ['the client of customers', { client_id: 'customers' }, {}, 'client_id must be account-management'],
    [
      'a client given twice',
      { client_id: ['account-management', 'account-management'] },
      {},
      'client_id must be account-management',
    ],
    ...[
      ['no redirect URI', undefined],
      ['a redirect URI given twice', [REDIRECT_URI, REDIRECT_URI]],
      ['another redirect URI', 'https://evil.example/callback'],
      ['a redirect URI with one more character', `${REDIRECT_URI}/`],
      ['a redirect URI in other letter case', REDIRECT_URI.toUpperCase()],
      ['a redirect URI with a fragment', `${REDIRECT_URI}#x`],
      ['a redirect URI with userinfo', REDIRECT_URI.replace('//', '//shop@')],
    ].map(
      ([what, redirect_uri]) =>
        [what, { redirect_uri }, {}, 'redirect_uri must be a redirect URI of the realm'] as const,
    ),
  ] as const)('%s is 400', async (_, changes, at, text) => {
    const answer = await login(changes, at);
    expect(await outcomeOf(answer)).toEqual({ status: 400, error: 'invalid_request', text, isShape: true });
    expect(answer.headers.getSetCookie()).toEqual([]);
  });

  test('a realm without redirect URIs is answered as one that is unknown', async () => {
    const own = await startOidcSignIn();
    await own.setRedirectUris();
    const [empty, unknown] = [await own.login(), await own.login({}, { realm: other })];
    expect([empty.status, await empty.text()]).toEqual([unknown.status, await unknown.text()]);
    expect(own.provider.requestCounts.size).toBe(0);
  });

  test('a base URL of http that is not on this machine is answered as a realm without redirect URIs', async () => {
    const own = await startOidcSignIn({ baseUrl: 'http://id.example' });
    expect(await outcomeOf(await own.login())).toMatchObject({ status: 400, text: UNKNOWN });
    expect((await visit(discoveryUrl(own.service.url, own))).status).toBe(404);
  });
});

describe('a login that is sent back', () => {
  const MISSING = 'must be a string';
  const CHALLENGE = 'code_challenge must be 32 bytes as 43 characters of base64url';
  test.each([
    [
      'a known parameter given twice',
      { scope: ['openid', 'openid'] },
      'invalid_request',
      'a parameter is given more than once',
    ],
    [
      'an unknown parameter given twice',
      { x: ['1', '2'] },
      'invalid_request',
      'a parameter is given more than once',
    ],
    [
      'no response_type',
      { response_type: undefined },
      'unsupported_response_type',
      'response_type must be code',
    ],
    [
      'the implicit flow',
      { response_type: 'id_token' },
      'unsupported_response_type',
      'response_type must be code',
    ],
    ['a fragment', { response_mode: 'fragment' }, 'invalid_request', 'response_mode must be query'],
    ['a form', { response_mode: 'form_post' }, 'invalid_request', 'response_mode must be query'],
    ['no scope', { scope: undefined }, 'invalid_scope', `scope ${MISSING}`],
    [
      'a scope without openid',
      { scope: 'email openid2 xopenid' },
      'invalid_scope',
      'scope must contain openid',
    ],
    [
      'no method',
      { code_challenge_method: undefined },
      'invalid_request',
      'code_challenge_method must be S256',
    ],
    ['plain', { code_challenge_method: 'plain' }, 'invalid_request', 'code_challenge_method must be S256'],
    ['no code challenge', { code_challenge: undefined }, 'invalid_request', `code_challenge ${MISSING}`],
    ['a code challenge of 42', { code_challenge: CODE_CHALLENGE.slice(1) }, 'invalid_request', CHALLENGE],
    ['a code challenge of 44', { code_challenge: `${CODE_CHALLENGE}A` }, 'invalid_request', CHALLENGE],
    [
      'a code challenge of base64',
      { code_challenge: `+${CODE_CHALLENGE.slice(1)}` },
      'invalid_request',
      CHALLENGE,
    ],
    [
      'a code challenge that is no digest',
      { code_challenge: `${CODE_CHALLENGE.slice(1)}x` },
      'invalid_request',
      CHALLENGE,
    ],
    ...['prompt', 'display', 'ui_locales', 'login_hint'].map(
      (name) =>
        [
          `a long ${name}`,
          { [name]: 'x'.repeat(256) },
          'invalid_request',
          `${name} must have at most 255 characters`,
        ] as const,
    ),
  ] as const)('%s is reported to the redirect URI, with the state', async (_, changes, error, text) => {
    const answer = await login(changes);
    expect(await outcomeOf(answer)).toEqual({ status: 303, to: REDIRECT_URI, error, text, state: STATE });
  });

  const STATE_RULE = 'state must have 1 to 2048 printable ASCII characters';
  test.each([
    ['no state', undefined, 'state must be a string'],
    ['an empty state', '', 'state must be a string'],
    ['a state of 2,049 characters', 'x'.repeat(2_049), STATE_RULE],
    ['a state with a line break', 'a\nb', STATE_RULE],
    ['a state of other letters', 'ä', STATE_RULE],
    ['a state given twice', ['a', 'a'], 'a parameter is given more than once'],
  ] as const)('%s is reported to the redirect URI, without a state', async (_, state, text) => {
    const answer = await login({ state });
    expect(await outcomeOf(answer)).toEqual({
      status: 303,
      to: REDIRECT_URI,
      error: 'invalid_request',
      text,
    });
  });

  test('a state of 2,048 characters, and of every printable ASCII character, is accepted', async () => {
    const all = String.fromCharCode(...Array.from({ length: 95 }, (_, at) => 0x20 + at));
    for (const state of ['x'.repeat(2_048), all])
      expect(redirectOf(await login({ state })).location).toStartWith(provider.issuer);
  });

  test('the checks are made in their order', async () => {
    const wrong = {
      state: 'ä',
      response_type: 'x',
      response_mode: 'x',
      scope: 'x',
      code_challenge: 'x',
      prompt: 'x'.repeat(256),
    };
    const valid: Record<string, string | undefined> = {
      ...LOGIN,
      response_mode: undefined,
      prompt: undefined,
    };
    const errors: unknown[] = [];
    let left: Record<string, string | undefined> = wrong;
    for (const name of Object.keys(wrong)) {
      errors.push((await outcomeOf(await login(left))).text);
      left = { ...left, [name]: valid[name] };
    }
    expect(errors.map((text) => String(text).split(' ')[0])).toEqual(Object.keys(wrong));
  });

  test('a redirect URI with a query gets the error behind it', async () => {
    const answer = await login({ redirect_uri: REDIRECT_URI_WITH_QUERY, scope: 'email' });
    expect(redirectOf(answer).location).toStartWith(`${REDIRECT_URI_WITH_QUERY}&error=invalid_scope&`);
  });

  const unavailable = { status: 303, to: REDIRECT_URI, error: 'temporarily_unavailable', state: STATE };

  test.each([
    ['has another issuer', { issuer: 'https://other.example' }],
    ['has no PKCE with S256', { code_challenge_methods_supported: ['plain'] }],
    ['has no authorization endpoint', { authorization_endpoint: undefined }],
  ])('a provider whose document %s is temporarily unavailable', async (_, changes) => {
    const own = await startOidcSignIn();
    own.describe(changes);
    expect(await outcomeOf(await own.login())).toMatchObject(unavailable);
  });

  test('a service that is offline reports every provider as temporarily unavailable', async () => {
    const own = await startOidcSignIn({ offline: 'true' });
    expect(await outcomeOf(await own.login())).toMatchObject(unavailable);
    expect(own.provider.requestCounts.size).toBe(0);
  });

  test('logins read the document of a provider at most once in the pause, whether it can be used or not', async () => {
    const own = await startOidcSignIn();
    const visits = () => Promise.all(Array.from({ length: 50 }, () => own.login()));
    own.provider.routes.clear();
    await visits();
    await visits();
    expect(own.provider.requestCounts.get(DISCOVERY)).toBe(1);
    own.describe();
    own.service.clock.advance(LIMITS.issuerKeysPauseMs);
    const statuses = (await visits()).map((answer) =>
      redirectOf(answer).location.startsWith(own.provider.issuer),
    );
    expect(new Set(statuses)).toEqual(new Set([true]));
    expect(own.provider.requestCounts.get(DISCOVERY)).toBe(2);
  });
});

test('with a base URL of https and a path prefix the cookie is bound to the host, and the callback has the prefix', async () => {
  const own = await startOidcSignIn({ baseUrl: 'https://id.example/sso' });
  const { query, setCookie } = redirectOf(await visit(loginUrl(`${own.service.url}/sso`, own)));
  expect(query.redirect_uri).toStartWith('https://id.example/sso/oidc-idp/callback/stores/');
  expect(setCookie).toMatch(
    /^__Host-authrealm-sign-in-[0-9a-f]=[\w-]{22}; Path=\/; Secure; HttpOnly; SameSite=Lax; Max-Age=600$/,
  );
});

test('Apple is asked for a form, no other provider for a response mode', async () => {
  const issuer = 'https://appleid.apple.com';
  const id = await createOidcProfile(service.db, realm, issuer);
  const { db, clock } = service;
  const metadata = async () => ({
    authorizationEndpoint: `${issuer}/auth/authorize`,
    ...{ scope: 'openid email name', sendsIssuer: false },
  });
  // No test reaches this provider: its document is given.
  const deps = {
    ...{ baseUrl: 'https://id.example', installation: store, store: db.engine.records },
    settingsRealms: openSettingsRealms(db.engine.records, clock, {
      installation: store,
      accountRealm: undefined,
    }),
    oidc: { flow: openOidcFlow(db.keyring, clock), providers: { metadata } },
  } as unknown as OidcDeps;
  const request = new Request(loginUrl(service.url, { store, realm, profile: id }));
  const reply = await LOGIN_OPERATIONS[0]?.handle(deps)(
    openCall(request, { store, realm }, 'id', () => undefined),
  );
  const sent = new URL(reply?.headers.Location ?? '').searchParams;
  expect([sent.get('response_mode'), sent.get('scope')]).toEqual(['form_post', 'openid email name']);
  expect(redirectOf(await login()).query).not.toHaveProperty('response_mode');
});

test('no log has a part of the query of a login', async () => {
  const { query, cookie } = redirectOf(await login());
  const log = JSON.stringify(service.log);
  expect(log).toContain('/oidc-idp/login/stores/:store/authentication-realms/:realm');
  for (const text of [
    query.state,
    query.nonce,
    cookie.split('=')[1],
    CODE_CHALLENGE,
    STATE,
    'shop.example.com',
  ])
    expect([text, log.includes(text ?? '')]).toEqual([text, false]);
});
