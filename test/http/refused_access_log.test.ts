import { expect, test } from 'bun:test';
import { openCounterLog } from '../../src/log/counters.ts';
import { openRefusedAccessLog } from '../../src/log/refused_access.ts';
import type { Uuid } from '../../src/model/id.ts';
import { type IpAddress, parseIpAddress } from '../../src/model/ip_address.ts';
import { LIMITS } from '../../src/model/limits.ts';
import type { AuditEntry } from '../../src/model/log/audit_entry.ts';
import { systemClock } from '../../src/ops/process/clock.ts';
import { createFixture, oidcPath, passwordPath, type Service, startService } from '../support/service.ts';
import { createSettingsRealms, createStorefront } from '../support/settings_realms.ts';

const OTHER = '01900000-0000-7000-8000-000000000000' as Uuid;

interface Row {
  readonly actor: string;
  readonly object: string | null;
  readonly address: string | null;
  readonly detail: string;
}

function refusalsOf({ database }: Service): Promise<readonly Row[]> {
  return database.query<Row>(
    `select actor, object, address, detail from act where action = 'access.refused' order by seq`,
  );
}

test('denied access is counted by client or address and reason: the first is logged at once, the rest at the latest when the service stops', async () => {
  const service = await startService({ badTokenRate: 'off' });
  const fixture = await createFixture(service.db);
  const path = oidcPath(fixture);
  const { clientId, secret } = await service.client(
    'oidc-profile-infos:read changes:read settings:write',
    new Set([OTHER]),
  );
  const form = { grant_type: 'client_credentials', client_id: clientId, client_secret: secret };
  const token = await service.grant({ clientId, secret });

  await service.get(path);
  expect(await refusalsOf(service)).toHaveLength(1);
  for (let count = 0; count < 3; count += 1) await service.get(path, 'a.b.c');
  for (let count = 0; count < 2; count += 1) await service.get(passwordPath(fixture), token);
  for (let count = 0; count < 4; count += 1) await service.get(path, token);
  await service.get(`/v2/authentication-realms/${fixture.realm}/changes`, token);
  const mapping = { data: { type: 'merchant-realm-mappings', prefix: 'shop' } };
  // There is no realm of merchants yet, so that no access to one is denied.
  await service.put(`/v2/merchant-realm-mappings/${OTHER}`, token, mapping);
  const { merchants } = await createSettingsRealms(service.db);
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

  const rows = await refusalsOf(service);
  const counts = new Map<string, number>();
  for (const { actor, object, address, detail } of rows) {
    const { reason, count = 1 } = JSON.parse(detail);
    const key = JSON.stringify([actor, object, address, reason]);
    counts.set(key, (counts.get(key) ?? 0) + count);
  }
  expect([...counts].map(([key, count]) => [...JSON.parse(key), count]).sort()).toEqual(
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

/** Refusals that are written to a list. */
function openRefusals() {
  const written: AuditEntry[] = [];
  const store = {
    append: async (entries: readonly AuditEntry[]) => void written.push(...entries),
    recordClientUsage: async () => undefined,
  };
  const log = openCounterLog(store, systemClock);
  return { written, stop: log.stop, ...openRefusedAccessLog(log, () => 0) };
}

const address = (raw: string) => parseIpAddress(raw) as IpAddress;
const unauthenticated = (raw: string) => ({ clientId: undefined, address: address(raw) });

test('denied access from one IPv6 /64 is one counter', async () => {
  const { written, count, stop } = openRefusals();
  for (let host = 1; host <= 20; host += 1)
    count(unauthenticated(`2001:db8:1:2::${host.toString(16)}`), 'bad token');
  await stop();
  expect(written).toMatchObject([
    { actor: 'nobody', address: '2001:db8:1:2::/64', detail: { reason: 'bad token' } },
    { actor: 'nobody', address: '2001:db8:1:2::/64', detail: { reason: 'bad token', count: 19 } },
  ]);
});

test('wrong credentials are one counter for each existing client and one for all unknown ones, from any address', async () => {
  const { written, count, stop } = openRefusals();
  for (let at = 0; at < 1_000; at += 1) {
    const caller = unauthenticated(`10.0.${at >> 8}.${at & 255}`);
    count(caller, 'bad credentials');
    count({ ...caller, target: `shop ${at % 2}` }, 'bad credentials');
  }
  await stop();
  expect(written.map(({ object, detail }) => [object, detail.count])).toEqual([
    [undefined, undefined],
    ['shop 0', undefined],
    ['shop 1', undefined],
    [undefined, 999],
    ['shop 0', 499],
    ['shop 1', 499],
  ]);
  expect(written[3]?.detail.addresses).toHaveLength(LIMITS.addressesLoggedMax);
});

test('denied access beyond refusalsCountedMax counters is counted as others, by reason', async () => {
  const { written, count, stop } = openRefusals();
  for (let at = 0; at < LIMITS.refusalsCountedMax + 300; at += 1)
    count(unauthenticated(`10.0.${at >> 8}.${at & 255}`), at % 2 === 0 ? 'bad token' : 'no token');
  await stop();
  expect(written).toHaveLength(LIMITS.refusalsCountedMax + 4);
  expect(written.slice(-2)).toMatchObject([
    { actor: 'others', address: undefined, detail: { reason: 'bad token', count: 149 } },
    { actor: 'others', address: undefined, detail: { reason: 'no token', count: 149 } },
  ]);
});

test('throttled sign-ins of realms beyond refusalsCountedMax counters are counted together', async () => {
  const { written, countThrottled, stop } = openRefusals();
  for (let at = 0; at < LIMITS.refusalsCountedMax + 300; at += 1)
    countThrottled(systemClock.mintId(), address('192.0.2.1'));
  await stop();
  expect(written).toHaveLength(LIMITS.refusalsCountedMax + 2);
  expect(written.every(({ action }) => action === 'sign-in.throttled')).toBe(true);
  expect(written.at(-1)).toMatchObject({ actor: 'others', detail: { count: 299 } });
  expect(written.at(-1)?.realm).toBeUndefined();
});
