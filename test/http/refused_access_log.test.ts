import { expect, test } from 'bun:test';
import { openRefusedAccessLog } from '../../src/audit/refused_access_log.ts';
import { openClientUsage } from '../../src/auth/tokens/client_usage.ts';
import { presetId } from '../../src/directory/presets.ts';
import type { AuditEntry } from '../../src/domain/audit_entry.ts';
import { Fault } from '../../src/domain/fault.ts';
import type { Uuid } from '../../src/domain/id.ts';
import { type IpAddress, parseIpAddress } from '../../src/domain/ip_address.ts';
import { LIMITS } from '../../src/domain/limits.ts';
import { systemClock } from '../../src/platform/clock.ts';
import { createFixture, oidcPath, passwordPath, startService } from '../support/service.ts';
import { createStorefront } from '../support/settings_realms.ts';

const OTHER = '01900000-0000-7000-8000-000000000000' as Uuid;

interface Row {
  readonly actor: string;
  readonly object: string | null;
  readonly address: string | null;
  readonly detail: string;
}

test('denied access is counted by client or address and reason, and logged at the latest when the service stops', async () => {
  const service = await startService({ badTokenRate: 'off' });
  const fixture = await createFixture(service.db);
  const path = oidcPath(fixture);
  const { clientId, secret } = await service.client(
    'oidc-profile-infos:read changes:read settings:write',
    new Set([OTHER]),
  );
  const form = { grant_type: 'client_credentials', client_id: clientId, client_secret: secret };
  const { access_token: token } = (await (await service.requestToken(form)).json()) as {
    access_token: string;
  };

  await service.get(path);
  for (let count = 0; count < 3; count += 1) await service.get(path, 'a.b.c');
  for (let count = 0; count < 2; count += 1) await service.get(passwordPath(fixture), token);
  for (let count = 0; count < 4; count += 1) await service.get(path, token);
  await service.get(`/v2/authentication-realms/${fixture.realm}/changes`, token);
  const merchants = presetId(await service.db.engine.access.storeId(), 'merchant-realm-mappings');
  const mapping = { data: { type: 'merchant-realm-mappings', prefix: 'shop' } };
  await service.put(`/v2/merchant-realm-mappings/${merchants}`, token, mapping);
  for (const wrong of ['x', 'y']) await service.requestToken({ ...form, client_secret: wrong });
  for (const unknown of ['nobody', 'someone']) await service.requestToken({ ...form, client_id: unknown });
  await service.requestToken({ ...form, scope: 'realms:write' });
  // The ID of a client alone, which anybody can have.
  const { clientId: storefront } = await createStorefront(service, fixture.realm);
  const alone = { grant_type: 'implicit', client_id: storefront };
  const byIdAlone = (await (await service.requestToken(alone)).json()) as { access_token: string };
  for (let count = 0; count < 2; count += 1) await service.get(path, byIdAlone.access_token);
  await service.requestToken({ ...alone, scope: 'users:read' });
  // None of these is denied access.
  await service.get('/nowhere');
  await service.get('/healthz');
  await service.requestToken({ ...form, grant_type: 'password' });
  await service.stop();

  const rows = await service.database.query<Row>(
    `select actor, object, address, detail from act where action = 'access.refused' order by seq`,
  );
  const counts = rows.map(({ actor, object, address, detail }) => {
    const { reason, count, since } = JSON.parse(detail);
    expect(new Date(since).toISOString()).toBe(since);
    return [actor, object, address, reason, count];
  });
  expect(counts.sort()).toEqual(
    [
      ['nobody', null, '127.0.0.1', 'no token', 1],
      ['nobody', null, '127.0.0.1', 'bad token', 3],
      // The last of them at the token endpoint.
      [clientId, null, null, 'insufficient scope', 3],
      // The last two of them at the feed, and at the prefix of a mapping.
      [clientId, null, null, 'realm outside the list', 6],
      ['nobody', clientId, '127.0.0.1', 'bad credentials', 2],
      ['nobody', storefront, '127.0.0.1', 'insufficient scope', 2],
      ['nobody', null, '127.0.0.1', 'insufficient scope', 1],
      // Unknown clients, together.
      ['nobody', null, '127.0.0.1', 'bad credentials', 2],
    ].sort(),
  );
  const uses = await service.database.query<{ client_id: string }>('select client_id from client_use');
  expect(uses.map((use) => use.client_id)).toEqual([clientId]);
});

