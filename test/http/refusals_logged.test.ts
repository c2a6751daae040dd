import { expect, test } from 'bun:test';
import { openRefusedAccessLog } from '../../src/audit/refused_access_log.ts';
import { openClientUsage } from '../../src/auth/tokens/client_usage.ts';
import type { AuditEntry } from '../../src/domain/audit_entry.ts';
import { Fault } from '../../src/domain/fault.ts';
import type { Uuid } from '../../src/domain/id.ts';
import { type IpAddress, parseIpAddress } from '../../src/domain/ip_address.ts';
import { LIMITS } from '../../src/domain/limits.ts';
import { systemClock } from '../../src/platform/clock.ts';
import { createFixture, oidcPath, passwordPath, startService } from '../support/service.ts';

const OTHER = '01900000-0000-7000-8000-000000000000' as Uuid;

interface Row {
  readonly actor: string;
  readonly address: string | null;
  readonly detail: string;
}

test('refused access is counted by client or address and reason, and logged when the service ends at the latest', async () => {
  const service = await startService({ badTokenRate: 'off' });
  const planted = await createFixture(service.db);
  const path = oidcPath(planted);
  const { clientId, secret } = await service.client('oidc-profile-infos:read changes:read', new Set([OTHER]));
  const form = { grant_type: 'client_credentials', client_id: clientId, client_secret: secret };
  const { access_token: token } = (await (await service.requestToken(form)).json()) as {
    access_token: string;
  };

  await service.get(path);
  for (let count = 0; count < 3; count += 1) await service.get(path, 'a.b.c');
  for (let count = 0; count < 2; count += 1) await service.get(passwordPath(planted), token);
  for (let count = 0; count < 4; count += 1) await service.get(path, token);
  await service.get(`/v2/authentication-realms/${planted.realm}/changes`, token);
  for (const wrong of ['x', 'y']) await service.requestToken({ ...form, client_secret: wrong });
  await service.requestToken({ ...form, client_id: 'nobody' });
  // None of these is refused access.
  await service.get('/nowhere');
  await service.get('/healthz');
  await service.requestToken({ ...form, grant_type: 'password' });
  await service.stop();

  const rows = await service.database.query<Row>(
    `select actor, address, detail from act where action = 'access.refused' order by seq`,
  );
  const told = rows.map(({ actor, address, detail }) => {
    const { reason, count, since } = JSON.parse(detail);
    expect(new Date(since).toISOString()).toBe(since);
    return [actor, address, reason, count];
  });
  expect(told.sort()).toEqual(
    [
      ['nobody', '127.0.0.1', 'no token', 1],
      ['nobody', '127.0.0.1', 'bad token', 3],
      [clientId, null, 'insufficient scope', 2],
      // The last of them at the feed.
      [clientId, null, 'realm outside the list', 5],
      ['nobody', '127.0.0.1', 'bad credentials', 3],
    ].sort(),
  );
  const [use] = await service.database.query<{ client_id: string }>('select client_id from client_use');
  expect(use?.client_id).toBe(clientId);
});

function openStore() {
  const written: (readonly AuditEntry[])[] = [];
  const store = {
    isShut: false,
    written,
    async append(auditEntries: readonly AuditEntry[]) {
      if (store.isShut) throw new Fault('unavailable');
      written.push(auditEntries);
    },
  };
  return store;
}

const address = (raw: string) => parseIpAddress(raw) as IpAddress;
const stranger = (raw: string) => ({ clientId: undefined, address: address(raw) });

test('who tries from a whole network of IPv6 is one', async () => {
  const store = openStore();
  const refusals = openRefusedAccessLog(store, { ...systemClock, now: () => 0 });
  for (let host = 1; host <= 20; host += 1) {
    refusals.count(stranger(`2001:db8:1:2::${host.toString(16)}`), 'bad token');
  }
  await refusals.stop();
  expect(store.written.flat()).toMatchObject([
    { actor: 'nobody', address: '2001:db8:1:2::/64', detail: { reason: 'bad token', count: 20 } },
  ]);
});

