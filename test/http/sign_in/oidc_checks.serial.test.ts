import { describe, expect, test } from 'bun:test';
import type { Uuid } from '../../../src/model/id.ts';
import { oidcProfileInfo, realm, user } from '../../../src/model/resources.ts';
import { systemClock } from '../../../src/ops/process/clock.ts';
import { createKeyPair, issue, startIssuer } from '../../support/issuers.ts';
import { createOidcProfile } from '../../support/oidc_sign_in.ts';
import {
  comparableResponse,
  errorsOf,
  insertRecord,
  realmMembers,
  startService,
  userMembers,
} from '../../support/service.ts';
import { createStorefront } from '../../support/settings_realms.ts';
import { from, manyOf, signInTokenOf } from '../../support/sign_in.ts';
import type { Json } from '../../support/token_forge.ts';

/** Checks of ID tokens: docs/wire.md#oidc-checks. */

const provider = await startIssuer();
const { issuer } = provider;
const pair = await createKeyPair('one');
provider.publish(pair.publicJwk);
const flags = { allowPrivate: 'localhost 127.0.0.0/8', logSignIns: 'true' };
const service = await startService({ ...flags, trustedProxies: '127.0.0.1', tokenLifetime: '86400' });
const { db, clock } = service;
const NONCE = 'n-0S6_WzA2Mj';

async function createRealm(duplicate_email_policy = 'api_only'): Promise<Uuid> {
  const id = systemClock.mintId();
  await insertRecord(db, realm, [id], { ...realmMembers, duplicate_email_policy });
  return id;
}
async function createUser(email: string, of: Uuid = REALM): Promise<Uuid> {
  const id = systemClock.mintId();
  await insertRecord(db, user, [of, id], { ...userMembers, email });
  return id;
}
const REALM = await createRealm();
const PROFILE = await createOidcProfile(db, REALM, issuer);
const signIn = await signInTokenOf(service);
const signUp = await signInTokenOf(service, { scope: 'sign-in sign-up' });
const linker = await signInTokenOf(service, { scope: 'sign-in oidc-profile-infos:write' });
const reader = await service.token('users:read oidc-profile-infos:read');

let count = 0;
const unique = (of: string) => `${of}-${process.pid}-${++count}`;
/** An address that no other check has. */
const elsewhere = () => from(`10.1.${++count >> 8}.${count & 255}`);

/** An ID token with these claims; by default of a new person, whose address is verified. */
function idToken(more: Json = {}): Promise<string> {
  const now = Math.floor(clock.now() / 1000);
  const sub = unique('sub');
  const claims = { ...{ iss: issuer, aud: 'shop', sub, iat: now, exp: now + 300, nonce: NONCE } };
  const address = { email: `${sub}@example.com`, email_verified: true };
  return issue(pair, { ...claims, ...address, ...more }, { typ: 'JWT' });
}

interface Request {
  readonly token?: string;
  readonly realm?: string;
  readonly profile?: string;
  readonly headers?: Record<string, string>;
}
const pathOf = (of: string, profile: string) =>
  `/v2/authentication-realms/${of}/oidc-profiles/${profile}/check`;
const bodyOf = (more: object) => ({ data: { type: 'oidc_check', nonce: NONCE, ...more } });

/** Sends a check once, with these members of `data`. */
const send = (data: object, { token = signUp, headers = elsewhere(), ...at }: Request = {}) =>
  service.withoutRetry.post(pathOf(at.realm ?? REALM, at.profile ?? PROFILE), token, bodyOf(data), headers);
const check = async (claims: Json, request?: Request, more: object = {}) =>
  send({ id_token: await idToken(claims), ...more }, request);

/** The outcome of a verified identity, with its user and link. */
async function verifiedOf(answer: Response) {
  const { data } = (await answer.json()) as { data: Json & { relationships: Record<string, Json> } };
  const idOf = (type: string) => (data.relationships?.[type] as { data: { id: Uuid } } | undefined)?.data.id;
  return [data.outcome, idOf(user.type), idOf(oidcProfileInfo.type)] as const;
}
const outcomeOf = async (answer: Response) => (await verifiedOf(answer)).slice(0, 2);
const UNVERIFIED = await comparableResponse(await check({ aud: 'another' }));