function openStore() {
  const written: (readonly AuditEntry[])[] = [];
  const store = {
    isFailing: false,
    written,
    async append(auditEntries: readonly AuditEntry[]) {
      if (store.isFailing) throw new Fault('unavailable');
      written.push(auditEntries);
    },
  };
  return store;
}

const address = (raw: string) => parseIpAddress(raw) as IpAddress;
const unauthenticated = (raw: string) => ({ clientId: undefined, address: address(raw) });

test('denied access from one IPv6 /64 is one counter', async () => {
  const store = openStore();
  const refusals = openRefusedAccessLog(store, { ...systemClock, now: () => 0 });
  for (let host = 1; host <= 20; host += 1) {
    refusals.count(unauthenticated(`2001:db8:1:2::${host.toString(16)}`), 'bad token');
  }
  await refusals.stop();
  expect(store.written.flat()).toMatchObject([
    { actor: 'nobody', address: '2001:db8:1:2::/64', detail: { reason: 'bad token', count: 20 } },
  ]);
});

test('wrong credentials are one counter for each existing client and one for all unknown ones, from any address', async () => {
  const store = openStore();
  const refusals = openRefusedAccessLog(store, { ...systemClock, now: () => 0 });
  for (let at = 0; at < 1_000; at += 1) {
    const caller = unauthenticated(`10.0.${at >> 8}.${at & 255}`);
    refusals.count(caller, 'bad credentials');
    refusals.count({ ...caller, target: `shop ${at % 2}` }, 'bad credentials');
  }
  await refusals.stop();
  const logged = store.written.flat();
  expect(logged).toMatchObject([
    { actor: 'nobody', address: undefined, detail: { count: 1_000 } },
    { actor: 'nobody', object: 'shop 0', address: undefined, detail: { count: 500 } },
    { actor: 'nobody', object: 'shop 1', address: undefined, detail: { count: 500 } },
  ]);
  expect(logged[0]?.detail.addresses).toHaveLength(LIMITS.addressesLoggedMax);
});

test('denied access beyond refusalsCountedMax counters is counted as others, by reason', async () => {
  const store = openStore();
  const refusals = openRefusedAccessLog(store, { ...systemClock, now: () => 0 });
  for (let at = 0; at < LIMITS.refusalsCountedMax + 300; at += 1) {
    refusals.count(unauthenticated(`10.0.${at >> 8}.${at & 255}`), at % 2 === 0 ? 'bad token' : 'no token');
  }
  await refusals.stop();
  const auditEntries = store.written.flat();
  expect(auditEntries).toHaveLength(LIMITS.refusalsCountedMax + 2);
  expect(auditEntries.slice(-2)).toMatchObject([
    { actor: 'others', address: undefined, detail: { reason: 'bad token', count: 150 } },
    { actor: 'others', address: undefined, detail: { reason: 'no token', count: 150 } },
  ]);
});

test('throttled sign-ins of realms beyond refusalsCountedMax counters are counted together', async () => {
  const store = openStore();
  const refusals = openRefusedAccessLog(store, { ...systemClock, now: () => 0 });
  for (let at = 0; at < LIMITS.refusalsCountedMax + 300; at += 1)
    refusals.countThrottled(systemClock.mintId(), address('192.0.2.1'));
  await refusals.stop();
  const auditEntries = store.written.flat();
  expect(auditEntries).toHaveLength(LIMITS.refusalsCountedMax + 1);
  expect(auditEntries.every(({ action }) => action === 'sign-in.throttled')).toBe(true);
  expect(auditEntries.at(-1)).toMatchObject({ actor: 'others', detail: { count: 300 } });
  expect(auditEntries.at(-1)?.realm).toBeUndefined();
});

