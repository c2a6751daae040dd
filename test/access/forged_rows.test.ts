import { beforeEach, expect, test } from 'bun:test';
import { changeClient, createClient, deleteClient } from '../../src/access/clients/clients.ts';
import { mintSigningKey, rotateSigningKey, withdrawSigningKey } from '../../src/access/keys/signing.ts';
import { digestLinkCode } from '../../src/access/sessions/console_links.ts';
import type { LogKeys } from '../../src/log/keys.ts';
import { openRowMacs } from '../../src/log/store/row_macs.ts';
import { Fault } from '../../src/model/fault.ts';
import { systemClock } from '../../src/ops/process/clock.ts';
import type { LogRecord } from '../../src/ops/process/log.ts';
import { createLink, postConsoleToken } from '../support/console_sign_in.ts';
import { createFixture, type Service, startService } from '../support/service.ts';
import { addTarget, startReceiver } from '../support/webhook_receivers.ts';

/**
 * Rows of clients, signing keys, webhook targets and console links that were written without the service, by a holder of the
 * database file.
 */

let service: Service;

beforeEach(async () => {
  service = await startService({ offline: 'true', allowPrivate: 'localhost 127.0.0.0/8' });
});

const touch = () => service.database.tamper('update instance set access_version = access_version + 1');

/** The table and ID of each logged forged row. */
const forgedRows = (): readonly string[] =>
  service.log
    .filter((record): record is LogRecord & { event: 'forged_row' } => record.event === 'forged_row')
    .map(({ table, id }) => `${table} ${id}`);

async function issue(scopes: readonly string[], realms: '*' | ReadonlySet<string> = '*') {
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
  [
    'another secret',
    `update client set secret_digest = (select sealed from keyring limit 1) where client_id = ?`,
  ],
  ['a longer overlap', 'update client set previous_expires_at = 99999999999999 where client_id = ?'],
  ['no MAC', 'update client set mac = null where client_id = ?'],
  [
    'the MAC of another client',
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
  expect(forgedRows()).toEqual([`client ${client.clientId}`]);
});

test('a client of one realm that got all realms in the database gets no token', async () => {
  const { realm } = await createFixture(service.db);
  const { client, secret } = await issue(['realms:read'], new Set([realm]));
  expect(await statusOf(client.clientId, secret)).toBe(200);
  await service.database.tamper('update client set all_realms = 1 where client_id = ?', client.clientId);
  await touch();
  service.clock.advance(1_000);
  expect([await statusOf(client.clientId, secret), forgedRows()]).toEqual([
    401,
    [`client ${client.clientId}`],
  ]);
});

test('a forged client cannot be changed, which would authenticate its row, and can be deleted', async () => {
  const { client } = await issue(['realms:read']);
  await service.database.tamper(`update client set scopes = 'admin' where client_id = ?`, client.clientId);
  const { access } = service.db.engine;
  const changed = await changeClient(access, client.clientId, { name: 'new' }, systemClock).catch(
    (error: unknown) => error,
  );
  expect([changed instanceof Fault, (changed as Fault).code]).toEqual([true, 'conflict']);
  expect((await access.client(client.clientId))?.name).toBe('client');
  expect(await deleteClient(access, client.clientId, undefined, systemClock)).toBe(true);
  expect(await access.client(client.clientId)).toBeUndefined();
});

test('an inserted client gets no token', async () => {
  const { client, secret } = await issue(['realms:read']);
  await service.database.tamper(
    `insert into client (client_id, name, scopes, all_realms, secret_digest, implicit, created_at, updated_at, revision, mac)
     select 'intruder', name, 'admin', 1, secret_digest, implicit, created_at, updated_at, revision, mac from client where client_id = ?`,
    client.clientId,
  );
  await touch();
  service.clock.advance(1_000);
  expect([await statusOf(client.clientId, secret), await statusOf('intruder', secret)]).toEqual([200, 401]);
  expect((await service.db.engine.access.client('intruder'))?.isForged).toBe(true);
});

test('a realm that was inserted for a client is not honoured, and its other realms are', async () => {
  const { realm } = await createFixture(service.db);
  const other = await createFixture(service.db);
  const { client, secret } = await issue(['realms:read'], new Set([realm]));
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
  await touch();
  service.clock.advance(1_000);
  expect([await statusOf(client.clientId, secret), forgedRows()]).toEqual([
    200,
    [`client_realm ${client.clientId}`],
  ]);
});

