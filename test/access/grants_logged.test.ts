import { afterEach, expect, test } from 'bun:test';
import type { LogStore } from '../../src/log/store/reading.ts';
import { Fault } from '../../src/model/fault.ts';
import type { Engine } from '../../src/ops/store/open.ts';
import { createFixture, oidcPath, type Service, startService } from '../support/service.ts';
import { createStorefront } from '../support/settings_realms.ts';

/** An engine whose log can be made to fail. */
function failingLog(code: 'unavailable' | 'internal' = 'unavailable') {
  let isFailing = false;
  const note =
    (log: LogStore): LogStore['append'] =>
    (auditEntries) =>
      isFailing ? Promise.reject(new Fault(code)) : log.append(auditEntries);
  return {
    wrap: (engine: Engine): Engine => ({ ...engine, log: { ...engine.log, append: note(engine.log) } }),
    fail(value: boolean) {
      isFailing = value;
    },
  };
}

let service: Service | undefined;
afterEach(async () => {
  service = undefined;
});

interface Row {
  readonly action: string;
  readonly actor: string;
  readonly object: string | null;
  readonly address: string | null;
  readonly request_id: string | null;
  readonly detail: string;
}

async function grantsOf({ database }: Service): Promise<readonly Row[]> {
  return database.query<Row>(
    `select action, actor, object, address, request_id, detail from act where action = 'token.granted' order by seq`,
  );
}

test('grants by the ID of a client alone and by its secret have entries of their own', async () => {
  service = await startService();
  const { realm } = await createFixture(service.db);
  const { clientId, secret } = await createStorefront(service, realm);
  const alone = () => service?.requestToken({ grant_type: 'implicit', client_id: clientId });
  for (const request of [() => (service as Service).requestGrant({ clientId, secret }), alone, alone])
    expect((await request())?.status).toBe(200);
  await service.server.stop();
  const grants = (await grantsOf(service)).map(({ detail }) => JSON.parse(detail).grant);
  expect(grants).toEqual([undefined, 'implicit', 'implicit']);
});

test('a token grant is logged with client, rights, expiry and address before it is answered', async () => {
  service = await startService();
  const { clientId, secret } = await service.client('profile-infos:read');
  const answer = await service.requestGrant({ clientId, secret }, { 'X-Request-Id': 'shop-7' });
  const { access_token: token, expires } = (await answer.json()) as { access_token: string; expires: number };
  const fixture = await createFixture(service.db);
  const limited = await service.client('profile-infos:read', new Set([fixture.realm]));
  await service.requestGrant(limited);
  const [row, other, ...more] = await grantsOf(service);
  expect([more, JSON.parse(other?.detail ?? '').realms]).toEqual([[], [fixture.realm]]);
  const [, claims = ''] = token.split('.');
  const { jti } = JSON.parse(Buffer.from(claims, 'base64url').toString()) as { jti: string };
  expect([row, JSON.parse(row?.detail ?? '')]).toEqual([
    {
      action: 'token.granted',
      actor: clientId,
      object: clientId,
      address: '127.0.0.1',
      request_id: 'shop-7',
      detail: expect.any(String),
    },
    {
      scope: 'oidc-profile-infos:read password-profile-infos:read',
      realms: '*',
      jti,
      expires_at: new Date(expires * 1_000).toISOString(),
    },
  ]);
});

test('a token is issued while the log cannot be written, and its entry is written at the latest when the service stops', async () => {
  const log = failingLog();
  service = await startService({}, log.wrap);
  const fixture = await createFixture(service.db);
  const clients = [];
  for (let count = 0; count < 3; count += 1) clients.push(await service.client('profile-infos:read'));
  log.fail(true);
  const tokens = [];
  for (const { clientId, secret } of clients) {
    const answer = await service.requestGrant({ clientId, secret });
    tokens.push(((await answer.json()) as { access_token: string }).access_token);
  }
  for (const token of tokens) expect((await service.get(oidcPath(fixture), token)).status).toBe(200);
  expect(await grantsOf(service)).toEqual([]);
  expect(pendingReports(service)).toEqual([{ event: 'audit_entries_pending', pending: 1, dropped: 0 }]);
  log.fail(false);
  await service.server.stop();
  expect(pendingReports(service).at(-1)).toEqual({ event: 'audit_entries_pending', pending: 0, dropped: 0 });
  expect((await grantsOf(service)).map(({ object }) => object)).toEqual(
    clients.map(({ clientId }) => clientId),
  );
}, 300_000);