test('counters of denied access stay bounded while the log cannot be written, and no count is lost', async () => {
  const store = openStore();
  const sizes: number[] = [];
  let rounds = 0;
  const countRound = () => {
    for (let at = 0; at < LIMITS.refusalsCountedMax; at += 1) {
      refusals.count(unauthenticated(`10.${rounds}.${at >> 8}.${at & 255}`), 'bad token');
    }
    rounds += 1;
  };
  // Further access is denied during a failing write.
  const append = async (auditEntries: readonly AuditEntry[]) => {
    sizes.push(auditEntries.length);
    if (store.isFailing) countRound();
    await store.append(auditEntries);
  };
  const refusals = openRefusedAccessLog({ append: append }, { ...systemClock, now: () => 0 }, 5);
  store.isFailing = true;
  countRound();
  while (sizes.length < 4) await Bun.sleep(1);
  store.isFailing = false;
  await refusals.stop();
  expect(Math.max(...sizes)).toBe(LIMITS.refusalsCountedMax + 1);
  const counted = store.written.flat().map(({ actor, detail }) => ({ actor, ...detail })) as unknown as {
    readonly actor: string;
    readonly count: number;
  }[];
  expect(counted).toHaveLength(LIMITS.refusalsCountedMax + 1);
  expect(counted.find(({ actor }) => actor === 'others')?.count).toBe(
    (rounds - 1) * LIMITS.refusalsCountedMax,
  );
  expect(counted.filter(({ count }) => count === 1)).toHaveLength(LIMITS.refusalsCountedMax);
});

test('denied access is one entry per interval; counts that cannot be written are added to the next', async () => {
  const store = openStore();
  const intervalMs = 30;
  const refusals = openRefusedAccessLog(store, { ...systemClock, now: () => 0 }, intervalMs);
  const count = () => refusals.count(unauthenticated('192.0.2.1'), 'bad token');
  store.isFailing = true;
  for (let round = 0; round < 5; round += 1) count();
  await Bun.sleep(3 * intervalMs);
  expect(store.written).toEqual([]);
  store.isFailing = false;
  for (let round = 0; round < 5; round += 1) count();
  while (store.written.length === 0) await Bun.sleep(5);
  expect(store.written.flat()).toMatchObject([{ detail: { count: 10 } }]);
  await Bun.sleep(3 * intervalMs);
  await refusals.stop();
  expect(store.written).toHaveLength(1);
});

test('client usage is stored once per interval, retried after a failure, and only for own clients', async () => {
  const stored: (readonly string[])[] = [];
  let isFailing = true;
  const store = {
    async recordClientUsage(clientIds: readonly string[]) {
      if (isFailing) throw new Fault('unavailable');
      stored.push(clientIds);
    },
  };
  const intervalMs = 20;
  const uses = openClientUsage(store, { now: () => 0 }, intervalMs);
  for (const clientId of ['shop', 'pos', 'shop', 'provider:abc']) uses.record(clientId);
  await Bun.sleep(3 * intervalMs);
  isFailing = false;
  while (stored.length === 0) await Bun.sleep(5);
  expect(stored.map((each) => [...each].sort())).toEqual([['pos', 'shop']]);
  uses.record('shop');
  while (stored.length === 1) await Bun.sleep(5);
  expect(stored[1]).toEqual(['shop']);
  uses.record('pos');
  await uses.stop();
  expect(stored[2]).toEqual(['pos']);
  await uses.stop();
  expect(stored).toHaveLength(3);
});

test('an unexpected error while storing client usage is rethrown', async () => {
  const bug = new Error('a bug');
  const uses = openClientUsage({ recordClientUsage: () => Promise.reject(bug) }, { now: () => 0 });
  uses.record('shop');
  expect(await uses.stop().catch((error) => error)).toBe(bug);
});
