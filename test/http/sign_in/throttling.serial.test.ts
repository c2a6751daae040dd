import { describe, expect, test } from 'bun:test';
import { Fault } from '../../../src/model/fault.ts';
import { passwordProfileInfo } from '../../../src/model/resources.ts';
import { type Service, startService } from '../../support/service.ts';
import { createSettingsRealms, createStorefront } from '../../support/settings_realms.ts';
import {
  ACCOUNT_TOKEN_HEADER,
  ACCOUNT_TOKENS,
  type AccountTokensAnswer,
  createPassword,
  DEVICE_HEADER,
  from,
  manyOf,
  openGuesses,
  type PasswordFixture,
  passwordBody,
  RENEWAL,
  requestTokens,
  signInTokenOf,
  startGuessedService,
} from '../../support/sign_in.ts';

/** What wrong passwords do to later requests: docs/guides/password-guessing.md. */

const { service, accounts, token, signIn, statusOf, guess } = await startGuessedService();
const { db, clock } = service;

const DAY_MS = 86_400_000;

describe('wrong passwords', () => {
  test('of one name from one address are checked ten times; then even the right one is 429', async () => {
    const jane = await createPassword(db, accounts);
    expect(await guess(jane, 11, () => '192.0.2.10')).toEqual([...manyOf(400, 10), 429]);
    const refused = await signIn(jane, jane.password, from('192.0.2.10'));
    expect([refused.status, Number(refused.headers.get('retry-after')) <= 90]).toEqual([429, true]);
    expect(await statusOf(jane, jane.password, from('192.0.2.11'))).toBe(201);
  });

  test('throttle an attempt whose device token is not valid for the user', async () => {
    const [jane, john] = [await createPassword(db, accounts), await createPassword(db, accounts)];
    const deviceOf = async (of: PasswordFixture) =>
      (await signIn(of, of.password, from('203.0.113.30'))).headers.get(DEVICE_HEADER) ?? '';
    const [own, foreign] = [await deviceOf(jane), await deviceOf(john)];
    await guess(jane, 11, () => '192.0.2.30');
    const withDevice = (device: string) =>
      statusOf(jane, jane.password, from('192.0.2.30', { [DEVICE_HEADER]: device }));
    for (const device of [
      foreign,
      'none',
      own.slice(1),
      `${own}x`,
      own.replace(/.$/, (last) => (last === 'A' ? 'B' : 'A')),
    ])
      expect(await withDevice(device)).toBe(429);
    expect(await withDevice(own)).toBe(201);
    // A device token of an older password.
    const path = `/v2/authentication-realms/${accounts}/user-authentication-info/${jane.user}/user-authentication-password-profile-info/${jane.info}`;
    const data = { type: passwordProfileInfo.type, id: jane.info, password: 'a new horse battery' };
    const writer = await service.token('password-profile-infos:write');
    expect((await service.put(path, writer, { data })).status).toBe(200);
    const renewed = () => signIn(jane, data.password, from('192.0.2.30', { [DEVICE_HEADER]: own }));
    expect((await renewed()).status).toBe(429);
  });
});

/** Signs in by the ID alone of a storefront, from a connection, and reports an address. */
async function openStorefront(storefronts: readonly string[] = []) {
  const ratePerAddress = { requests: 1_000, seconds: 60 };
  const { clientId } = await createStorefront(service, accounts, ratePerAddress, storefronts);
  const granted = await service.requestToken({ grant_type: 'implicit', client_id: clientId });
  const { access_token } = (await granted.json()) as { access_token: string };
  return async (of: PasswordFixture, password: string, connection: string, reported: string) => {
    const headers = { 'Authrealm-End-User-Address': reported, 'X-Forwarded-For': connection };
    const body = passwordBody(of, { password });
    return (await service.post(ACCOUNT_TOKENS, access_token, body, headers)).status;
  };
}

test('the address of an end user by the ID of a client alone is that of the connection, whatever its header reports', async () => {
  const jane = await createPassword(db, accounts);
  const signInFrom = await openStorefront();
  for (let count = 0; count < 10; count += 1)
    expect(await signInFrom(jane, 'wrong horse', '203.0.113.50', `198.51.110.${count}`)).toBe(400);
  expect(await signInFrom(jane, 'wrong horse', '203.0.113.50', '198.51.110.99')).toBe(429);
  expect(await signInFrom(jane, jane.password, '203.0.113.51', '198.51.110.99')).toBe(201);
});

