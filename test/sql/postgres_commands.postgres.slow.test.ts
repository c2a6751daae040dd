import { afterAll, describe, expect, test } from 'bun:test';
import { existsSync, readFileSync, renameSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { user } from '../../src/model/resources.ts';
import { createSqlite } from '../support/database.ts';
import { freshFolder } from '../support/folder.ts';
import { createLoginRole, superuserClient, uniqueRoleName } from '../support/postgres_schemas.ts';
import { sharedServer } from '../support/postgres_server.ts';
import { AUTHREALM, type RunningCommand, runCommand, startCommand } from '../support/processes.ts';

/** Every command on PostgreSQL, with separate roles for serving and for owning the schema. */

const folder = freshFolder();
const file = (name: string) => join(folder, name);
const running: RunningCommand[] = [];

const key = ['--master-key-file', file('master.key')];

const url = await (await sharedServer()).freshDatabase();
const [owner, app] = [uniqueRoleName('owner'), uniqueRoleName('app')];
const urlAs = async (name: string) => {
  const { protocol, host, pathname } = new URL(await createLoginRole(url, name));
  writeFileSync(file(name), `${name}-secret\n`, { mode: 0o600 });
  return `${protocol}//${name}@${host}${pathname}`;
};
const appFlags = ['--database', await urlAs(app), '--database-password-file', file(app)];
const ownerFlags = [
  '--migrate-database',
  await urlAs(owner),
  '--migrate-database-password-file',
  file(owner),
];
await superuserClient(url).unsafe(`create schema app authorization ${owner}`);
for (const name of [owner, app])
  await superuserClient(url).unsafe(`alter role ${name} set search_path to app`);

afterAll(() => Promise.all(running.map((each) => each.stop())));

/** The output of a command that must succeed and must not print a password. */
async function outputOf(...args: readonly string[]): Promise<string> {
  const { code, stdout, stderr } = await runCommand([AUTHREALM, ...args]);
  expect([stderr.replace(/^(\d+ records, \d+\/s\n|exported .*\n)*/, ''), code]).toEqual(['', 0]);
  expect(stdout + stderr).not.toContain('-secret');
  return stdout;
}

async function errorOf(...args: readonly string[]): Promise<string> {
  const { code, stderr } = await runCommand([AUTHREALM, ...args]);
  expect(code).not.toBe(0);
  return stderr;
}

test('keys make creates a key file, and never overwrites one', async () => {
  const path = file('master.key');
  expect(await outputOf('keys', 'make', path)).toMatch(
    /^created the master key .*--master-key-file.*back it up/,
  );
  expect(statSync(path).mode & 0o777).toBe(0o600);
  expect(Buffer.from(readFileSync(path, 'utf8').trim(), 'base64url')).toHaveLength(32);
  const before = readFileSync(path, 'utf8');
  expect(await errorOf('keys', 'make', path)).toMatch(/already exists, and a key file is never overwritten/);
  expect(readFileSync(path, 'utf8')).toBe(before);
  expect(await errorOf('keys', 'make', join(folder, 'no', 'folder'))).toMatch(
    /cannot be created: folder .*no does not exist/,
  );
});

test('import --dry-run refuses a server without a schema, and creates none', async () => {
  const words = ['import', '--dry-run', file('master.key'), ...appFlags, ...ownerFlags, ...key];
  for (const _ of ['first', 'second']) expect(await errorOf(...words)).toContain('is missing or empty');
});

test('init without a master key creates nothing, and names the command that creates a key', async () => {
  expect(await errorOf('init', ...appFlags, ...ownerFlags)).toContain(
    'create one with "authrealm keys make FILE"',
  );
  expect(await errorOf('client', 'list', ...appFlags, ...key)).toMatch(/has no schema|is missing or empty/);
});

describe('an installation on PostgreSQL', () => {
  let realm: string;
  let profile: string;
  const all = () => [...appFlags, ...key];

  test('init creates the schema with the owner role', async () => {
    const printed = await outputOf('init', ...appFlags, ...key, ...ownerFlags);
    realm = /^realm +(\S+)/m.exec(printed)?.[1] ?? '';
    profile = /^password profile +(\S+)/m.exec(printed)?.[1] ?? '';
    expect(printed).toContain(
      `authrealm serve ${appFlags.join(' ')} ${ownerFlags.join(' ')} ${key.join(' ')}`,
    );
    expect(await errorOf('init', ...all())).toContain('already has clients');
  });

  test('migrate finds nothing pending, and doctor reports a healthy database', async () => {
    expect(await outputOf('migrate', ...all(), ...ownerFlags)).toMatch(/the newest/);
    const { stdout } = await runCommand([AUTHREALM, 'doctor', '--json', ...all()]);
    const { healthy, checks } = JSON.parse(stdout) as { healthy: boolean; checks: { total: number }[] };
    expect([healthy, checks.filter(({ total }) => total > 0)]).toEqual([true, []]);
  });

  test('client create, list, update, rotate, disable and enable work', async () => {
    const made = JSON.parse(
      await outputOf('client', 'create', '--name', 'n', '--scope', 'users:read', '--json', ...all()),
    );
    const id: string = made.client_id;
    expect(await outputOf('client', 'list', ...all())).toContain(id);
    await outputOf('client', 'update', id, '--realm', realm, ...all());
    expect(await outputOf('client', 'rotate', id, ...all())).toContain('ars_');
    expect(await outputOf('client', 'update', id, '--state', 'disabled', ...all())).toContain('disabled');
    expect(await outputOf('client', 'update', id, '--state', 'enabled', ...all())).toContain('enabled');
  });

  test('keys list, rotate, withdraw and rewrap work', async () => {
    const first = /^kid +(\S+)$/m.exec(await outputOf('keys', 'list', ...all()))?.[1] ?? '';
    expect(await outputOf('keys', 'rotate', ...all())).toMatch(/^signs_from +\d{4}-/m);
    expect(await outputOf('keys', 'withdraw', first, ...all())).toMatch(/^state +withdrawn$/m);
    renameSync(file('master.key'), file('previous.key'));
    await outputOf('keys', 'make', file('master.key'));
    const previous = ['--previous-master-key-file', file('previous.key')];
    expect(await outputOf('keys', 'rewrap', ...previous, ...all())).toMatch(/encrypted \d+ values again/);
    expect(await outputOf('keys', 'list', ...all())).toContain(first);
  });

  test('import works and can be repeated, and an export imports into SQLite unchanged', async () => {
    const lines = Array.from({ length: 50 }, (_, at) => {
      const id = `00000000-0000-4000-8000-${String(at).padStart(12, '0')}`;
      const name = { type: user.type, realm_id: realm, id, name: `N ${at}`, email: `n${at}@example.com` };
      const link = {
        type: 'user_authentication_password_profile_info',
        realm_id: realm,
        user_authentication_info_id: id,
        id: id.replace('4000', '4001'),
        username: `n${at}`,
        password_profile_id: profile,
      };
      return `${JSON.stringify(name)}\n${JSON.stringify(link)}\n`;
    });
    writeFileSync(file('lines'), lines.join(''));
    const lastLine = (printed: string) => printed.trim().split('\n').at(-1);
    expect(lastLine(await outputOf('import', file('lines'), ...all()))).toStartWith(
      'imported 100, unchanged 0',
    );
    expect(lastLine(await outputOf('import', file('lines'), ...all()))).toStartWith(
      'imported 0, unchanged 100',
    );
    await outputOf('export', '--with-secrets', file('exported'), ...all());
    const other = (await createSqlite(file('other.db'))).args;
    await outputOf('import', file('exported'), ...other);
    expect(await outputOf('export', ...other)).toBe(await outputOf('export', ...all()));
  });

  for (const processes of [1, 2]) {
    test(`serve with ${processes} processes works with get, list, find, create, update and delete`, async () => {
      const scope = 'realms:read users:read users:write profile-infos:read';
      const made = ['client', 'create', '--name', 'n', '--scope', scope, '--json'];
      const { client_id, client_secret } = JSON.parse(await outputOf(...made, ...all()));
      const service = startCommand([
        AUTHREALM,
        'serve',
        '--port',
        '0',
        '--processes',
        String(processes),
        ...all(),
      ]);
      running.push(service);
      const url = (await service.line(/^listening on /)).slice('listening on '.length);
      const environment = {
        AUTHREALM_URL: url,
        AUTHREALM_CLIENT_ID: client_id,
        AUTHREALM_CLIENT_SECRET: client_secret,
      };
      const lastLine = async (...args: readonly string[]) => {
        const { stdout, stderr, code } = await runCommand([AUTHREALM, ...args], environment);
        expect([stderr, code]).toEqual(['', 0]);
        return stdout;
      };
      expect(await lastLine('get', 'realm', realm)).toContain('Default realm');
      const members = ['name=Jane Doe', `email=jane${processes}@example.com`];
      const id = (await lastLine('create', 'user-info', realm, ...members, '--id')).trim();
      await lastLine('update', 'user-info', realm, id, 'given_name=Jane');
      const filter = ['--filter', `eq(email,jane${processes}@example.com)`];
      expect(await lastLine('list', 'user-info', realm, ...filter)).toContain(id);
      expect(await lastLine('find', 'password-profile-info', realm, 'username=N7')).toContain('000000000007');
      await lastLine('delete', '--yes', 'user-info', realm, id);
      expect(await service.stop()).toBe(0);
      expect(service.output()).not.toContain('-secret');
    }, 300_000);
  }

  test('delete --in-pages removes the realm and everything in it', async () => {
    expect(await outputOf('delete', '--in-pages', '--yes', 'realm', realm, ...all())).toContain(
      'deleted 102 records',
    );
    expect(await outputOf('export', ...all())).toBe('');
  });

  test('a changed password is read from its file', async () => {
    const url = await (await sharedServer()).freshDatabase();
    await superuserClient(url).unsafe(`alter role ${app} password 'another-secret'`);
    expect(await errorOf('client', 'list', ...all())).toMatch(/the server rejected the password/);
    writeFileSync(file(app), 'another-secret');
    await outputOf('client', 'list', ...all());
  });

  test('demo uses its own database', async () => {
    expect(await outputOf('demo', '--once')).not.toBe('');
    expect(existsSync('authrealm.db')).toBe(false);
  }, 300_000);
});
