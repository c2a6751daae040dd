import { afterAll, describe, expect, test } from 'bun:test';
import { readFileSync, renameSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type * as Resources from '../../src/model/resources.ts';
import type * as Agreement from '../support/consistency.ts';
import { freshDatabase } from '../support/database.ts';
import { mintId } from '../support/import_fixtures.ts';
import { ofRecord } from '../support/log_rows.ts';
import { runCommand } from '../support/processes.ts';
import { PASSWORD } from '../support/resource_cases.ts';
import { freshFolder } from '../support/service.ts';
import {
  createSevenResourceProgram,
  createSixResourceDatabase,
  type RequestInput,
  SECRET,
  startSevenResourceService,
} from '../support/seventh_resource.ts';

/** The client library, import, export, commands and doctor handle a resource by its description alone. */

const program = await createSevenResourceProgram();
const base = await createSixResourceDatabase();
const { ids } = base;

const service = await startSevenResourceService(program, base);
const { CONSISTENCY_CHECKS: consistencyChecks } = await program.module<typeof Agreement>(
  'test/support/consistency.ts',
);
afterAll(async () => {
  expect(await service.running.stop()).toBe(0);
  expect(await base.database.findInconsistencies(consistencyChecks)).toEqual([]);
});

/** Runs a command of the program with the resource, as a client of the service. */
const run = (args: readonly string[], input = '') =>
  runCommand([program.authrealm, ...args], service.environment, input);
const send = (name: string, request?: RequestInput) => service.send(name, request);

async function outputOf(args: readonly string[], input = ''): Promise<string> {
  const { code, stdout, stderr } = await run(args, input);
  expect([code, stderr]).toEqual([0, '']);
  return stdout;
}

const etagOf = async (name: string, id: string) => (await send(name, { id })).headers.get('etag');
const statusOf = async (device: { readonly id: string }, path: RequestInput['path'] = {}) =>
  (await send('get-device', { id: device.id, path })).status;

test('the client library has typed requests and answers of the added resource', async () => {
  const settings = { extends: './tsconfig.json', include: ['src', 'caller.ts'] };
  writeFileSync(join(program.folder, 'tsconfig.caller.json'), JSON.stringify(settings));
  const tsc = join(program.folder, 'node_modules/.bin/tsc');
  const compiled = await runCommand([
    process.execPath,
    tsc,
    '-p',
    join(program.folder, 'tsconfig.caller.json'),
  ]);
  expect(compiled).toEqual({ stdout: '', stderr: '', code: 0 });
}, 300_000);

test('a record of the added resource is removed with its parent and with the record it refers to', async () => {
  const other = await service.createDevice();
  const user = await create('user-authentication-info', { name: 'Jon', email: 'jon@example.com' });
  const profile = await create('password-profile', { name: 'Codes' });
  const ofUser = await service.createDevice({}, { user_id: user });
  const ofProfile = await service.createDevice({ password_profile_id: profile });
  const before = await etagOf('get-user-authentication-info', ids.user);
  expect((await send('delete-password-profile', { id: profile })).status).toBe(204);
  expect([await statusOf(ofProfile), await statusOf(ofUser, { user_id: user })]).toEqual([404, 200]);
  expect(await etagOf('get-user-authentication-info', ids.user)).not.toBe(before);
  expect((await send('delete-user-authentication-info', { id: user })).status).toBe(204);
  expect([await statusOf(ofUser, { user_id: user }), await statusOf(other)]).toEqual([404, 200]);
  expect(await base.database.findInconsistencies(consistencyChecks)).toEqual([]);
});

async function create(
  name: string,
  members: Readonly<Record<string, string>>,
  path: RequestInput['path'] = {},
) {
  const types = { 'authentication-realm': 'authentication-realm' };
  const type = types[name as keyof typeof types] ?? name.replaceAll('-', '_');
  const made = await send(`create-${name}`, { data: { type, ...members }, path });
  expect(made.status).toBe(201);
  return (made.body as unknown as { data: { id: string } }).data.id;
}

test('the removal of a realm, also in pages, removes its records of the added resource', async () => {
  for (const remove of [
    (realm: string) => send('delete-authentication-realm', { id: realm }),
    (realm: string) => outputOf(['delete', '--in-pages', '--yes', 'realm', realm, ...base.database.args]),
  ]) {
    const realm_id = await create('authentication-realm', { name: 'Store' });
    const password_profile_id = await create('password-profile', { name: 'P' }, { realm_id });
    const members = { name: 'Jon', email: 'jon@example.com' };
    const user_id = await create('user-authentication-info', members, { realm_id });
    const device = await service.createDevice({ password_profile_id }, { realm_id, user_id });
    await remove(realm_id);
    expect(await statusOf(device, { realm_id, user_id })).toBe(404);
    expect(await base.database.findInconsistencies(consistencyChecks)).toEqual([]);
  }
});

describe('import and export of the added resource', () => {
  const line = (more: object = {}) => ({
    type: 'device',
    id: mintId(),
    realm_id: ids.realm,
    user_authentication_info_id: ids.user,
    serial: mintId(),
    label: 'Tablet',
    password_profile_id: ids.passwords,
    ...more,
  });

  async function importLines(...lines: object[]) {
    const text = lines.map((each) => JSON.stringify(each)).join('\n');
    const skipping = ['import', '-', '--on-error', 'skip', ...base.database.args];
    const { stderr, code } = await run(skipping, text);
    return [code, stderr.trim()];
  }

  test('an import takes valid lines of the added resource, and refuses others with the member', async () => {
    const pinned = line({ pinned: true, meta: { level: 'high' } });
    expect(await importLines(pinned)).toEqual([0, '']);
    const read = await send('get-device', { id: pinned.id });
    expect(read.body).toMatchObject({ data: { id: pinned.id, meta: { level: 'high' } } });
    expect((await send('delete-device', { id: pinned.id })).status).toBe(422);
    const refused: [line: object, reason: string][] = [
      [line({ state: 'sold' }), 'line 1: state'],
      [line({ serial: pinned.serial }), 'line 1: another record of the realm has the same serial'],
      [
        line({ user_authentication_info_id: mintId() }),
        'line 1: its user-authentication-info does not exist',
      ],
      [line({ password_profile_id: mintId() }), 'line 1: password_profile_id names a record that'],
    ];
    for (const [each, reason] of refused)
      expect(await importLines(each)).toEqual([3, expect.stringContaining(reason)]);
  }, 300_000);

  test('an export and an import carry the added resource to another database, secrets included', async () => {
    await service.createDevice({ note: 'ß', transports: ['usb'], relationships: { maker: 'Yubico' } });
    const folder = freshFolder();
    const [first, second] = [join(folder, 'first.ndjson'), join(folder, 'second.ndjson')];
    const { args: other } = await freshDatabase();
    const out = async (file: string, from: readonly string[]) =>
      expect((await run(['export', file, '--with-secrets', ...from])).code).toBe(0);
    await out(first, base.database.args);
    // It has the schema without the resource.
    expect((await run(['migrate', ...other])).code).toBe(0);
    const imported = await run(['import', first, ...other]);
    expect([imported.code, imported.stderr]).toEqual([0, '']);
    await out(second, other);
    const text = readFileSync(first, 'utf8');
    expect(readFileSync(second, 'utf8')).toBe(text);
    const devices = text.split('\n').filter((each) => each.startsWith('{"type":"device"'));
    expect(devices.length).toBeGreaterThan(1);
    expect(devices.at(-1)).toContain(`"attestation":"${SECRET}"`);
  }, 300_000);
});

describe('commands of the added resource', () => {
  const secret = join(freshFolder(), 'secret');
  writeFileSync(secret, SECRET);

  test('the commands create, get, list, find, update and delete work with the added resource', async () => {
    const above = [ids.realm, ids.user];
    const members = ['serial=from-the-shell', 'label=Laptop', `password_profile_id=${ids.passwords}`];
    const secrets = [`attestation=@${secret}`, 'pin=@-'];
    const id = (
      await outputOf(['create', 'device', ...above, ...members, ...secrets, '--id'], PASSWORD)
    ).trim();
    expect(JSON.parse(await outputOf(['get', 'device', ...above, id, '--json']))).toMatchObject({
      ...{ realm_id: ids.realm, user_id: ids.user, id, serial: 'from-the-shell', level: 'low', maker: null },
      links: { enrolment: expect.any(String) },
    });
    const narrowed = ['list', 'device', ...above, '--filter', 'eq(label,LAPTOP)'];
    expect(await outputOf(narrowed)).toMatch(/^id +serial +label +note +state .*\n\S+ +from-the-shell .*\n$/);
    expect(await outputOf(['find', 'device', ids.realm, 'serial=from-the-shell'])).toContain(id);
    const changed = await outputOf([
      'update',
      'device',
      ...above,
      id,
      'state=lost',
      'transports=["nfc"]',
      '--json',
    ]);
    expect(JSON.parse(changed)).toMatchObject({ state: 'lost', transports: ['nfc'] });
    expect(await outputOf(['delete', '--yes', 'device', ...above, id])).toBe('');
    const missing = await run(['get', 'device', ...above, id]);
    expect([missing.code, missing.stderr]).toEqual([1, expect.stringContaining('404')]);
    const inline = await run(['create', 'device', ...above, ...members, 'pin=correct horse']);
    expect([inline.code, inline.stderr]).toEqual([2, expect.stringContaining('pin is a secret')]);
  }, 300_000);

  test('the error of an unknown resource lists the added resource', async () => {
    const { DESCRIPTIONS } = await program.module<typeof Resources>('src/model/resources.ts');
    const names = Object.values(DESCRIPTIONS).map(({ table }) => table.replaceAll('_', '-'));
    expect(names).toHaveLength(7);
    for (const command of ['get', 'delete']) {
      const { code, stderr } = await run([command, 'phone', ids.realm]);
      const error = `authrealm: the resource must be one of ${names.join(', ')}; or realms, providers, users, links, usernames\n`;
      expect([code, stderr]).toEqual([2, error]);
    }
  });
});

interface Examined {
  readonly checks: readonly {
    readonly check: string;
    readonly findings: readonly { readonly table: string; readonly ids: readonly string[] }[];
  }[];
}

test('doctor and audit verify check the added resource, and keys rewrap encrypts its secrets with the new master key', async () => {
  const sealed = await service.createDevice();
  const { args, masterKeyFile } = base.database;
  const previous = `${masterKeyFile}-before`;
  renameSync(masterKeyFile, previous);
  await outputOf(['keys', 'make', masterKeyFile]);
  await outputOf(['keys', 'rewrap', '--previous-master-key-file', previous, ...args]);
  const examined = JSON.parse(await outputOf(['doctor', '--json', ...base.database.args]));
  expect(examined.healthy).toBe(true);
  // A valid ciphertext of another column.
  const [foreign] = await base.database.query<{ text: string }>(
    'select client_secret_sealed as text from oidc_profile',
  );
  const damage = `update device set label_key = 'x', attestation_sealed = ? where ${ofRecord(base.database.address.engine)}`;
  await base.database.query(damage, foreign?.text ?? '', sealed.id);
  const { checks } = JSON.parse((await run(['doctor', '--json', ...base.database.args])).stdout) as Examined;
  const found = checks.flatMap(({ check, findings }) =>
    findings.map(({ table, ids: [id] }) => [check, table, id]),
  );
  expect(found).toEqual([['sealed values', 'device', sealed.id]]);
  const { stdout } = await run(['audit', 'verify', '--records', ...base.database.args]);
  expect(stdout).toContain('label_key does not match the value it is computed from (device,');
  expect((await send('delete-device', { id: sealed.id })).status).toBe(204);
}, 300_000);
