import { describe, expect, test } from 'bun:test';
import { parseBootstrapClient } from '../../src/access/clients/bootstrap.ts';
import { changeClient, deleteClient, ensureClient, isSecretOf } from '../../src/access/clients/clients.ts';
import { Refusal } from '../../src/model/fault.ts';
import { describeImplicit } from '../../src/model/implicit_rights.ts';
import { startService } from '../support/service.ts';

const REALM = '0193c1d4-5a2e-7c11-9d0e-6b1f4a7e2c90';
const OTHER = '0193c1d4-5a2e-7c11-9d0e-6b1f4a7e2c91';
const SECRET = 's'.repeat(32);
const BOOT = { client_id: 'boot', client_secret: SECRET, name: 'Boot', scope: 'users:read realms:read' };

const service = await startService();

const ensure = async (description: object) =>
  ensureClient(
    service.db.engine.access,
    parseBootstrapClient('boot.json', JSON.stringify(description)),
    service.clock,
  );
const storedClient = async (clientId = 'boot') => {
  const client = await service.db.engine.access.client(clientId);
  if (!client) throw new Error(`no client ${clientId}`);
  return client;
};

test('a bootstrap file creates its client, and changes nothing for an equal one', async () => {
  await ensure({ ...BOOT, realms: [REALM, OTHER] });
  const created = await storedClient();
  expect([created.name, [...created.scopes], created.realms]).toEqual([
    'Boot',
    ['users:read', 'realms:read'],
    new Set([REALM, OTHER] as never[]),
  ]);
  expect(isSecretOf(created, SECRET, service.clock.now())).toBe(true);
  await ensure({ ...BOOT, scope: 'realms:read users:read', realms: [OTHER, REALM] });
  expect(await storedClient()).toEqual(created);
});

test.each([
  ['name', { name: 'Boots' }],
  ['scope', { scope: 'users:read' }],
  ['client_secret', { client_secret: 't'.repeat(255) }],
  ['realms', { realms: [REALM] }],
  ['realms, set to all', { realms: '*' }],
  ['realms, absent for all', {}],
  ['end_user_address', { scope: 'sign-in', end_user_address: 'header' }],
])('a changed bootstrap file updates the client: %s', async (_, change) => {
  const base = { ...BOOT, client_id: 'changed' };
  await ensure({ ...base, realms: [REALM, OTHER] });
  const description = {
    ...base,
    ...('name' in change || 'scope' in change ? { realms: [REALM, OTHER] } : {}),
    ...change,
  };
  await ensure(description);
  const { name, scopes, realms, ...client } = await storedClient('changed');
  expect(client.endUserAddress as string | undefined).toBe(
    'end_user_address' in change ? change.end_user_address : undefined,
  );
  expect([name, [...scopes].join(' '), realms]).toEqual([
    description.name,
    description.scope,
    'realms' in description && description.realms !== '*' ? (new Set(description.realms) as never) : '*',
  ]);
  const { client_secret: secret } = description;
  expect(isSecretOf({ name, scopes, realms, ...client }, secret, service.clock.now())).toBe(true);
});

test('a bootstrap file names what the ID of its client alone gives, and takes it away', async () => {
  const base = { ...BOOT, client_id: 'shop' };
  const storefronts = ['192.0.2.0/28', '2001:db8::1'];
  const implicit = { implicit_realms: [REALM], rate_per_address: '60/60', storefronts };
  await ensure({ ...base, implicit_scope: 'settings:read sign-in', ...implicit });
  const created = await storedClient('shop');
  expect(describeImplicit(created) as object).toEqual({
    implicit_scopes: ['settings:read', 'sign-in'],
    ...implicit,
  });
  await ensure({ ...base, implicit_scope: 'settings:read sign-in', ...implicit });
  expect(await storedClient('shop')).toEqual(created);
  await ensure(base);
  expect(describeImplicit(await storedClient('shop'))).toEqual(describeImplicit({}));
});

test('a bootstrap file does not enable a disabled client', async () => {
  await ensure({ ...BOOT, client_id: 'off' });
  await changeClient(service.db.engine.access, 'off', { disabledAt: 1 }, service.clock);
  await ensure({ ...BOOT, client_id: 'off', name: 'Off' });
  expect(await storedClient('off')).toMatchObject({ name: 'Off', disabledAt: 1 });
});

test('a bootstrap file of a client that was changed in the database is refused with the command to delete it', async () => {
  await ensure({ ...BOOT, client_id: 'forged' });
  await service.database.tamper(`update client set scopes = 'admin' where client_id = 'forged'`);
  const refusal = await ensure({ ...BOOT, client_id: 'forged' }).catch((error: unknown) => error);
  expect(refusal).toBeInstanceOf(Refusal);
  expect(String(refusal)).toContain('"authrealm client delete forged"');
  await deleteClient(service.db.engine.access, 'forged', undefined, service.clock);
  await ensure({ ...BOOT, client_id: 'forged' });
  expect((await storedClient('forged')).isForged).toBeUndefined();
});

describe('invalid bootstrap files', () => {
  test.each<[string, object, string]>([
    ['a client ID with an invalid character', { client_id: 'bo/ot' }, 'client_id must be 1 to 64 letters'],
    ['a client ID that is too long', { client_id: 'b'.repeat(65) }, 'client_id must be 1 to 64 letters'],
    ['a secret that is too short', { client_secret: 's'.repeat(31) }, 'client_secret must have at least 32'],
    ['a secret that is too long', { client_secret: 's'.repeat(256) }, 'client_secret Too big'],
    ['no name', { name: '' }, 'name '],
    ['an unknown scope', { scope: 'users:rule' }, 'scope names a scope that does not exist'],
    ['no scope', { scope: '' }, 'scope'],
    ['an invalid realm ID', { realms: [REALM, 'shop'] }, 'realms must be * or a list of realm IDs'],
    ['a realm outside a list', { realms: REALM }, 'realms '],
    [
      'the scope admin for one realm',
      { scope: 'admin', realms: [REALM] },
      'the scope admin reaches every realm',
    ],
    [
      'an unknown scope of the ID alone',
      { implicit_scope: 'x' },
      'implicit_scope names a scope that does not',
    ],
    ['users:read for the ID alone', { implicit_scope: 'users:read' }, 'the ID alone gives at most'],
    ['the ID alone without a rate', { implicit_scope: 'sign-in' }, 'the ID alone needs a rate per address'],
    [
      'the ID alone in all realms',
      { implicit_scope: 'sign-in', rate_per_address: '60/60' },
      'the ID alone needs named realms',
    ],
    ['a rate that is none', { rate_per_address: '60' }, 'rate_per_address must be a rate such as 60/60'],
    ['a storefront of all addresses', { storefronts: ['::/0'] }, 'storefronts.0 is no network'],
    [
      'a storefront of 33 networks',
      { storefronts: Array.from({ length: 33 }, (_, at) => `192.0.2.${at}`) },
      'storefronts has more than 32 networks',
    ],
    ['an unknown member', { scopes: 'users:read' }, 'Unrecognized key'],
  ])('a bootstrap file with %s is refused', async (_, change, message) => {
    const refusal = await ensure({ ...BOOT, client_id: 'refused', ...change }).catch((error) => error);
    expect(refusal).toBeInstanceOf(Refusal);
    expect(refusal.message).toContain(message);
    expect(await service.db.engine.access.client('refused')).toBeUndefined();
  });
});