describe('a check of an ID token', () => {
  test('creates the user at the first sign-in, and finds it at the next without the right to create', async () => {
    const claims = { sub: unique('sub'), email: 'jane@example.org', name: 'Jane Doe' };
    const created = await check(claims);
    expect([created.status, created.headers.get('cache-control')]).toEqual([200, 'no-store']);
    const body = (await created.clone().json()) as object;
    const [outcome, userId, infoId] = await verifiedOf(created);
    expect([outcome, body]).toEqual([
      'created',
      {
        data: {
          ...{ type: 'oidc_check', verified: true, outcome: 'created' },
          relationships: {
            user_authentication_info: { data: { id: userId, type: user.type } },
            user_authentication_oidc_profile_info: { data: { id: infoId, type: oidcProfileInfo.type } },
          },
        },
      },
    ]);
    const users = `/v2/authentication-realms/${REALM}/user-authentication-info/${userId}`;
    expect(await (await service.get(users, reader)).json()).toMatchObject({
      data: { name: 'Jane Doe', email: 'jane@example.org' },
    });
    const links = `${users}/user-authentication-oidc-profile-info/${infoId}`;
    expect(await (await service.get(links, reader)).json()).toMatchObject({
      data: { issuer, subject: claims.sub, oidc_profile_id: PROFILE },
    });
    const renamed = { ...claims, name: 'Another', email: 'other@example.org' };
    expect(await verifiedOf(await check(renamed, { token: signIn }))).toEqual(['known', userId, infoId]);
    expect(await (await service.get(users, reader)).json()).toMatchObject({ data: { name: 'Jane Doe' } });
  });

  test('links a verified address to its user with the policy api_only, and creates another user with allowed', async () => {
    const email = `${unique('ann')}@example.com`;
    const ann = await createUser(email);
    expect(await outcomeOf(await check({ email }))).toEqual(['linked', ann]);
    const shared = await createRealm('allowed');
    const profile = await createOidcProfile(db, shared, issuer);
    const other = await createUser(email, shared);
    const [outcome, id] = await outcomeOf(await check({ email }, { realm: shared, profile }));
    expect([outcome, id === other]).toEqual(['created', false]);
  });

  test('finds the same links by a second profile of the issuer with another client ID', async () => {
    const app = await createOidcProfile(db, REALM, issuer, { client_id: 'com.example.app' });
    const sub = unique('sub');
    const [, ...link] = await verifiedOf(await check({ sub }));
    const ofApp = { sub, aud: 'com.example.app' };
    expect(await verifiedOf(await check(ofApp, { profile: app }))).toEqual(['known', ...link]);
    expect(await comparableResponse(await check(ofApp))).toBe(UNVERIFIED);
  });

  test('of one subject finds the user of the realm in the path', async () => {
    const other = await createRealm();
    const profile = await createOidcProfile(db, other, issuer);
    const sub = unique('sub');
    const [, here] = await verifiedOf(await check({ sub }));
    const [outcome, there] = await verifiedOf(await check({ sub }, { realm: other, profile }));
    expect([outcome, here === there]).toEqual(['created', false]);
  });

  const anybody = unique('anybody');
  test.each<[string, Json, string?]>([
    ['of another issuer', { iss: 'https://login.example.com' }],
    ['for two clients', { aud: ['shop', 'another'] }],
    ['of another authorized party', { azp: 'another' }],
    ['that is expired', { exp: 1 }],
    ['without a subject', { sub: undefined }],
    ['with a subject of 256 characters', { sub: 's'.repeat(256) }],
    ['of a new person without an address', { email: undefined }],
    ['of a new person with an address that is a number', { email: 7 }],
    [
      'with the address of a user that is not verified',
      { email: `${anybody}@example.com`, email_verified: false },
    ],
    [
      'with the address of a user that may be verified',
      { email: `${anybody}@example.com`, email_verified: 'false' },
    ],
    ['with an address like that of a user', { email: `${anybody}@ｅxample.com` }],
    ['of a new person by a client that may not create users', {}, signIn],
  ])('%s is answered by the bytes of every other refusal', async (_, claims, token = signUp) => {
    if (!(await service.get(usersWith(`${anybody}@example.com`), reader).then(hasItems)))
      await createUser(`${anybody}@example.com`);
    expect(await comparableResponse(await check(claims, { token }))).toBe(UNVERIFIED);
  });

  test.each(['x', 'a.b.c', 'e30.e30.', 'é'.repeat(100)])(
    'of %p, which is no token, is answered by the bytes of every other refusal',
    async (id_token) => {
      expect(await comparableResponse(await send({ id_token }))).toBe(UNVERIFIED);
    },
  );

  test('of a token whose signature is that of another key is not verified', async () => {
    const [head, payload] = (await idToken()).split('.');
    const [, , signature] = (await idToken()).split('.');
    const id_token = [head, payload, signature].join('.');
    expect(await comparableResponse(await send({ id_token }))).toBe(UNVERIFIED);
  });

  test.each<[string, string | undefined, string | undefined, boolean]>([
    ['equal', NONCE, NONCE, true],
    ['in neither', undefined, undefined, true],
    ['another', NONCE, 'another', false],
    ['in the token alone', undefined, NONCE, false],
    ['in the request alone', NONCE, undefined, false],
  ])(
    'whose nonce is %s is verified: %p in the request, %p in the token',
    async (_, sent, claimed, isVerified) => {
      const answer = await check({ nonce: claimed }, {}, { nonce: sent });
      expect(await answer.json()).toMatchObject({ data: { verified: isVerified } });
    },
  );

  test('of a token that was issued more than ten minutes ago is not verified, whatever its lifetime', async () => {
    const now = Math.floor(clock.now() / 1000);
    const verified: unknown[] = [];
    for (const age of [590, 610]) {
      const answer = await check({ iat: now - age, exp: now + 36_000 });
      verified.push(((await answer.json()) as { data: Json }).data.verified);
    }
    expect(verified).toEqual([true, false]);
  });

  test('of a profile that the caller cannot reach is 404', async () => {
    const other = await createRealm();
    const id_token = await idToken();
    for (const at of [{ profile: systemClock.mintId() }, { profile: 'none' }, { realm: other }])
      expect([at, (await send({ id_token }, at)).status]).toEqual([at, 404]);
    expect((await send({ id_token }, { realm: systemClock.mintId() })).status).toBe(404);
    const outside = await service.token('sign-in sign-up', new Set([other]));
    expect((await send({ id_token }, { token: outside })).status).toBe(404);
  });

  test.each<[object, string]>([
    [{ type: 'password_check' }, '/data/type'],
    [{ id_token: undefined }, '/data/id_token'],
    [{ id_token: '' }, '/data/id_token'],
    [{ id_token: 7 }, '/data/id_token'],
    [{ nonce: '' }, '/data/nonce'],
    [{ nonce: null }, '/data/nonce'],
    [{ user_authentication_info_id: 'jane' }, '/data/user_authentication_info_id'],
    [{ user_authentication_info_id: 7 }, '/data/user_authentication_info_id'],
  ])('%p is 400 with a source', async (more, pointer) => {
    const answer = await send({ id_token: 'a.b.c', ...more }, { token: linker });
    const errors = await errorsOf(answer);
    expect([answer.status, errors.map(({ source }) => source?.pointer)]).toEqual([400, [pointer]]);
  });

  test.each(['', '[]', '{}', '{"data":null}', '{"data":[]}', '{"data":'])(
    'with the body %p is 400',
    async (body) => {
      const path = pathOf(REALM, PROFILE);
      expect((await service.post(path, signUp, body, elsewhere())).status).toBe(400);
    },
  );

  test('needs the address of the end user, unless the client was created to report none', async () => {
    const id_token = await idToken();
    for (const headers of [{}, from('localhost')])
      expect((await send({ id_token }, { headers })).status).toBe(400);
    const unaddressed = await signInTokenOf(service, { scope: 'sign-in sign-up', endUserAddress: 'none' });
    expect((await send({ id_token }, { token: unaddressed, headers: {} })).status).toBe(200);
  });

  test('needs the scope sign-in and a secret: the ID of a client alone is 403', async () => {
    const id_token = await idToken();
    const writer = await service.token('sign-up users:write oidc-profile-infos:write');
    expect((await send({ id_token }, { token: writer })).status).toBe(403);
    const { clientId } = await createStorefront(service, REALM);
    const granted = await service.requestToken({ grant_type: 'implicit', client_id: clientId });
    const { access_token } = (await granted.json()) as { access_token: string };
    expect((await send({ id_token }, { token: access_token })).status).toBe(403);
  });

  test('is 503 where the keys of the provider cannot be read, and creates nothing', async () => {
    const dark = await startIssuer();
    const profile = await createOidcProfile(db, REALM, dark.issuer);
    const email = `${unique('dark')}@example.com`;
    const answer = await check({ iss: dark.issuer, email }, { profile });
    const [error] = await errorsOf(answer);
    expect([answer.status, error?.code, answer.headers.has('retry-after')]).toEqual([
      503,
      'provider_unavailable',
      true,
    ]);
    expect(await hasItems(await service.get(usersWith(email), reader))).toBe(false);
  });
});

