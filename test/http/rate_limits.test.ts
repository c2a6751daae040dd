import { describe, expect, test } from 'bun:test';
import type { Flags } from '../../src/app/config/parse.ts';
import type { Call } from '../../src/http/pipeline/call.ts';
import { openRateLimits } from '../../src/http/server/rate_limits.ts';
import { parseIpAddress } from '../../src/model/ip_address.ts';
import { systemClock } from '../../src/ops/process/clock.ts';
import type { JsonObject } from '../support/json_schema.ts';
import { openOperationClient, operationsOf } from '../support/openapi_client.ts';
import { testInProcess } from '../support/program_service.ts';
import { createFixture, errorsOf, oidcPath, type Service, startService } from '../support/service.ts';

let service: Service;

const PROXIED = { trustedProxies: '127.0.0.0/8 ::1' };
const OFF = {
  addressRate: undefined,
  clientRate: undefined,
  processes: 1,
  badTokenRate: 'off',
  grantRate: 'off',
} as const;
const from = (address: string) => ({ 'X-Forwarded-For': address });

async function startWithRecord(flags: Flags) {
  service = await startService({ ...PROXIED, ...flags });
  const path = oidcPath(await createFixture(service.db));
  return { path, token: await service.token('oidc-profile-infos:read') };
}

/** The statuses of consecutive requests. */
async function statuses(count: number, send: () => Promise<Response>): Promise<readonly number[]> {
  const found: number[] = [];
  for (let done = 0; done < count; done += 1) found.push((await send()).status);
  return found;
}

const rates = ({ headers }: Response) => [headers.get('ratelimit-policy'), headers.get('ratelimit')];

test('without rate limits a response has no rate limit headers', async () => {
  const { path, token } = await startWithRecord({});
  expect(rates(await service.get(path, token))).toEqual([null, null]);
});

describe('--client-rate', () => {
  testInProcess('each client has its own limit by --client-rate, including its token request', async () => {
    const { path, token } = await startWithRecord({ clientRate: '3/60' });
    // The token request counts as well.
    expect(await statuses(4, () => service.get(path, token))).toEqual([200, 200, 429, 429]);
    const other = await service.token('oidc-profile-infos:read');
    expect(await statuses(3, () => service.get(path, other))).toEqual([200, 200, 429]);
    service.clock.advance(20_000);
    expect(await statuses(2, () => service.get(path, token))).toEqual([200, 429]);
  });

  test('the RateLimit headers report the remaining requests, and Retry-After the wait', async () => {
    const { path, token } = await startWithRecord({ clientRate: '10/100' });
    const answer = await service.get(path, token);
    expect(rates(answer)[0]).toBe('"client";q=10;w=100');
    expect(rates(answer)[1]).toBe('"client";r=8;t=10');
    await statuses(8, () => service.get(path, token));
    const refused = await service.get(path, token);
    expect(rates(refused)[1]).toBe('"client";r=0;t=10');
    expect(refused.headers.get('retry-after')).toBe('10');
    expect((await errorsOf(refused))[0]).toMatchObject({ status: '429', title: 'Too Many Requests' });
  });

  test('token requests beyond --client-rate are 429', async () => {
    await startWithRecord({ clientRate: '2/60' });
    const { clientId, secret } = await service.client('oidc-profile-infos:read');
    expect(await statuses(3, () => service.requestGrant({ clientId, secret }))).toEqual([200, 200, 429]);
  });

  testInProcess(
    'token, revocation and introspection requests beyond --client-rate have no effect',
    async () => {
      await startWithRecord({ clientRate: '3/60' });
      const { clientId, secret } = await service.client('oidc-profile-infos:read');
      const own = { client_id: clientId, client_secret: secret };
      const form = { ...own, grant_type: 'client_credentials' };
      const granted = await service.requestToken(form);
      const { access_token: token } = (await granted.json()) as { access_token: string };
      const send = (what: string) => {
        const body = new URLSearchParams({ ...own, token });
        return fetch(`${service.url}/oauth/${what}`, { method: 'POST', body });
      };
      expect(await statuses(4, () => service.requestToken(form))).toEqual([200, 200, 429, 429]);
      expect([(await send('revoke')).status, (await send('introspect')).status]).toEqual([429, 429]);
      service.clock.advance(20_000);
      expect(await (await send('introspect')).json()).toMatchObject({ active: true });
      await service.server.stop();
      const logged = await service.database.query<{ action: string; detail: string }>(
        'select action, detail from act where actor = ? order by seq',
        clientId,
      );
      expect(logged.map(({ action, detail }) => [action, JSON.parse(detail).count])).toEqual([
        ['token.granted', undefined],
        ['token.granted', 2],
      ]);
    },
  );

  test('each of two processes allows half of --client-rate', async () => {
    const { path, token } = await startWithRecord({ clientRate: '6/60', processes: '2' });
    const all = await statuses(4, () => service.get(path, token));
    expect(all).toEqual([200, 200, 429, 429]);
  });
});