/** The IDs of the published keys, from an access table that is read again. */
async function publishedKeys(): Promise<readonly string[]> {
  await touch();
  service.clock.advance(1_000);
  const response = await fetch(`${service.url}/.well-known/jwks.json`);
  const { keys } = (await response.json()) as { keys: readonly { kid: string }[] };
  return keys.map(({ kid }) => kid);
}

test('an inserted signing key is in no key set', async () => {
  const key = await mintSigningKey(service.db.keyring, systemClock, 0);
  const own = await publishedKeys();
  await service.database.tamper(
    `insert into signing_key (kid, public_jwk, private_sealed, created_at, signs_from, mac)
     select '${key.kid}', ?, private_sealed, created_at, signs_from, mac from signing_key limit 1`,
    key.publicJwk,
  );
  expect([await publishedKeys(), forgedRows()]).toEqual([own, [`signing_key ${key.kid}`]]);
});

test('a withdrawn signing key does not return when the database is edited', async () => {
  const { engine, keyring } = service.db;
  const [first = ''] = await publishedKeys();
  const { kid: second } = await rotateSigningKey(engine.access, keyring, service.clock);
  expect(await publishedKeys()).toEqual(expect.arrayContaining([first, second]));
  expect(await withdrawSigningKey(second, engine.access, keyring, service.clock)).toBe(true);
  expect(await publishedKeys()).toEqual([first]);
  expect(forgedRows()).toEqual([]);
  await service.database.tamper('update signing_key set withdrawn_at = null where kid = ?', second);
  expect([await publishedKeys(), forgedRows()]).toEqual([[first], [`signing_key ${second}`]]);
});

test('a webhook target with a URL that was changed in the database receives nothing', async () => {
  const [own, foreign] = [startReceiver(), startReceiver()];
  const { webhook } = await addTarget(service, own.url);
  await createFixture(service.db);
  await own.until(() => own.accepted.length > 0);
  await service.database.tamper(
    'update webhook set url = ? where webhook_id = ?',
    foreign.url,
    webhook.webhookId,
  );
  await own.until(() => forgedRows().length > 0);
  await addTarget(service, own.url);
  const { realm } = await createFixture(service.db);
  await own.until(() => own.sequences(realm).length === 6);
  expect([foreign.received.length, forgedRows()]).toEqual([0, [`webhook ${webhook.webhookId}`]]);
});

test('a console link that was inserted or changed in the database starts no session', async () => {
  const statusOfLink = async (code: string) =>
    (await postConsoleToken(service, { grant: 'link', code })).status;
  const own = 'A'.repeat(22);
  const { code } = await createLink(service, { scope: 'users:read' });
  await service.database.tamper(
    `insert into console_link (digest, label, scopes, realms, created_at, expires_at, mac)
     select '${digestLinkCode(own)}', label, scopes, realms, created_at, expires_at, mac from console_link`,
  );
  expect([await statusOfLink(own), await statusOfLink(code)]).toEqual([400, 200]);
  expect([await statusOfLink(own), await statusOfLink('B'.repeat(21).concat('A'))]).toEqual([400, 400]);
  // A forged link is logged once, an unknown code never.
  expect(forgedRows()).toEqual([`console_link ${digestLinkCode(own)}`]);
  for (const change of [
    `scopes = 'admin'`,
    `label = 'Mallory'`,
    'created_at = created_at - 1',
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

test('without keys, as while a database is copied or migrated, a row gets no MAC, and every MAC is valid', () => {
  const macs = openRowMacs();
  const things = { name: 'client', signed: ['name', 'disabled_at'], columns: { mac: 'mac?' } } as const;
  const stored = { name: 'a', disabled_at: null };
  expect([macs.of(things, stored), macs.isRowForged(things, { ...stored, mac: null })]).toEqual([
    null,
    false,
  ]);
  macs.useKeys({ rowMac: (text) => Buffer.from(text) } as Partial<LogKeys> as LogKeys);
  const mac = macs.of(things, stored, 'b');
  expect(mac).toEqual(Buffer.from('["client",[["name","a"]],"b"]'));
  expect([
    macs.isRowForged(things, { ...stored, mac: null }, 'b'),
    macs.isRowForged(things, { ...stored, mac }, 'c'),
    macs.isRowForged(things, { ...stored, mac }, 'b'),
  ]).toEqual([true, true, false]);
});
