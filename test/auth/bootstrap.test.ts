import { afterAll, beforeAll, describe, expect, test } from 'bun:test';
import { parseBootstrapClient } from '../../src/auth/clients/bootstrap.ts';
import { changeClient, ensureClient, isSecretOf } from '../../src/auth/clients/clients.ts';
import { Refusal } from '../../src/domain/fault.ts';
import { type Service, startService } from '../support/service.ts';

const REALM = '0193c1d4-5a2e-7c11-9d0e-6b1f4a7e2c90';
const OTHER = '0193c1d4-5a2e-7c11-9d0e-6b1f4a7e2c91';
const SECRET = 's'.repeat(32);
const BOOT = { client_id: 'boot', client_secret: SECRET, name: 'Boot', scope: 'users:read realms:read' };

let service: Service;
beforeAll(async () => {
  service = await startService();
});
afterAll(() => service.stop());

const ensure = async (described: object) =>
  ensureClient(
    service.db.engine.access,
    parseBootstrapClient('boot.json', JSON.stringify(described)),
    service.clock,
  );
const found = async (clientId = 'boot') => {
  const client = await service.db.engine.access.client(clientId);
  if (!client) throw new Error(`there is no client ${clientId}`);
  return client;
};

test('the client is made as the file describes it, and nothing is written where it is so already', async () => {
  await ensure({ ...BOOT, realms: [REALM, OTHER] });
  const made = await found();
  expect([made.name, [...made.scopes], made.realms]).toEqual([
    'Boot',
    ['users:read', 'realms:read'],
    new Set([REALM, OTHER] as never[]),
  ]);
  expect(isSecretOf(made, SECRET, service.clock.now())).toBe(true);
  await ensure({ ...BOOT, scope: 'realms:read users:read', realms: [OTHER, REALM] });
  expect(await found()).toEqual(made);
});

test.each([
  ['name', { name: 'Boots' }],
  ['scope', { scope: 'users:read' }],
  ['client_secret', { client_secret: 't'.repeat(255) }],
  ['realms', { realms: [REALM] }],
  ['realms, all of them', { realms: '*' }],
  ['realms, which are all unless said', {}],
])('what it says of %s is what the client then has', async (_, change) => {
  const own = { ...BOOT, client_id: 'changed' };
  await ensure({ ...own, realms: [REALM, OTHER] });
  const wanted = {
    ...own,
    ...('name' in change || 'scope' in change ? { realms: [REALM, OTHER] } : {}),
    ...change,
  };
  await ensure(wanted);
  const { name, scopes, realms, ...client } = await found('changed');
  expect([name, [...scopes].join(' '), realms]).toEqual([
    wanted.name,
    wanted.scope,
    'realms' in wanted && wanted.realms !== '*' ? (new Set(wanted.realms) as never) : '*',
  ]);
  const { client_secret: secret } = wanted;
  expect(isSecretOf({ name, scopes, realms, ...client }, secret, service.clock.now())).toBe(true);
});

test('one that was disabled stays disabled', async () => {
  await ensure({ ...BOOT, client_id: 'off' });
  await changeClient(service.db.engine.access, 'off', { disabledAt: 1 }, service.clock);
  await ensure({ ...BOOT, client_id: 'off', name: 'Off' });
  expect(await found('off')).toMatchObject({ name: 'Off', disabledAt: 1 });
});

describe('refused with a sentence:', () => {
  test.each<[string, object, string]>([
    ['an identifier of other characters', { client_id: 'bo/ot' }, 'client_id must be 1 to 64 letters'],
    ['an identifier that is too long', { client_id: 'b'.repeat(65) }, 'client_id must be 1 to 64 letters'],
    ['a secret that is too short', { client_secret: 's'.repeat(31) }, 'client_secret must have at least 32'],
    ['a secret that is too long', { client_secret: 's'.repeat(256) }, 'client_secret Too big'],
    ['no name', { name: '' }, 'name '],
    ['a scope that does not exist', { scope: 'users:rule' }, 'scope names a scope that does not exist'],
    ['no scope', { scope: '' }, 'scope'],
    ['what is no realm', { realms: [REALM, 'shop'] }, 'realms contains an invalid realm ID'],
    ['a realm by itself', { realms: REALM }, 'realms '],
    [
      'administration of one realm',
      { scope: 'admin', realms: [REALM] },
      'the scope admin reaches every realm',
    ],
    ['what it does not know', { scopes: 'users:read' }, 'Unrecognized key'],
  ])('%s', async (_, change, sentence) => {
    const refused = await ensure({ ...BOOT, client_id: 'refused', ...change }).catch((error) => error);
    expect(refused).toBeInstanceOf(Refusal);
    expect(refused.message).toContain(sentence);
    expect(await service.db.engine.access.client('refused')).toBeUndefined();
  });
});
