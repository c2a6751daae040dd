import { afterEach, describe, expect, test } from 'bun:test';
import type { LogStore } from '../../src/audit/port.ts';
import { openTokenGrantLog, type PendingGrants } from '../../src/audit/token_grant_log.ts';
import { type AuditEntry, createAuditEntry } from '../../src/domain/audit_entry.ts';
import { Fault } from '../../src/domain/fault.ts';
import { LIMITS } from '../../src/domain/limits.ts';
import { systemClock } from '../../src/platform/clock.ts';
import type { Engine } from '../../src/store/open.ts';
import { createFixture, oidcPath, type Service, startService } from '../support/service.ts';

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

async function requestGrant(of: Service, clientId: string, secret: string, headers = {}) {
  const form = { grant_type: 'client_credentials', client_id: clientId, client_secret: secret };
  return of.requestToken(form, headers);
}

test('grants by the ID of a client alone, and by its secret, have entries of their own', async () => {
  const written: AuditEntry[] = [];
  const store = { append: async (entries: readonly AuditEntry[]) => void written.push(...entries) };
  const grants = openTokenGrantLog(store, systemClock);
  for (const detail of [{}, { grant: 'implicit' }, { grant: 'implicit' }, {}])
    await grants.append(createAuditEntry('token.granted', { object: 'shop', detail }, systemClock));
  await grants.stop();
  const alone = 'implicit';
  expect(written.map(({ detail }) => detail.grant)).toEqual([undefined, alone, undefined, alone]);
});