describe('--address-rate', () => {
  test('--address-rate counts every request of an address, unauthenticated ones included', async () => {
    const { path, token } = await startWithRecord({ addressRate: '3/60' });
    const at = from('192.0.2.1');
    expect((await service.get('/nowhere', undefined, at)).status).toBe(404);
    const answer = await service.get(path, undefined, at);
    expect([answer.status, ...rates(answer)]).toEqual([401, '"address";q=3;w=60', '"address";r=1;t=20']);
    expect(await statuses(2, () => service.get(path, token, at))).toEqual([200, 429]);
    expect((await service.get(path, token, from('192.0.2.2'))).status).toBe(200);
  });

  test('--address-rate counts an IPv6 /64 as one address', async () => {
    const { path, token } = await startWithRecord({ addressRate: '2/60' });
    const addresses = ['2001:db8::1', '2001:db8::2', '2001:db8:0:0:ffff::3', '2001:db8:0:1::1'];
    const found: number[] = [];
    for (const each of addresses) found.push((await service.get(path, token, from(each))).status);
    expect(found).toEqual([200, 200, 429, 200]);
  });

  test('--address-rate ignores X-Forwarded-For of untrusted peers', async () => {
    service = await startService({ addressRate: '2/60' });
    const found = ['192.0.2.1', '192.0.2.2', '192.0.2.3'].map((each) =>
      service.get('/nowhere', undefined, from(each)),
    );
    expect((await Promise.all(found)).map(({ status }) => status).sort()).toEqual([404, 404, 429]);
  });

  test('health checks are not rate limited and have no rate limit headers', async () => {
    await startWithRecord({ addressRate: '2/60' });
    expect(await statuses(9, () => service.get('/healthz'))).toEqual(Array(9).fill(200));
    expect(await statuses(9, () => service.get('/readyz/'))).toEqual(Array(9).fill(200));
    expect(rates(await service.get('/healthz'))).toEqual([null, null]);
  });

  test('the RateLimit headers report both rates together', async () => {
    const { path, token } = await startWithRecord({ addressRate: '50/50', clientRate: '20/20' });
    const answer = await service.get(path, token, from('192.0.2.1'));
    expect(rates(answer)).toEqual([
      '"address";q=50;w=50, "client";q=20;w=20',
      '"address";r=49;t=1, "client";r=18;t=1',
    ]);
  });
});

test('callers without an address share one limit', () => {
  const { address, badCredentials: guesses } = openRateLimits(
    { ...OFF, addressRate: { requests: 1, seconds: 60 } },
    { ...systemClock, monotonic: () => 0 },
  );
  const call = (from: string | undefined) =>
    ({
      address: () => (from === undefined ? undefined : parseIpAddress(from)),
      authorization: null,
    }) as Call;
  const found = [undefined, '192.0.2.1', undefined].map((from) => address?.(call(from))?.status);
  expect([found, guesses]).toEqual([[undefined, undefined, 429], undefined]);
});

