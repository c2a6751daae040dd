import { afterAll, beforeAll, describe, expect, test } from 'bun:test';
import { existsSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { user } from '../../src/domain/resources.ts';
import { freshFolder } from '../support/folder.ts';
import { behind, role, roleName } from '../support/postgres_schemas.ts';
import { sharedServer } from '../support/postgres_server.ts';
import { AUTHREALM, type Running, runCommand, start } from '../support/processes.ts';

/** Every command as an operator types it, on PostgreSQL, with the role that serves and the one that owns apart. */

const folder = freshFolder();
const file = (name: string) => join(folder, name);
const running: Running[] = [];
let serving: readonly string[];
let owning: readonly string[];
let owner: string;
let app: string;

const key = ['--master-key-file', file('master.key')];

beforeAll(async () => {
  const url = await (await sharedServer()).freshDatabase();
  [owner, app] = [roleName('keeper'), roleName('server')];
  const named = async (name: string) => {
    const { protocol, host, pathname } = new URL(await role(url, name));
    writeFileSync(file(name), `${name}-secret\n`, { mode: 0o600 });
    return `${protocol}//${name}@${host}${pathname}`;
  };
  serving = ['--database', await named(app), '--database-password-file', file(app)];
  owning = ['--migrate-database', await named(owner), '--migrate-database-password-file', file(owner)];
  await behind(url).unsafe(`create schema ours authorization ${owner}`);
  for (const name of [owner, app]) await behind(url).unsafe(`alter role ${name} set search_path to ours`);
});

afterAll(async () => {
  await Promise.all(running.map((each) => each.stop()));
});

/** What a command that succeeds writes; neither of the passwords is in it. */
async function output(...args: readonly string[]): Promise<string> {
  const { code, stdout, stderr } = await runCommand([AUTHREALM, ...args]);
  expect([stderr.replace(/^(\d+ records, \d+\/s\n|exported .*\n)*/, ''), code]).toEqual(['', 0]);
  expect(stdout + stderr).not.toContain('-secret');
  return stdout;
}

async function refused(...args: readonly string[]): Promise<string> {
  const { code, stderr } = await runCommand([AUTHREALM, ...args]);
  expect(code).not.toBe(0);
  return stderr;
}

test('keys make: a file of its own, once', async () => {
  const path = file('master.key');
  expect(await output('keys', 'make', path)).toMatch(
    /^created the master key .*--master-key-file.*back it up/,
  );
  expect(statSync(path).mode & 0o777).toBe(0o600);
  expect(Buffer.from(readFileSync(path, 'utf8').trim(), 'base64url')).toHaveLength(32);
  const before = readFileSync(path, 'utf8');
  expect(await refused('keys', 'make', path)).toMatch(/already exists, and a key file is never overwritten/);
  expect(readFileSync(path, 'utf8')).toBe(before);
  expect(await refused('keys', 'make', join(folder, 'no', 'folder'))).toMatch(/cannot be created: ENOENT/);
});

test('without a master key nothing starts, nothing is made, and the command that makes one is named', async () => {
  expect(await refused('init', ...serving, ...owning)).toContain(
    'create one with "authrealm keys make FILE"',
  );
  expect(await refused('client', 'list', ...serving, ...key)).toMatch(/sees no schema|no database yet/);
});

describe('an installation', () => {
  let realm: string;
  let profile: string;
  const all = () => [...serving, ...key];

  test('init makes it, by the role that owns it', async () => {
    const said = await output('init', ...serving, ...key, ...owning);
    realm = /^realm +(\S+)/m.exec(said)?.[1] ?? '';
    profile = /^password profile +(\S+)/m.exec(said)?.[1] ?? '';
    expect(said).toContain(`authrealm serve ${serving.join(' ')} ${owning.join(' ')} ${key.join(' ')}`);
    expect(await refused('init', ...all())).toContain('already has clients');
  });

  test('migrate and doctor find it as it should be', async () => {
    expect(await output('migrate', ...all(), ...owning)).toMatch(/the newest/);
    const { stdout } = await runCommand([AUTHREALM, 'doctor', '--json', ...all()]);
    const { healthy, checks } = JSON.parse(stdout) as { healthy: boolean; checks: { total: number }[] };
    expect([healthy, checks.filter(({ total }) => total > 0)]).toEqual([true, []]);
  });

  test('client create, list, update, rotate, disable and enable', async () => {
    const made = JSON.parse(
      await output('client', 'create', '--name', 'n', '--scope', 'users:read', '--json', ...all()),
    );
    const id: string = made.client_id;
    expect(await output('client', 'list', ...all())).toContain(id);
    await output('client', 'update', id, '--realm', realm, ...all());
    expect(await output('client', 'rotate', id, ...all())).toContain('ars_');
    expect(await output('client', 'disable', id, ...all())).toContain('disabled');
    expect(await output('client', 'enable', id, ...all())).toContain('enabled');
  });

  test('keys list, rotate, withdraw and rewrap', async () => {
    const [first = ''] = (await output('keys', 'list', ...all())).split(' ');
    expect(await output('keys', 'rotate', ...all())).toMatch(/ signs from /);
    expect(await output('keys', 'withdraw', first, ...all())).toContain('is withdrawn');
    const rewrapped = await output('keys', 'rewrap', '--new-master-key-file', file('next.key'), ...all());
    expect(rewrapped).toMatch(/created the master key .*\n.*encrypted \d+ values again/);
    expect(await output('keys', 'list', ...all())).toContain(first);
  });

  test('import, the same again, export, and an import of that into another database', async () => {
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
    const told = (said: string) => said.trim().split('\n').at(-1);
    expect(told(await output('import', file('lines'), ...all()))).toStartWith('imported 100, unchanged 0');
    expect(told(await output('import', file('lines'), ...all()))).toStartWith('imported 0, unchanged 100');
    expect(await refused('import', '--dry-run', file('lines'), ...all())).toContain('works only with SQLite');
    await output('export', '--with-secrets', file('exported'), ...all());
    const beside = ['--database', `sqlite:${file('beside.db')}`];
    await output('import', file('exported'), ...beside);
    expect(await output('export', ...beside)).toBe(await output('export', ...all()));
  });

  for (const processes of [1, 2]) {
    test(`serve in ${processes}, and get, list, find, create, update and delete of it`, async () => {
      const scope = 'realms:read users:read users:write profile-infos:read';
      const made = ['client', 'create', '--name', 'n', '--scope', scope, '--json'];
      const { client_id, client_secret } = JSON.parse(await output(...made, ...all()));
      const service = start([AUTHREALM, 'serve', '--port', '0', '--processes', String(processes), ...all()]);
      running.push(service);
      const url = (await service.line(/^listening on /)).slice('listening on '.length);
      const environment = {
        AUTHREALM_URL: url,
        AUTHREALM_CLIENT_ID: client_id,
        AUTHREALM_CLIENT_SECRET: client_secret,
      };
      const told = async (...args: readonly string[]) => {
        const { stdout, stderr, code } = await runCommand([AUTHREALM, ...args], environment);
        expect([stderr, code]).toEqual(['', 0]);
        return stdout;
      };
      expect(await told('get', 'realm', realm)).toContain('Default realm');
      const members = ['name=Jane Doe', `email=jane${processes}@example.com`];
      const id = (await told('create', 'user-info', realm, ...members, '--id')).trim();
      await told('update', 'user-info', realm, id, 'given_name=Jane');
      const filter = ['--filter', `eq(email,jane${processes}@example.com)`];
      expect(await told('list', 'user-info', realm, ...filter)).toContain(id);
      expect(await told('find', 'password-profile-info', realm, 'username=N7')).toContain('000000000007');
      await told('delete', 'user-info', realm, id);
      expect(await service.stop()).toBe(0);
      expect(service.output()).not.toContain('-secret');
    }, 300_000);
  }

  test('purge removes the realm with all that is in it', async () => {
    expect(await output('purge', 'realm', realm, ...all())).toContain('deleted 102 records');
    expect(await output('export', ...all())).toBe('');
  });

  test('a password that was changed is taken from its file', async () => {
    const url = await (await sharedServer()).freshDatabase();
    await behind(url).unsafe(`alter role ${app} password 'another-secret'`);
    expect(await refused('client', 'list', ...all())).toMatch(/the password was not accepted/);
    writeFileSync(file(app), 'another-secret');
    await output('client', 'list', ...all());
  });

  test('demo has a database of its own', async () => {
    expect(await output('demo', '--once')).not.toBe('');
    expect(existsSync('authrealm.db')).toBe(false);
  }, 300_000);
});