test('a token grant is logged with client, rights, expiry and address before it is answered', async () => {
  service = await startService();
  const { clientId, secret } = await service.client('profile-infos:read');
  const answer = await requestGrant(service, clientId, secret, { 'X-Request-Id': 'shop-7' });
  const { access_token: token, expires } = (await answer.json()) as { access_token: string; expires: number };
  const fixture = await createFixture(service.db);
  const limited = await service.client('profile-infos:read', new Set([fixture.realm]));
  await requestGrant(service, limited.clientId, limited.secret);
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

test('a token is issued while the log cannot be written, and its entry is written later', async () => {
  const log = failingLog();
  service = await startService({}, log.wrap);
  const fixture = await createFixture(service.db);
  const clients = [];
  for (let count = 0; count < 3; count += 1) clients.push(await service.client('profile-infos:read'));
  log.fail(true);
  const tokens = [];
  for (const { clientId, secret } of clients) {
    const answer = await requestGrant(service, clientId, secret);
    tokens.push(((await answer.json()) as { access_token: string }).access_token);
  }
  for (const token of tokens) expect((await service.get(oidcPath(fixture), token)).status).toBe(200);
  expect(await grantsOf(service)).toEqual([]);
  expect(pendingReports(service)).toEqual([{ event: 'audit_entries_pending', pending: 1, dropped: 0 }]);
  log.fail(false);
  while (pendingReports(service).length < 2) await Bun.sleep(50);
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
    const answer = await requestGrant(service, clientId, secret, { 'X-Forwarded-For': `192.0.2.${host}` });
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

test('a client gets 120 tokens at once and 60 a minute by default; further requests are 429 and one entry', async () => {
  service = await startService();
  const { clientId, secret } = await service.client('profile-infos:read');
  const other = await service.client('profile-infos:read');
  const { clock } = service;
  const started = clock.monotonic();
  const statuses = new Map<number, number>();
  let limited: Response | undefined;
  const request = async (times: number) => {
    for (let count = 0; count < times; count += 1) {
      const answer = await requestGrant(service as Service, clientId, secret);
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
  expect((await requestGrant(service, other.clientId, other.secret)).status).toBe(200);
  await service.server.stop();
  const refused = await service.database.query<Row>(
    `select action, actor, object, address, request_id, detail from act where action = 'access.refused'`,
  );
  expect(refused.map(({ actor, detail }) => [actor, JSON.parse(detail)])).toEqual([
    [clientId, { reason: 'too many grants', count: 400 - granted, since: expect.any(String) }],
  ]);
  expect((await grantsOf(service)).filter(({ actor }) => actor === clientId)).toHaveLength(2);
});

test('--grant-rate off lets a client get any number of tokens', async () => {
  service = await startService({ grantRate: 'off' });
  const { clientId, secret } = await service.client('profile-infos:read');
  for (let count = 0; count < 150; count += 1)
    expect((await requestGrant(service, clientId, secret)).status).toBe(200);
});

test('a client that requests tokens in a loop has one entry per interval, and one more afterwards is written at once', async () => {
  const written: AuditEntry[] = [];
  const append = async (auditEntries: readonly AuditEntry[]) => {
    written.push(...auditEntries);
  };
  const intervalMs = 40;
  const grants = openTokenGrantLog({ append }, systemClock, { intervalMs });
  const grant = () =>
    grants.append(createAuditEntry('token.granted', { object: 'shop', detail: {} }, systemClock));
  let count = 0;
  const began = performance.now();
  while (performance.now() - began < 5 * intervalMs) {
    await grant();
    count += 1;
    await Bun.sleep(1);
  }
  const logged = () => written.reduce((sum, { detail }) => sum + Number(detail.count ?? 1), 0);
  // The entry of the last interval, and an interval without a grant.
  while (logged() < count) await Bun.sleep(1);
  await Bun.sleep(2 * intervalMs);
  const intervals = (performance.now() - began) / intervalMs;
  expect(written.length).toBeLessThanOrEqual(Math.ceil(intervals) + 1);
  expect(logged()).toBe(count);
  const before = written.length;
  await grant();
  expect(written).toHaveLength(before + 1);
  await grants.stop();
  expect(written).toHaveLength(before + 1);
});

test('counted grants survive an unexpected error of the log, which is reported', async () => {
  const written: AuditEntry[] = [];
  let error: Error | undefined;
  const append = async (auditEntries: readonly AuditEntry[]) => {
    if (error) throw error;
    written.push(...auditEntries);
  };
  const errors: unknown[] = [];
  const onError = (reported: unknown) => errors.push(reported);
  const grants = openTokenGrantLog({ append }, systemClock, { onError, intervalMs: 20 });
  const grant = (address: string) => {
    const caller = { actor: 'shop', address, requestId: undefined };
    return grants.append(
      createAuditEntry('token.granted', { object: 'shop', detail: {} }, { now: systemClock.now, caller }),
    );
  };
  await grant('192.0.2.1');
  error = new TypeError('broken');
  await grant('192.0.2.2');
  while (errors.length === 0) await Bun.sleep(5);
  expect(errors[0]).toBe(error);
  await grant('192.0.2.3');
  error = undefined;
  await grants.stop();
  expect(written.map(({ detail }) => Number(detail.count ?? 1))).toEqual([1, 2]);
  expect(written[1]?.detail).toMatchObject({ addresses: ['192.0.2.2', '192.0.2.3'] });
});

test('pending grant entries are written when the service stops', async () => {
  const log = failingLog();
  service = await startService({}, log.wrap);
  const { clientId, secret } = await service.client('profile-infos:read');
  log.fail(true);
  expect((await requestGrant(service, clientId, secret)).status).toBe(200);
  log.fail(false);
  const { server } = service;
  await server.stop();
  expect(await grantsOf(service)).toHaveLength(1);
});

test('no token is issued when logging its grant fails with an unexpected error', async () => {
  const log = { wrap: (engine: Engine): Engine => ({ ...engine, log: { ...engine.log, append: broken } }) };
  const broken = () => Promise.reject(new TypeError('broken'));
  const other = await startService({}, log.wrap);
  const { clientId, secret } = await other.client('profile-infos:read');
  expect((await requestGrant(other, clientId, secret)).status).toBe(500);
  await expect(other.stop()).rejects.toThrow('answered 500');
});

function pendingReports({ log }: Service) {
  return log.filter(({ event }) => event === 'audit_entries_pending');
}

describe('pending grant entries', () => {
  function openStore() {
    const written: AuditEntry[] = [];
    const store = {
      isFailing: true,
      written,
      async append(auditEntries: readonly AuditEntry[]) {
        if (store.isFailing) throw new Fault('unavailable');
        written.push(...auditEntries);
      },
    };
    return store;
  }

  const actAt = (at: number): AuditEntry => ({
    action: 'token.granted',
    actor: 'shop',
    address: undefined,
    requestId: undefined,
    object: `shop ${at}`,
    detail: {},
    at,
  });

  test('the queue of grant entries is bounded: grants beyond it are counted in one entry', async () => {
    const store = openStore();
    const reports: PendingGrants[] = [];
    const notes = openTokenGrantLog(
      store,
      { ...systemClock, now: () => 5 },
      { onPending: (waiting) => reports.push(waiting) },
    );
    const excess = 7;
    for (let at = 0; at < LIMITS.grantsWaitingMax + excess; at += 1) await notes.append(actAt(at));
    store.isFailing = false;
    await notes.stop();
    expect(store.written.slice(0, -1).map(({ at }) => at)).toEqual(
      Array.from({ length: LIMITS.grantsWaitingMax }, (_, at) => at),
    );
    expect(store.written.at(-1)).toMatchObject({
      action: 'token.granted',
      actor: 'authrealm',
      detail: { without_entry: excess },
    });
    expect(reports).toEqual([
      { waiting: 1, dropped: 0 },
      { waiting: 0, dropped: 0 },
    ]);
  });

  test('dropped grants whose entry has an unknown outcome are counted by the same entry again', async () => {
    const seen: (readonly AuditEntry[])[] = [];
    let code: 'unavailable' | 'unknown_outcome' | undefined = 'unavailable';
    const note = async (auditEntries: readonly AuditEntry[]) => {
      seen.push(auditEntries);
      if (code) throw new Fault(code);
    };
    const notes = openTokenGrantLog({ append: note }, systemClock);
    for (let at = 0; at < LIMITS.grantsWaitingMax + 3; at += 1) await notes.append(actAt(at));
    code = 'unknown_outcome';
    await notes.stop();
    await notes.append(actAt(-1));
    code = undefined;
    await notes.stop();
    await notes.append(actAt(-2));
    const lost = seen.map((auditEntries) => auditEntries.find(({ detail }) => 'without_entry' in detail));
    const [first, second] = lost.filter((auditEntry) => auditEntry !== undefined);
    expect(first).toMatchObject({ id: expect.any(String), detail: { without_entry: 3 } });
    expect(second).toBe(first as AuditEntry);
    expect(seen.at(-1)?.map(({ at }) => at)).toEqual([-2]);
  });

  test('grant entries that cannot be written at stop are reported as lost', async () => {
    const store = openStore();
    const reports: PendingGrants[] = [];
    const notes = openTokenGrantLog(
      store,
      { ...systemClock, now: () => 5 },
      { onPending: (waiting) => reports.push(waiting) },
    );
    await notes.append(actAt(1));
    await notes.append(actAt(2));
    await notes.stop();
    expect(reports).toEqual([
      { waiting: 1, dropped: 0 },
      { waiting: 0, dropped: 2 },
    ]);
  });
});