const usersWith = (email: string) =>
  `/v2/authentication-realms/${REALM}/user-authentication-info?filter=eq(email,${email})`;
const hasItems = async (answer: Response) => ((await answer.json()) as { data: unknown[] }).data.length > 0;

describe('a check that names a user', () => {
  const linkTo = (sub: string, user_authentication_info_id: string, token = linker) =>
    check({ sub, email: undefined }, { token }, { user_authentication_info_id });

  test('links the identity to that user, and finds the link at the next', async () => {
    const [jane, sub] = [await createUser(`${unique('jane')}@example.com`), unique('sub')];
    const [outcome, id, info] = await verifiedOf(await linkTo(sub, jane));
    expect([outcome, id]).toEqual(['linked', jane]);
    expect(await verifiedOf(await linkTo(sub, jane))).toEqual(['known', jane, info]);
    expect(await verifiedOf(await check({ sub }, { token: signIn }))).toEqual(['known', jane, info]);
  });

  test('needs oidc-profile-infos:write: the right to create users is 403', async () => {
    const sub = unique('sub');
    const jane = await createUser(`${unique('jane')}@example.com`);
    expect((await linkTo(sub, jane, signUp)).status).toBe(403);
    expect(await comparableResponse(await check({ sub }, { token: signIn }))).toBe(UNVERIFIED);
  });

  test('is not verified for the identity of another user, an unknown user and one of another realm', async () => {
    const [jane, sub] = [await createUser(`${unique('jane')}@example.com`), unique('sub')];
    await linkTo(sub, jane);
    const joe = await createUser(`${unique('joe')}@example.com`);
    expect(await comparableResponse(await linkTo(sub, joe))).toBe(UNVERIFIED);
    const stranger = await createUser(`${unique('ann')}@example.com`, await createRealm());
    for (const id of [systemClock.mintId(), stranger])
      expect(await comparableResponse(await linkTo(unique('sub'), id))).toBe(UNVERIFIED);
  });
});

