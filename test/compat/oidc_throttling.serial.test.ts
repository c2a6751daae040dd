import { describe, expect, setDefaultTimeout, test } from 'bun:test';
import { LIMITS } from '../../src/model/limits.ts';
import type { RequestHandler } from '../support/issuers.ts';
import { newPerson, signedInOf, startTokenCalls } from '../support/oidc_token_calls.ts';
import { errorsOf, startService } from '../support/service.ts';
import { createStorefront } from '../support/settings_realms.ts';
import { from, manyOf, signInTokenOf } from '../support/sign_in.ts';

setDefaultTimeout(60_000);

/** Limits of sign-ins with codes of a provider: docs/decisions/0025-sign-in-through-providers.md. */

const calls = await startTokenCalls({ trustedProxies: '127.0.0.1' });
const { service, provider, realm, send, sealCode, authorize, exchanges } = calls;

/** Codes that the provider refuses, one after the other. Returns the statuses. */
async function sendRefused(count: number, change: (index: number) => Parameters<typeof send>[1]) {
  const statuses: number[] = [];
  for (let index = 0; index < count; index += 1)
    statuses.push((await send(sealCode(`unknown-${index}`), change(index))).status);
  return statuses;
}

/** Sends a right code, for which the provider is not asked. */
async function expectThrottled(change: Parameters<typeof send>[1]): Promise<void> {
  const code = await authorize();
  const before = exchanges();
  const answer = await send(code, change);
  const [error] = await errorsOf(answer);
  expect([answer.status, error?.code, exchanges() - before]).toEqual([429, 'rate_limited', 0]);
  expect(Number(answer.headers.get('retry-after'))).toBeGreaterThan(0);
}

async function tokenByIdAlone(storefronts: readonly string[] = []): Promise<string> {
  const rate = { requests: 1_000, seconds: 60 };
  const { clientId } = await createStorefront(service, realm, rate, storefronts);
  const granted = await service.requestToken({ grant_type: 'implicit', client_id: clientId });
  return ((await granted.json()) as { access_token: string }).access_token;
}

describe('refused codes', () => {
  test('of a network are 100, whatever its address, then one in nine seconds, and others are not affected', async () => {
    const at = (index: number) => ({ headers: from(`2001:db8:1:1::${(index + 1).toString(16)}`) });
    const before = exchanges();
    expect(await sendRefused(100, at)).toEqual(manyOf(400, 100));
    expect(exchanges() - before).toBe(100);
    await expectThrottled(at(200));
    const elsewhere = { headers: from('2001:db8:1:2::1') };
    expect((await send(await authorize(), elsewhere)).status).toBe(201);
    service.clock.advance(9_000);
    expect((await send(await authorize(), at(1))).status).toBe(201);
    expect(await sendRefused(2, at)).toEqual([400, 429]);
  });

  test('count in every process of the service', async () => {
    const { database, url, clock } = service;
    const flags = { ...database.flags, baseUrl: url, allowPrivate: 'localhost 127.0.0.0/8' };
    const second = await startService(flags);
    second.clock.advance(clock.now() - second.clock.now());
    const headers = from('192.0.2.20');
    expect(await sendRefused(99, () => ({ headers }))).toEqual(manyOf(400, 99));
    expect((await send(sealCode('unknown'), { headers, to: second.withoutRetry })).status).toBe(400);
    await expectThrottled({ headers, to: second.withoutRetry });
    await expectThrottled({ headers });
  });

  test('of ID tokens that are refused count too', async () => {
    const headers = from('192.0.2.30');
    for (let count = 0; count < 100; count += 1)
      expect((await send(await authorize(newPerson({ nonce: 'another' })), { headers })).status).toBe(400);
    await expectThrottled({ headers });
  });

  test('100 codes of a network are 503 while the token endpoint fails, and one more is 429 without a request', async () => {
    const headers = from('192.0.2.50');
    const before = exchanges();
    provider.routes.set('/token', calls.answerWith(500, {}));
    try {
      expect(await sendRefused(100, () => ({ headers }))).toEqual(manyOf(503, 100));
      expect(exchanges() - before).toBe(100);
      await expectThrottled({ headers });
    } finally {
      provider.routes.set('/token', calls.redeem);
    }
    expect((await send(await authorize(), { headers: from('192.0.2.51') })).status).toBe(201);
  });

  test('that do not open, and refused identities, count for nothing', async () => {
    const headers = from('192.0.2.40');
    const token = await signInTokenOf(service, { scope: 'sign-in' });
    for (let count = 0; count < 101; count += 1) {
      expect((await send('none', { headers })).status).toBe(400);
      expect((await send(await authorize(), { headers, token })).status).toBe(400);
    }
    expect((await send(await authorize(), { headers })).status).toBe(201);
  });

  test('of a client without addresses are 60 a minute, and those of another client are not affected', async () => {
    const unaddressed = () => signInTokenOf(service, { scope: 'sign-in sign-up', endUserAddress: 'none' });
    const [token, other] = [await unaddressed(), await unaddressed()];
    const startedAt = performance.now();
    const statuses = await sendRefused(60, () => ({ token }));
    expect(statuses).toEqual(manyOf(400, 60));
    // One more is allowed after each second that the others took.
    const seconds = Math.ceil((performance.now() - startedAt) / 1_000);
    const more = await sendRefused(seconds + 2, () => ({ token }));
    expect(more).toContain(429);
    await expectThrottled({ token });
    expect((await send(await authorize(), { token: other })).status).toBe(201);
    service.clock.advance(2_000);
    expect((await send(await authorize(), { token })).status).toBe(201);
  });

  test('by the ID alone count for the network of the connection, from the servers of a storefront for the client', async () => {
    const token = await tokenByIdAlone(['203.0.113.64/28']);
    const at = (address: string) => ({ token, headers: { ...from('nowhere'), 'X-Forwarded-For': address } });
    expect(await sendRefused(100, () => at('203.0.113.10'))).toEqual(manyOf(400, 100));
    await expectThrottled(at('203.0.113.10'));
    expect((await send(await authorize(), at('203.0.113.11'))).status).toBe(201);
    const statuses = await sendRefused(70, (index) => at(`203.0.113.${64 + (index % 16)}`));
    expect(statuses.slice(0, 60)).toEqual(manyOf(400, 60));
    expect(statuses).toContain(429);
    expect((await send(await authorize(), at('203.0.113.12'))).status).toBe(201);
  });

  test.each([[1], [100]])(
    '1,000 garbage codes by the ID alone from %p addresses ask no provider',
    async (addresses) => {
      const token = await tokenByIdAlone();
      const before = exchanges();
      for (let count = 0; count < 1_000; count += 1) {
        const headers = { 'X-Forwarded-For': `198.18.${addresses}.${count % addresses}` };
        const garbage = crypto.getRandomValues(Buffer.alloc(150)).toString('base64url');
        expect((await send(garbage, { token, headers })).status).toBe(400);
      }
      expect(exchanges()).toBe(before);
    },
  );
});