test('grants of a client within a minute are two entries: the first one, and the last one with their number', async () => {
  service = await startService({ trustedProxies: '127.0.0.0/8 ::1' });
  const { clientId, secret } = await service.client('profile-infos:read');
  const jtis: string[] = [];
  for (const host of [1, 2, 3, 3]) {
    const answer = await service.requestGrant({ clientId, secret }, { 'X-Forwarded-For': `192.0.2.${host}` });
    const { access_token: token } = (await answer.json()) as { access_token: string };
    jtis.push(JSON.parse(Buffer.from(token.split('.')[1] ?? '', 'base64url').toString()).jti);
  }
  expect((await grantsOf(service)).map(({ detail }) => JSON.parse(detail).jti)).toEqual([jtis[0]]);
  await service.server.stop();
  const [first, counted, ...more] = await grantsOf(service);
  expect([first?.address, counted?.address, more]).toEqual(['192.0.2.1', '192.0.2.3', []]);
  expect(JSON.parse(first?.detail ?? '')).not.toHaveProperty('count');
  expect(JSON.parse(counted?.detail ?? '')).toMatchObject({
    jti: jtis[3],
    count: 3,
    since: expect.any(String),
    addresses: ['192.0.2.2', '192.0.2.3'],
  });
});

test('a client gets 120 tokens at once and 60 a minute by default; further requests are 429 and two entries', async () => {
  service = await startService();
  const { clientId, secret } = await service.client('profile-infos:read');
  const other = await service.client('profile-infos:read');
  const { clock } = service;
  const started = clock.monotonic();
  const statuses = new Map<number, number>();
  let limited: Response | undefined;
  const request = async (times: number) => {
    for (let count = 0; count < times; count += 1) {
      const answer = await (service as Service).requestGrant({ clientId, secret });
      statuses.set(answer.status, (statuses.get(answer.status) ?? 0) + 1);
      if (answer.status === 429) limited = answer;
    }
  };
  await request(200);
  clock.advance(60_000);
  await request(200);
  const seconds = (clock.monotonic() - started) / 1_000;
  const granted = statuses.get(200) ?? 0;
  expect(granted).toBeGreaterThanOrEqual(180);
  expect(granted).toBeLessThanOrEqual(120 + Math.ceil(seconds));
  expect(statuses.get(429)).toBe(400 - granted);
  expect([limited?.headers.get('retry-after'), limited?.headers.get('ratelimit')]).toEqual(['1', null]);
  expect((await service.requestGrant(other)).status).toBe(200);
  await service.server.stop();
  const refused = await service.database.query<Row>(
    `select action, actor, object, address, request_id, detail from act where action = 'access.refused'`,
  );
  expect(refused.map(({ actor, detail }) => [actor, JSON.parse(detail)])).toEqual([
    [clientId, { reason: 'too many grants' }],
    [clientId, { reason: 'too many grants', count: 399 - granted, since: expect.any(String) }],
  ]);
  expect((await grantsOf(service)).filter(({ actor }) => actor === clientId)).toHaveLength(2);
});

test('--grant-rate off lets a client get any number of tokens', async () => {
  service = await startService({ grantRate: 'off' });
  const { clientId, secret } = await service.client('profile-infos:read');
  for (let count = 0; count < 150; count += 1)
    expect((await service.requestGrant({ clientId, secret })).status).toBe(200);
});

test('no token is issued when logging its grant fails with an unexpected error', async () => {
  const log = { wrap: (engine: Engine): Engine => ({ ...engine, log: { ...engine.log, append: broken } }) };
  const broken = () => Promise.reject(new TypeError('broken'));
  const other = await startService({}, log.wrap);
  const { clientId, secret } = await other.client('profile-infos:read');
  expect((await other.requestGrant({ clientId, secret })).status).toBe(500);
  await expect(other.stop()).rejects.toThrow('answered 500');
});

function pendingReports({ log }: Service) {
  return log.filter(({ event }) => event === 'audit_entries_pending');
}