test('counters are bounded: who comes beyond is counted with the others, by reason', async () => {
  const store = openStore();
  const refusals = openRefusedAccessLog(store, { ...systemClock, now: () => 0 });
  for (let at = 0; at < LIMITS.refusalsCountedMax + 300; at += 1) {
    refusals.count(stranger(`10.0.${at >> 8}.${at & 255}`), at % 2 === 0 ? 'bad token' : 'no token');
  }
  await refusals.stop();
  const auditEntries = store.written.flat();
  expect(auditEntries).toHaveLength(LIMITS.refusalsCountedMax + 2);
  expect(auditEntries.slice(-2)).toMatchObject([
    { actor: 'others', address: undefined, detail: { reason: 'bad token', count: 150 } },
    { actor: 'others', address: undefined, detail: { reason: 'no token', count: 150 } },
  ]);
});

test('they are bounded as well while nothing can be written, however long, and nothing is lost', async () => {
  const store = openStore();
  const sizes: number[] = [];
  let rounds = 0;
  const countRound = () => {
    for (let at = 0; at < LIMITS.refusalsCountedMax; at += 1) {
      refusals.count(stranger(`10.${rounds}.${at >> 8}.${at & 255}`), 'bad token');
    }
    rounds += 1;
  };
  // A failure takes its time, and others are refused meanwhile.
  const note = async (auditEntries: readonly AuditEntry[]) => {
    sizes.push(auditEntries.length);
    if (store.isShut) countRound();
    await store.append(auditEntries);
  };
  const refusals = openRefusedAccessLog({ append: note }, { ...systemClock, now: () => 0 }, 5);
  store.isShut = true;
  countRound();
  while (sizes.length < 4) await Bun.sleep(1);
  store.isShut = false;
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

test('one entry a minute, however often; what cannot be written is counted on', async () => {
  const store = openStore();
  const every = 30;
  const refusals = openRefusedAccessLog(store, { ...systemClock, now: () => 0 }, every);
  const count = () => refusals.count(stranger('192.0.2.1'), 'bad token');
  store.isShut = true;
  for (let round = 0; round < 5; round += 1) count();
  await Bun.sleep(3 * every);
  expect(store.written).toEqual([]);
  store.isShut = false;
  for (let round = 0; round < 5; round += 1) count();
  while (store.written.length === 0) await Bun.sleep(5);
  expect(store.written.flat()).toMatchObject([{ detail: { count: 10 } }]);
  await Bun.sleep(3 * every);
  await refusals.stop();
  expect(store.written).toHaveLength(1);
});

test('uses are kept once in a while, again where that failed, and never of who is no client of ours', async () => {
  const kept: (readonly string[])[] = [];
  let isShut = true;
  const store = {
    async recordClientUsage(clientIds: readonly string[]) {
      if (isShut) throw new Fault('unavailable');
      kept.push(clientIds);
    },
  };
  const every = 20;
  const uses = openClientUsage(store, { now: () => 0 }, every);
  for (const clientId of ['shop', 'till', 'shop', 'provider:abc']) uses.record(clientId);
  await Bun.sleep(3 * every);
  isShut = false;
  while (kept.length === 0) await Bun.sleep(5);
  expect(kept.map((each) => [...each].sort())).toEqual([['shop', 'till']]);
  uses.record('shop');
  while (kept.length === 1) await Bun.sleep(5);
  expect(kept[1]).toEqual(['shop']);
  uses.record('till');
  await uses.stop();
  expect(kept[2]).toEqual(['till']);
  await uses.stop();
  expect(kept).toHaveLength(3);
});

test('a bug in keeping uses is no trouble of the database, and is not passed over', async () => {
  const bug = new Error('a bug');
  const uses = openClientUsage({ recordClientUsage: () => Promise.reject(bug) }, { now: () => 0 });
  uses.record('shop');
  expect(await uses.stop().catch((error) => error)).toBe(bug);
});