describe('consecutive requests with the same credentials', () => {
  function openCountedLimit(requests: number) {
    const reads: string[] = [];
    const rate = { requests, seconds: 3_600 };
    const { address } = openRateLimits({ ...OFF, addressRate: rate }, { ...systemClock, monotonic: () => 0 });
    const passes = (credentials: string | null, from: string) => {
      const read = () => {
        reads.push(from);
        return parseIpAddress(from);
      };
      return address?.({ address: read, authorization: credentials } as Call) === undefined;
    };
    return { passes, reads };
  }

  test('the address of consecutive requests is read once in 64, and for each near the limit', () => {
    const plenty = openCountedLimit(1_000_000);
    for (let count = 0; count < 6_400; count += 1) plenty.passes('token', '192.0.2.1');
    expect(plenty.reads.length).toBe(100);
    const little = openCountedLimit(127);
    for (let count = 0; count < 127; count += 1) little.passes('token', '192.0.2.1');
    expect(little.reads.length).toBe(127);
  });

  test('an address may send exactly as many consecutive requests as its rate', () => {
    for (const requests of [1, 63, 64, 129, 6_400]) {
      const { passes } = openCountedLimit(requests);
      const passed = Array.from({ length: requests + 100 }, () => passes('token', '192.0.2.1'));
      expect(passed.filter(Boolean).length).toBe(requests);
    }
  });

  test('the address is read again for other credentials and for none', () => {
    const { passes, reads } = openCountedLimit(1_000_000);
    passes('token', '192.0.2.1');
    passes('another', '192.0.2.2');
    passes(null, '192.0.2.3');
    passes('another', '192.0.2.4');
    passes('token', '192.0.2.5');
    expect(reads).toEqual(['192.0.2.1', '192.0.2.2', '192.0.2.3', '192.0.2.5']);
  });

  test('another address with the same token counts for the first for at most a 64th of the remaining requests', () => {
    const { passes, reads } = openCountedLimit(640);
    for (let count = 0; count < 10; count += 1) passes('token', `192.0.2.${count}`);
    expect(reads).toEqual(['192.0.2.0', '192.0.2.9']);
  });
});

test('the RateLimit header is updated for each request, clock and other rate', () => {
  let at = 0;
  const rate = { requests: 50, seconds: 100 };
  const { address, caller } = openRateLimits(
    { ...OFF, addressRate: rate, clientRate: rate },
    { ...systemClock, monotonic: () => at },
  );
  const headerAfter = (clientId: string) => {
    const call = { address: () => parseIpAddress('192.0.2.1'), authorization: null } as Call;
    address?.(call);
    caller(call, { clientId });
    return call.rateHeaders?.RateLimit;
  };
  expect(headerAfter('one')).toBe('"address";r=49;t=2, "client";r=49;t=2');
  expect(headerAfter('another')).toBe('"address";r=48;t=2, "client";r=49;t=2');
  expect(headerAfter('another')).toBe('"address";r=47;t=2, "client";r=48;t=2');
  at = 1_500;
  expect(headerAfter('one')).toBe('"address";r=46;t=1, "client";r=48;t=1');
});

test('every operation except health checks documents its 429 response', async () => {
  await startWithRecord({ addressRate: '1/3600' });
  const document = (await (
    await service.get('/openapi.json', undefined, from('192.0.2.9'))
  ).json()) as JsonObject;
  const caller = openOperationClient(document);
  for (const operation of operationsOf(document)) {
    const path = Object.fromEntries(
      operation.parameters
        .filter((each) => each.in === 'path')
        .map(({ name }) => [name, crypto.randomUUID()]),
    );
    const { status, headers } = await caller.send(operation, { path });
    const isHealth = /z$/.test(operation.path);
    expect([operation.id, status, headers.has('ratelimit')]).toEqual(
      isHealth ? [operation.id, 200, false] : [operation.id, 429, true],
    );
  }
});

test('the service does not start with a rate of less than one request for each process', async () => {
  service = await startService();
  expect(startService({ clientRate: '3/60', processes: '4' })).rejects.toThrow(
    /--client-rate must allow at least one request for each/,
  );
});