test('wrong passwords by the ID alone from the servers of a storefront are limited by name alone', async () => {
  const [jane, john] = [await createPassword(db, accounts), await createPassword(db, accounts)];
  const signInFrom = await openStorefront(['203.0.113.64/28']);
  const statuses: number[] = [];
  for (let count = 0; count < 101; count += 1)
    statuses.push(await signInFrom(jane, 'wrong horse', '203.0.113.70', '198.51.110.1'));
  expect(statuses).toEqual([...manyOf(400, 100), 429]);
  // No shopper of another name is refused, and from elsewhere the network counts.
  expect(await signInFrom(john, john.password, '203.0.113.70', '198.51.110.1')).toBe(201);
  for (let count = 0; count < 10; count += 1)
    expect(await signInFrom(john, 'wrong horse', '203.0.113.80', '198.51.110.1')).toBe(400);
  expect(await signInFrom(john, john.password, '203.0.113.80', '198.51.110.1')).toBe(429);
});

test('a client that reports no addresses is limited by name alone, whatever its header reports', async () => {
  const jane = await createPassword(db, accounts);
  const unaddressed = await signInTokenOf(service, { endUserAddress: 'none' });
  for (let count = 0; count < 12; count += 1) {
    const address = count % 2 === 0 ? '192.0.2.60' : 'nowhere';
    const body = passwordBody(jane, { password: 'wrong horse' });
    expect((await requestTokens(service, unaddressed, body, from(address))).status).toBe(400);
  }
  expect(await guess(jane, 1, () => '192.0.2.60')).toEqual([400]);
  const right = await requestTokens(service, unaddressed, passwordBody(jane), from('nowhere'));
  expect(right.status).toBe(201);
});

test('throttled requests are logged without a username, the first and the number of the others, and metrics count outcomes', async () => {
  let isDown = false;
  const own: Service = await startService({}, (engine) => {
    const fullAt: typeof engine.budgets.fullAt = (...keys) =>
      isDown ? Promise.reject(new Fault('unavailable')) : engine.budgets.fullAt(...keys);
    return { ...engine, budgets: { ...engine.budgets, fullAt } };
  });
  const { accounts: realmId } = await createSettingsRealms(own.db);
  const statuses: Record<number, number> = {};
  try {
    const jane = await createPassword(own.db, realmId);
    const access = await signInTokenOf(own);
    const wrong = passwordBody(jane, { password: 'wrong horse' });
    const answers: Response[] = [];
    for (let count = 0; count < 13; count += 1)
      answers.push(await requestTokens(own.withoutRetry, access, wrong, from('192.0.2.77')));
    const hash = await Bun.password.hash('of john', 'argon2id');
    const john = passwordBody(await createPassword(own.db, realmId, { hash }));
    const sendAtOnce = (address: string) => requestTokens(own.withoutRetry, access, john, from(address));
    answers.push(
      ...(await Promise.all(Array.from({ length: 8 }, (_, index) => sendAtOnce(`198.51.130.${index}`)))),
    );
    for (const { status } of answers) statuses[status] = (statuses[status] ?? 0) + 1;
    expect(statuses).toEqual({ 400: expect.any(Number), 429: expect.any(Number), 503: expect.any(Number) });
    isDown = true;
    expect((await sendAtOnce('198.51.130.9')).status).toBe(503);
    const families = await own.server.metrics.own();
    const counter = families.find(({ name }) => name === 'authrealm_password_checks_total');
    const samples = counter && 'samples' in counter ? counter.samples : [];
    const outcomes = samples.filter(({ labels }) => labels.mechanism === 'password');
    expect(Object.fromEntries(outcomes.map(({ labels, value }) => [labels.outcome, value]))).toEqual({
      right: 0,
      wrong: statuses[400],
      throttled: statuses[429],
      // A busy machine rejects requests before their passwords as well.
      overloaded: expect.any(Number),
    });
    const overloaded = outcomes.find(({ labels }) => labels.outcome === 'overloaded')?.value;
    expect(overloaded).toBeWithin(1, (statuses[503] ?? 0) + 1);
  } finally {
    await own.stop();
  }
  const rows = await own.database.query<{ actor: string; realm_id: string; address: string; detail: string }>(
    `select actor, realm_id, address, detail from act where action = 'sign-in.throttled'`,
  );
  const throttled = { actor: 'nobody', realm_id: realmId, address: '192.0.2.77' };
  expect(rows.map(({ detail, ...row }) => ({ ...row, ...JSON.parse(detail) }))).toEqual([
    throttled,
    { ...throttled, count: Number(statuses[429]) - 1, since: expect.any(String) },
  ]);
});