describe('exchanges in progress', () => {
  /** Sends codes at once from these addresses. The provider answers none of them before `refused` calls are answered. */
  async function sendAtOnce(addresses: readonly string[], refused: number, claimsOf = () => newPerson()) {
    const codes: string[] = [];
    for (const _ of addresses) codes.push(await authorize(claimsOf()));
    const { promise: released, resolve: release } = Promise.withResolvers<void>();
    const delayed: RequestHandler = async (request, response) => {
      await released;
      calls.redeem(request, response);
    };
    provider.routes.set('/token', delayed);
    if (refused === 0) release();
    let answered = 0;
    try {
      return await Promise.all(
        addresses.map(async (address, at) => {
          const code = codes[at] ?? '';
          const answer = await send(code, { headers: from(address) });
          answered += 1;
          if (answered === refused) release();
          return { code, answer };
        }),
      );
    } finally {
      provider.routes.set('/token', calls.redeem);
    }
  }

  /** Of these calls `refused` are answered 503, and their codes stay valid. */
  async function expectOverloaded(addresses: readonly string[], refused: number): Promise<void> {
    const sent = await sendAtOnce(addresses, refused);
    const beyond = sent.filter(({ answer }) => answer.status !== 201);
    expect(beyond).toHaveLength(refused);
    for (const { code, answer } of beyond) {
      const [error] = await errorsOf(answer);
      expect([answer.status, error?.code]).toEqual([503, 'overloaded']);
      expect(Number(answer.headers.get('retry-after'))).toBeGreaterThan(0);
      expect((await send(code)).status).toBe(201);
    }
  }

  test('at one provider are 16, and one more is 503', async () => {
    const { providerCodesAtOnceMax } = LIMITS;
    const addresses = Array.from({ length: providerCodesAtOnceMax + 4 }, (_, at) => `192.0.${at}.1`);
    await expectOverloaded(addresses, 4);
  });

  test.each([
    [4, 16, 0],
    [1, 64, 48],
  ])(
    '%p times %p first sign-ins of one person at once are one user with one link, %p are 503 and the others are 201',
    async (...row) => {
      const [times, count, refused] = row;
      const addresses = Array.from({ length: count }, (_, at) => `198.51.100.${at}`);
      for (let time = 0; time < times; time += 1) {
        const jane = newPerson();
        const sent = await sendAtOnce(addresses, refused, () => jane);
        const answers = sent.map(({ answer }) => answer);
        const statuses = answers.map(({ status }) => status).sort();
        expect(statuses).toEqual([...manyOf(201, count - refused), ...manyOf(503, refused)]);
        const right = answers.filter(({ status }) => status === 201);
        const users = await Promise.all(right.map(async (answer) => (await signedInOf(answer)).user));
        expect(new Set(users).size).toBe(1);
        const reader = await service.token('oidc-profile-infos:read');
        const path = `/v2/authentication-realms/${realm}/user-authentication-info/${users[0]}`;
        const links = await service.get(`${path}/user-authentication-oidc-profile-info`, reader);
        expect(((await links.json()) as { readonly data: readonly object[] }).data).toHaveLength(1);
      }
    },
  );

  test('of one address are four, and those of an IPv6 /48 count as one', async () => {
    const { providerCodesPerCallerMax } = LIMITS;
    const places = Array.from({ length: providerCodesPerCallerMax + 2 }, (_, at) => at + 1);
    await expectOverloaded(
      places.map(() => '192.0.2.7'),
      2,
    );
    await expectOverloaded(
      places.map((at) => `2001:db8:2:${at}::1`),
      2,
    );
  });
});
