import { expect, test } from 'bun:test';
import { openCallerAddress } from '../../src/http/server/caller_address.ts';
import { parseNetwork } from '../../src/model/ip_address.ts';
import { LIMITS } from '../../src/model/limits.ts';
import { recordChecks, runCheck } from '../../src/ops/doctor/inspection.ts';
import { type Engine, inspectEngine } from '../../src/ops/store/open.ts';
import { testInProcess } from '../support/program_service.ts';
import { createFixture, oidcPath, startService } from '../support/service.ts';

const PROXY = '10.0.0.1';
const networks = ['10.0.0.0/8', '2001:db8:aaaa::/48'].map((raw) => {
  const network = parseNetwork(raw);
  if (!network) throw new Error(`no network ${raw}`);
  return network;
});
const callerAddress = openCallerAddress(networks);

function headersOf(lines: readonly (readonly [string, string])[]): Headers {
  const headers = new Headers();
  for (const [name, value] of lines) headers.append(name, value);
  return headers;
}

const rows: readonly (readonly [string, string])[] = [
  ['192.0.2.7', '192.0.2.7'],
  ['192.0.2.7:4711', '192.0.2.7'],
  ['2001:db8::7', '2001:db8::7'],
  ['[2001:db8::7]:4711', '2001:db8::7'],
  ['::ffff:192.0.2.7', '192.0.2.7'],
  // Entries left of the first untrusted hop may be forged.
  ['198.51.100.1, 192.0.2.7', '192.0.2.7'],
  ['forged, \t192.0.2.7', '192.0.2.7'],
  ['192.0.2.7, 10.0.0.2', '192.0.2.7'],
  ['198.51.100.1, 192.0.2.7, 2001:db8:aaaa::2, 10.0.0.2', '192.0.2.7'],
  // Only trusted proxies: the first of them.
  ['10.0.0.3, 10.0.0.2', '10.0.0.3'],
  ['192.0.2.7, nonsense', PROXY],
  ['192.0.2.7, nonsense, 10.0.0.2', PROXY],
  ['192.0.2.7,', PROXY],
  ['', PROXY],
  [',', PROXY],
  ['192.0.2.7/32', PROXY],
  ['[192.0.2.7', PROXY],
  ['192.0.2.7:port', PROXY],
  ['shop.example', PROXY],
];

test.each(rows)('X-Forwarded-For %j names the caller %s', (value, address) => {
  const headers = headersOf([['X-Forwarded-For', value]]);
  expect(callerAddress(headers, PROXY)).toBe(address as never);
  expect(callerAddress(headers, '203.0.113.9')).toBe('203.0.113.9' as never);
  expect(openCallerAddress([])(headers, PROXY)).toBe(PROXY as never);
});

test('a Forwarded header has no effect on the caller address', () => {
  for (const forged of ['for=198.51.100.1', '198.51.100.1', 'for=192.0.2.7', 'nonsense', '']) {
    const both = new Headers({ 'X-Forwarded-For': '192.0.2.7', Forwarded: forged });
    expect(callerAddress(both, PROXY)).toBe('192.0.2.7' as never);
    expect(callerAddress(new Headers({ Forwarded: forged }), PROXY)).toBe(PROXY as never);
  }
});

test('several X-Forwarded-For lines are one list', () => {
  const headers = headersOf([
    ['X-Forwarded-For', '198.51.100.1'],
    ['X-Forwarded-For', '192.0.2.7'],
  ]);
  expect(callerAddress(headers, PROXY)).toBe('192.0.2.7' as never);
});

test('a caller behind more than forwardedHopsMax proxies is not found', () => {
  const callerBehind = (hops: number) =>
    callerAddress(
      headersOf([['X-Forwarded-For', ['192.0.2.7', ...new Array(hops).fill('10.0.0.2')].join()]]),
      PROXY,
    );
  expect(callerBehind(LIMITS.forwardedHopsMax - 1)).toBe('192.0.2.7' as never);
  expect(callerBehind(LIMITS.forwardedHopsMax)).toBe(PROXY as never);
});

test('without a header the caller address is that of the connection, normalized', () => {
  const none = new Headers();
  expect(callerAddress(none, '::ffff:192.0.2.7')).toBe('192.0.2.7' as never);
  expect(callerAddress(none, 'fe80::7%eth0')).toBe('fe80::7' as never);
  expect(callerAddress(none, PROXY)).toBe(PROXY as never);
  expect(callerAddress(none, undefined)).toBeUndefined();
});

const recordedAddresses: (string | undefined)[] = [];

function recordingAddresses(engine: Engine): Engine {
  const { commit } = engine.records;
  const recordingCommit: typeof commit = (writes, answer) => {
    for (const write of writes) if (write.op === 'remove') recordedAddresses.push(write.origin.address);
    return commit(writes, answer);
  };
  return { ...engine, records: { ...engine.records, commit: recordingCommit } };
}

test('forged tokens of one client of a named proxy keep no other client from a new token', async () => {
  const service = await startService({ trustedProxies: '127.0.0.0/8', badTokenRate: '100/86400' });
  const client = await service.client('users:read');
  const from = (address: string) => ({ 'X-Forwarded-For': address });
  for (let count = 0; count <= 100; count += 1)
    await service.get('/v2/authentication-realms', `forged ${count}`, from('192.0.2.7'));
  expect((await service.requestGrant(client, from('192.0.2.7'))).status).toBe(429);
  expect((await service.requestGrant(client, from('192.0.2.8'))).status).toBe(200);
});

test('a request from a trusted proxy without a readable header is logged once a minute, and doctor names the proxy', async () => {
  const service = await startService({ trustedProxies: '127.0.0.0/8', addressRate: '100/60' });
  const logged = () => service.log.filter(({ event }) => event === 'client_address_unknown');
  const proxies = async () => {
    const database = await inspectEngine(service.settings.database);
    try {
      const checks = recordChecks(database).filter(({ name }) => name === 'proxies');
      return (await Promise.all(checks.map(runCheck))).flatMap(({ notes }) => notes.map(({ says }) => says));
    } finally {
      await database.close();
    }
  };
  await service.get('/nowhere', undefined, { 'X-Forwarded-For': '192.0.2.7' });
  expect([logged().length, await proxies()]).toEqual([0, []]);
  for (const header of [{}, { 'X-Forwarded-For': 'unknown' }, { Forwarded: 'for=192.0.2.7' }])
    await service.get('/nowhere', undefined, header);
  expect(logged()).toHaveLength(1);
  service.clock.advance(60_000);
  await service.get('/nowhere');
  expect(logged()).toHaveLength(2);
  await service.stop();
  expect(await proxies()).toEqual([
    expect.stringMatching(/^requests from the trusted proxy 127\.0\.0\.1 .* last at \d{4}-.*Z/),
  ]);
});

testInProcess('a write records the caller address, through a trusted proxy and without one', async () => {
  const service = await startService({ trustedProxies: '127.0.0.0/8' }, recordingAddresses);
  const fixture = await createFixture(service.db);
  const token = await service.token('oidc-profile-infos:write');
  const path = oidcPath(fixture);
  const headers = { 'If-Match': '"nothing"' };
  expect((await service.del(path, token, headers)).status).toBe(412);
  expect((await service.del(path, token, { ...headers, 'X-Forwarded-For': '192.0.2.7' })).status).toBe(412);
  expect((await service.del(path, token, { ...headers, Forwarded: 'for="[2001:db8::7]"' })).status).toBe(412);
  expect(recordedAddresses).toEqual(['127.0.0.1', '192.0.2.7', '127.0.0.1']);
});
