import { expect, setDefaultTimeout, test } from 'bun:test';
import { realm as realmResource, user as userResource } from '../../src/model/resources.ts';
import { TABLES } from '../../src/sql/tables/tables.ts';
import { callbackUrl, LOGIN, loginUrl, redirectOf, visit } from '../support/oidc_sign_in.ts';
import { newPerson, signedInOf, startTokenCalls, type TokenCalls } from '../support/oidc_token_calls.ts';
import { ACCOUNT_TOKEN_HEADER, manyOf, RENEWAL, requestTokens, signInTokenOf } from '../support/sign_in.ts';
import type { Json } from '../support/token_forge.ts';

setDefaultTimeout(60_000);

/** What is seen of sign-ins with codes of a provider: rows, audit entries, log events and metrics. */

/** They change without a request: the use of clients, and the work of processes. */
const UNRELATED = ['client_use', 'lease'];

async function contentsOf({ service }: TokenCalls): Promise<Record<string, readonly string[]>> {
  const contents: Record<string, readonly string[]> = {};
  for (const { name } of TABLES.filter((table) => !UNRELATED.includes(table.name))) {
    const rows = await service.database.query<object>(`select * from ${name}`);
    contents[name] = rows
      .map((row) => JSON.stringify(row, (_, value) => (typeof value === 'bigint' ? `${value}` : value)))
      .sort();
  }
  return contents;
}

function failuresIn({ service }: TokenCalls) {
  return service.log.filter((record) => record.event === 'oidc_sign_in_failed');
}

test('a sign-in of a known identity and a renewal by it change no row of any table', async () => {
  const calls = await startTokenCalls();
  const jane = newPerson({ name: 'Jane Doe' });
  const { user, token } = await signedInOf(await calls.signIn(jane));
  const before = await contentsOf(calls);
  const again = { ...jane, name: 'Another Name', email: 'another@example.com' };
  for (let count = 0; count < 3; count += 1)
    expect((await signedInOf(await calls.signIn(again))).user).toBe(user);
  const headers = { [ACCOUNT_TOKEN_HEADER]: token };
  expect((await requestTokens(calls.service, calls.token, RENEWAL, headers)).status).toBe(201);
  expect(await contentsOf(calls)).toEqual(before);
});

test('login and callback, and codes that do not open, change no row of any table', async () => {
  const calls = await startTokenCalls();
  const before = await contentsOf(calls);
  await calls.authorize();
  expect((await calls.send('none')).status).toBe(400);
  expect(await contentsOf(calls)).toEqual(before);
});

test('sign-ins are audited with their mechanism where the settings ask for it, refused ones are not', async () => {
  const calls = await startTokenCalls({ logSignIns: 'true' });
  const { service, realm, client } = calls;
  const jane = newPerson();
  const { user } = await signedInOf(await calls.signIn(jane));
  expect((await calls.signIn({ ...jane, nonce: 'another' })).status).toBe(400);
  const entries = await service.database.query<Json>(
    `select actor, realm_id, user_id, address, detail from act where action = 'sign-in.succeeded'`,
  );
  expect(entries).toEqual([
    { actor: client.clientId, realm_id: realm, user_id: user, address: null, detail: expect.any(String) },
  ]);
  expect(JSON.parse(String(entries[0]?.detail))).toEqual({ mechanism: 'oidc' });
});