describe('refused ID tokens', () => {
  const statusesOf = async (sent: number, request: () => Request) => {
    const statuses: number[] = [];
    for (let at = 0; at < sent; at += 1) statuses.push((await send({ id_token: 'a.b.c' }, request())).status);
    return statuses;
  };

  test.each([
    ['an address', () => '192.0.2.60', '192.0.2.61'],
    ['a /64', (at: number) => `2001:db8:60:1::${at}`, '2001:db8:60:2::1'],
  ])(
    'from %s are 429 after a hundred, as is a valid one',
    async (_, addressOf, other) => {
      const profile = await createOidcProfile(db, REALM, issuer);
      let at = 0;
      const next = () => ({ profile, headers: from(addressOf(++at)) });
      expect(await statusesOf(100, next)).toEqual(manyOf(200, 100));
      // One more in nine seconds.
      await statusesOf(10, next);
      const refused = await check({}, next());
      expect([refused.status, Number(refused.headers.get('retry-after')) <= 9]).toEqual([429, true]);
      expect((await outcomeOf(await check({}, { profile, headers: from(other) })))[0]).toBe('created');
    },
    60_000,
  );

  test('of a client that reports no addresses are 429 after 60 in a minute', async () => {
    const profile = await createOidcProfile(db, REALM, issuer);
    const token = await signInTokenOf(service, { scope: 'sign-in', endUserAddress: 'none' });
    const request = () => ({ profile, token, headers: {} });
    const startedAt = clock.now();
    expect(await statusesOf(60, request)).toEqual(manyOf(200, 60));
    // One more for each second that this took.
    const more = Math.ceil((clock.now() - startedAt) / 1_000) + 2;
    expect(await statusesOf(more, request)).toContain(429);
  }, 60_000);

  test('do not count where the provider confirms the person, whatever the rules of the realm say', async () => {
    const profile = await createOidcProfile(db, REALM, issuer);
    const request = { profile, token: signIn, headers: from('192.0.2.70') };
    const statuses: number[] = [];
    for (let at = 0; at < 101; at += 1) statuses.push((await check({}, request)).status);
    expect(statuses).toEqual(manyOf(200, 101));
  }, 60_000);
});

