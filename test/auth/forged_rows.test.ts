import { afterEach, beforeEach, expect, test } from 'bun:test';
import { changeClient, createClient, digestSecret } from '../../src/auth/clients/clients.ts';
import { mintSigningKey } from '../../src/auth/keys/signing.ts';
import { digestLinkCode } from '../../src/auth/sessions/console_links.ts';
import { Fault } from '../../src/domain/fault.ts';
import { systemClock } from '../../src/platform/clock.ts';
import { createLink, postConsoleToken } from '../support/console_sign_in.ts';
import { createFixture, type Service, startService } from '../support/service.ts';

/** Rows of clients, signing keys and console links that were written without the service, by a holder of the database file. */

let service: Service;

beforeEach(async () => {
  service = await startService();
});

afterEach(() => service.stop());

const touch = () => service.database.tamper('update instance set access_version = access_version + 1');

async function issue(
  scopes: readonly string[],
  realms: '*' | ReadonlySet<never> | ReadonlySet<string> = '*',
) {
  const rights = { scopes: new Set(scopes), realms } as Parameters<typeof createClient>[2];
  return createClient(service.db.engine.access, 'client', rights, systemClock);
}

/** The status of a token request. */
async function statusOf(clientId: string, secret: string): Promise<number> {
  const { status } = await fetch(`${service.url}/oauth/access_token`, {
    method: 'POST',
    body: new URLSearchParams({
      grant_type: 'client_credentials',
      client_id: clientId,
      client_secret: secret,
    }),
  });
  return status;
}

const EDITS: readonly (readonly [name: string, sql: string])[] = [
  ['raised scopes', `update client set scopes = 'admin' where client_id = ?`],
  ['all realms', 'update client set all_realms = 1 - all_realms where client_id = ?'],
  [
    'another secret',
    `update client set secret_digest = (select sealed from keyring limit 1) where client_id = ?`,
  ],
  ['a longer overlap', 'update client set previous_expires_at = 99999999999999 where client_id = ?'],
  ['no code', 'update client set mac = null where client_id = ?'],
  [
    'the code of another client',
    `update client set mac = (select max(mac) from client where name = 'other') where client_id = ?`,
  ],
];

test.each(EDITS)('a client that got %s in the database gets no token', async (_, sql) => {
  const { client, secret } = await issue(['realms:read']);
  await createClient(
    service.db.engine.access,
    'other',
    { scopes: new Set(['realms:read']), realms: '*' } as Parameters<typeof createClient>[2],
    systemClock,
  );
  expect(await statusOf(client.clientId, secret)).toBe(200);
  const before = service.db.engine.access;
  await service.database.tamper(sql, client.clientId);
  await touch();
  service.clock.advance(1_000);
  expect(await statusOf(client.clientId, secret)).toBe(401);
  expect((await before.client(client.clientId))?.isForged).toBe(true);
});

test('a forged client cannot be changed, which would sign its row, and can be deleted', async () => {
  const { client } = await issue(['realms:read']);
  await service.database.tamper(`update client set scopes = 'admin' where client_id = ?`, client.clientId);
  const { access } = service.db.engine;
  const changed = await changeClient(access, client.clientId, { name: 'new' }, systemClock).catch(
    (error: unknown) => error,
  );
  expect([changed instanceof Fault, (changed as Fault).code]).toEqual([true, 'conflict']);
  expect((await access.client(client.clientId))?.name).toBe('client');
});

test('an inserted client gets no token', async () => {
  const { client } = await issue(['realms:read']);
  await service.database.tamper(
    `insert into client (client_id, name, scopes, all_realms, secret_digest, created_at, updated_at, revision)
     select 'intruder', name, 'admin', 1, secret_digest, created_at, updated_at, revision from client where client_id = ?`,
    client.clientId,
  );
  await touch();
  service.clock.advance(1_000);
  expect([digestSecret('x').length, await statusOf('intruder', 'x')]).toEqual([32, 401]);
  expect((await service.db.engine.access.client('intruder'))?.isForged).toBe(true);
});

test('a realm that was inserted for a client is not honoured, and its other realms are', async () => {
  const { realm } = await createFixture(service.db);
  const other = await createFixture(service.db);
  const { client } = await issue(['realms:read'], new Set([realm]));
  await service.database.tamper(
    `insert into client_realm (client_id, realm_id, mac)
     select client_id, '${other.realm}', mac from client_realm where client_id = ?`,
    client.clientId,
  );
  const found = await service.db.engine.access.client(client.clientId);
  expect([[...(found?.realms ?? [])], found?.hasForgedRealms, found?.isForged]).toEqual([
    [realm],
    true,
    undefined,
  ]);
});

test('an inserted signing key is in no key set, and a withdrawn one does not return', async () => {
  const { engine, keyring } = service.db;
  const key = await mintSigningKey(keyring, systemClock, 0);
  const kids = async () => {
    const { keys } = (await (await fetch(`${service.url}/.well-known/jwks.json`)).json()) as {
      keys: readonly { kid: string }[];
    };
    return keys.map(({ kid }) => kid);
  };
  const own = await kids();
  await service.database.tamper(
    `insert into signing_key (kid, public_jwk, private_sealed, created_at, signs_from)
     select '${key.kid}', ?, private_sealed, created_at, signs_from from signing_key limit 1`,
    key.publicJwk,
  );
  await touch();
  service.clock.advance(1_000);
  expect(await kids()).toEqual(own);
  expect((await engine.access.signingKey(key.kid)).keys[0]?.isForged).toBe(true);
  await service.database.tamper(
    'update signing_key set withdrawn_at = 1, mac = null where kid = ?',
    own[0] ?? '',
  );
  await service.database.tamper('update signing_key set withdrawn_at = null where kid = ?', own[0] ?? '');
  expect((await engine.access.signingKey(own[0] ?? '')).keys[0]?.isForged).toBe(true);
});

test('a console link that was inserted or changed in the database starts no session', async () => {
  const statusOfLink = async (code: string) =>
    (await postConsoleToken(service, { grant: 'link', code })).status;
  const own = 'A'.repeat(22);
  const { code } = await createLink(service, { scope: 'users:read' });
  await service.database.tamper(
    `insert into console_link (digest, label, scopes, realms, expires_at, mac)
     select '${digestLinkCode(own)}', label, scopes, realms, expires_at, mac from console_link`,
  );
  expect([await statusOfLink(own), await statusOfLink(code)]).toEqual([400, 200]);
  for (const change of [
    `scopes = 'admin'`,
    `label = 'Mallory'`,
    'expires_at = expires_at + 1',
    'mac = null',
  ]) {
    const edited = await createLink(service, { scope: 'users:read' });
    await service.database.tamper(
      `update console_link set ${change} where digest = ?`,
      digestLinkCode(edited.code),
    );
    expect([change, await statusOfLink(edited.code)]).toEqual([change, 400]);
  }
});