test('failed sign-ins are logged with their cause, and metrics count every outcome', async () => {
  const calls = await startTokenCalls();
  const { service, provider, realm, profile, signIn, send, sealCode } = calls;
  const { routes } = provider;
  const setPolicy = async (duplicate_email_policy: string) => {
    const data = { type: realmResource.type, duplicate_email_policy };
    const writer = await service.token('realms:write');
    const path = `/v2/authentication-realms/${realm}`;
    expect((await service.put(path, writer, { data })).status).toBe(200);
  };
  const disableAndSignIn = async (person: Json, id: string) => {
    const data = { type: userResource.type, enabled: false };
    const path = `/v2/authentication-realms/${realm}/user-authentication-info/${id}`;
    expect((await service.put(path, await service.token('users:write'), { data })).status).toBe(200);
    return signIn(person);
  };
  const jane = newPerson();
  const statuses = [(await signIn(jane)).status, (await signIn(jane)).status];
  await setPolicy('api_only');
  statuses.push((await signIn({ ...newPerson(), email: jane.email })).status);
  expect(statuses).toEqual(manyOf(201, 3));
  // Two users with one address.
  await setPolicy('allowed');
  const john = newPerson();
  const ofJohn = await signedInOf(await signIn(john));
  await signedInOf(await signIn({ ...newPerson(), email: john.email }));
  await setPolicy('api_only');
  const signInAlone = await signInTokenOf(service, { scope: 'sign-in' });
  const refused: [string, () => Promise<Response>][] = [
    ['code_refused', () => send(sealCode('unknown'))],
    ['id_token_refused', () => signIn(newPerson({ nonce: 'another' }))],
    ['no_email', () => signIn(newPerson({ email: undefined }))],
    ['email_not_verified', () => signIn(newPerson({ email: jane.email, email_verified: false }))],
    ['email_ambiguous', () => signIn(newPerson({ email: john.email }))],
    ['may_not_create', () => signIn(newPerson(), { token: signInAlone })],
    ['disabled', () => disableAndSignIn(john, ofJohn.user)],
  ];
  for (const [, sent] of refused) expect((await sent()).status).toBe(400);
  routes.set('/token', calls.answerWith(500, {}));
  for (let count = 0; count < 2; count += 1) expect((await signIn()).status).toBe(503);
  routes.set('/token', calls.redeem);
  expect((await signIn(jane)).status).toBe(201);
  // Counted alone: it names no profile.
  expect((await send('none')).status).toBe(400);
  const causes = [...refused.map(([cause]) => cause), 'token_endpoint_failed', 'token_endpoint_failed'];
  expect(failuresIn(calls)).toEqual(
    causes.map((cause) => ({ event: 'oidc_sign_in_failed', realm, profile, cause, count: 1 })),
  );
  let throttled = 0;
  for (let count = 0; count < 110; count += 1)
    if ((await send(sealCode('unknown'))).status === 429) throttled += 1;
  expect(throttled).toBeGreaterThan(5);
  const families = await service.server.metrics.own();
  const counter = families.find(({ name }) => name === 'authrealm_sign_ins_total');
  const samples = (counter && 'samples' in counter ? counter.samples : []).filter(
    ({ labels }) => labels.mechanism === 'oidc',
  );
  expect(Object.fromEntries(samples.map(({ labels, value }) => [labels.outcome, value]))).toEqual({
    ...{ created: 3, known: 2, linked: 1, refused: 8 + 110 - throttled, unavailable: 2 },
    ...{ throttled, overloaded: 0 },
  });
  expect(new Set(samples.flatMap(({ labels }) => Object.keys(labels)))).toEqual(
    new Set(['mechanism', 'outcome']),
  );
});

test('no log, audit entry or file has a code, state, ID token, client secret or cookie of a sign-in, and no log its person', async () => {
  const calls = await startTokenCalls({ requestLogging: 'full', logSignIns: 'true' });
  const { service } = calls;
  let idToken = '';
  const jane = newPerson({ name: 'Jane Doering' });
  const begun = redirectOf(await visit(loginUrl(service.url, calls)));
  const providerCode = calls.grant(begun.query, jane);
  const { state = '' } = begun.query;
  const back = redirectOf(
    await visit(callbackUrl(service.url, calls, { state, code: providerCode }), begun.cookie),
  );
  const { code = '' } = back.query;
  calls.onIdToken((each) => {
    idToken = each;
  });
  expect((await calls.send(code)).status).toBe(201);
  expect((await calls.send(code)).status).toBe(400);
  expect((await calls.signIn({ ...jane, email: undefined, sub: 'auth0|another-subject' })).status).toBe(400);
  expect(idToken).toStartWith('eyJ');
  const secrets = [code, state, providerCode, idToken, begun.cookie.split('=')[1] ?? ''];
  secrets.push(LOGIN.state, LOGIN.code_challenge, begun.query.nonce ?? '', 'a secret: of the shop');
  const person = [String(jane.sub), 'auth0|another-subject', String(jane.email), 'Jane Doering'];
  const audit = JSON.stringify(
    await service.database.query<object>('select action, detail, address from act'),
  );
  const log = JSON.stringify(service.log);
  expect(log).toContain('oidc_sign_in_failed');
  expect(audit).toContain('sign-in.succeeded');
  for (const text of [...secrets, ...person])
    expect([text, `${log} ${audit}`.includes(text)]).toEqual([text, false]);
  await service.stop();
  expect(await service.database.findPlaintext(secrets)).toEqual([]);
});