test('metrics count checks by outcome, and neither log has a token, subject or address', async () => {
  const own = await startService({ ...flags });
  const id = systemClock.mintId();
  await insertRecord(own.db, realm, [id], { ...realmMembers, duplicate_email_policy: 'api_only' });
  const profile = await createOidcProfile(own.db, id, issuer);
  const dark = await createOidcProfile(own.db, id, (await startIssuer()).issuer);
  const access = await signInTokenOf(own, { scope: 'sign-in sign-up' });
  const post = (id_token: string, at: string, headers = from('192.0.2.80')) =>
    own.withoutRetry.post(pathOf(id, at), access, bodyOf({ id_token }), headers);
  const sub = unique('subject');
  const token = await idToken({ sub });
  const noAddress = await idToken({ sub: unique('subject'), email: undefined });
  for (const id_token of [token, token, noAddress]) await post(id_token, profile);
  await post(token, dark);
  for (let at = 0; at < 110; at += 1) await post('a.b.c', profile);
  const families = await own.server.metrics.own();
  const counter = families.find(({ name }) => name === 'authrealm_sign_ins_total');
  const samples = counter && 'samples' in counter ? counter.samples : [];
  const counts = samples
    .filter(({ labels }) => labels.mechanism === 'oidc_check')
    .map(({ labels, value }): [unknown, number] => [labels.outcome, value]);
  const { refused = 0, throttled = 0, ...others } = Object.fromEntries(counts) as Record<string, number>;
  expect(others).toEqual({ known: 1, linked: 0, created: 1, unavailable: 1, overloaded: 0 });
  expect([refused >= 101, throttled > 0, refused + throttled]).toEqual([true, true, 111]);
  await own.stop();
  const causes = new Set(own.log.map((record) => ('cause' in record ? record.cause : undefined)));
  expect([causes.has('no_email'), causes.has('id_token_refused')]).toEqual([true, true]);
  const entries = await own.database.query<{ action: string; detail: string; address: string | null }>(
    `select action, detail, address from act where action like 'sign-in.succeeded'`,
  );
  expect(entries).toHaveLength(2);
  for (const { detail, address } of entries)
    expect([detail, address]).toEqual([expect.stringContaining('oidc'), null]);
  const text = JSON.stringify([own.log, entries]);
  for (const secret of [sub, `${sub}@example.com`, token, 'a.b.c', NONCE]) expect(text).not.toContain(secret);
}, 60_000);