test('parallel requests for one name have two places in the queue; the others are 503', async () => {
  // Long enough that eight requests arrive during a check, and a small part of the time after which it is late.
  const hash = await Bun.password.hash('of jane', { algorithm: 'argon2id', memoryCost: 16_384, timeCost: 1 });
  const { withoutRetry } = service;
  let answers: readonly Response[] = [];
  const checked = () => answers.filter(({ status }) => status === 400).length;
  // A check that a busy machine finishes too late is 503 as well; one that ends before others arrive gives its place to them.
  for (let tries = 0; tries < 10 && (checked() < 2 || checked() === answers.length); tries += 1) {
    const jane = await createPassword(db, accounts, { hash });
    answers = await Promise.all(
      Array.from({ length: 8 }, (_, index) =>
        requestTokens(withoutRetry, token, passwordBody(jane), from(`198.51.120.${index}`)),
      ),
    );
  }
  expect(checked()).toBeGreaterThanOrEqual(2);
  expect(new Set(answers.map(({ status }) => status))).toEqual(new Set([400, 503]));
  const refused = answers.find(({ status }) => status === 503);
  expect(refused?.headers.get('retry-after')).toBe('1');
});

test('a clock that is set back by a year refuses a name for as long as its budget needs to refill, and not for a year', async () => {
  const ahead = await startService();
  const YEAR_MS = 365 * DAY_MS;
  ahead.clock.advance(YEAR_MS);
  const back = await startService(ahead.database.flags);
  const { accounts: realmId } = await createSettingsRealms(ahead.db);
  const jane = await createPassword(ahead.db, realmId);
  const before = openGuesses(ahead, await signInTokenOf(ahead));
  const now = openGuesses(back, await signInTokenOf(back));
  const first = await before.signIn(jane, jane.password, from('192.0.2.95'));
  const device = { [DEVICE_HEADER]: first.headers.get(DEVICE_HEADER) ?? '' };
  expect(await before.guess(jane, 3, () => '192.0.2.95')).toEqual(manyOf(400, 3));
  const refused = await now.signIn(jane, jane.password, from('192.0.2.95'));
  expect(refused.status).toBe(429);
  expect(Number(refused.headers.get('retry-after'))).toBeWithin(1, 601);
  expect(await now.statusOf(jane, jane.password, from('192.0.2.95', device))).toBe(201);
  back.clock.advance(600_000);
  expect(await now.statusOf(jane, jane.password, from('192.0.2.95'))).toBe(201);
});

test('two services over one database share the budgets, device tokens and account tokens', async () => {
  const baseUrl = 'https://idp.example';
  const own = await startService({ baseUrl });
  const other = await startService({ ...own.database.flags, baseUrl });
  const { accounts: realmId } = await createSettingsRealms(own.db);
  const jane = await createPassword(own.db, realmId);
  const access = await signInTokenOf(own);
  const { signIn, guess } = openGuesses(own, access);
  const first = await signIn(jane, jane.password, from('192.0.2.90'));
  const device = { [DEVICE_HEADER]: first.headers.get(DEVICE_HEADER) ?? '' };
  const accountToken = ((await first.json()) as AccountTokensAnswer).data[0]?.token ?? '';
  await guess(jane, 10, () => '192.0.2.91');
  const there = openGuesses(other, access);
  expect(await there.statusOf(jane, jane.password, from('192.0.2.91'))).toBe(429);
  expect(await there.statusOf(jane, jane.password, from('192.0.2.91', device))).toBe(201);
  const renewal = await requestTokens(other, access, RENEWAL, { [ACCOUNT_TOKEN_HEADER]: accountToken });
  expect(renewal.status).toBe(201);
});

test('a device token admits its user on the 180th day, and not on the 181st', async () => {
  const jane = await createPassword(db, accounts);
  const first = await signIn(jane, jane.password, from('192.0.2.40'));
  const device = { [DEVICE_HEADER]: first.headers.get(DEVICE_HEADER) ?? '' };
  const dayOfIssue = Math.floor(clock.now() / DAY_MS);
  /** At noon of a day, with the device after ten wrong passwords from its address. */
  const statusOn = async (day: number) => {
    clock.advance((dayOfIssue + day + 0.5) * DAY_MS - clock.now());
    const later = openGuesses(service, await signInTokenOf(service));
    await later.guess(jane, 10, () => '192.0.2.40');
    return later.statusOf(jane, jane.password, from('192.0.2.40', device));
  };
  expect([await statusOn(180), await statusOn(181)]).toEqual([201, 429]);
});
