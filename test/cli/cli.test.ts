import { describe, expect, test } from 'bun:test';
import { readdirSync, realpathSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { freshDatabase } from '../support/database.ts';
import { runFirstMinutes } from '../support/first_minutes.ts';
import { AUTHREALM, runAuthrealm, runCommand, startCommand } from '../support/processes.ts';
import { freshFolder } from '../support/service.ts';

const run = (...args: string[]) => runAuthrealm([...args]);

interface ClientOutput {
  readonly client_id: string;
  readonly client_secret?: string;
  readonly scope: string;
  readonly realms: '*' | string[];
  readonly state: string;
}

test('the commands that init prints lead to a record from any folder', async () => {
  const { args } = await freshDatabase();
  const { serve, record } = await runFirstMinutes([AUTHREALM, 'init', ...args]);
  expect(serve).toStartWith(`${realpathSync(AUTHREALM)} serve `);
  expect(record.username).toBe('jane@example.com');
  const secondInit = await run('init', ...args);
  expect([secondInit.code, secondInit.stderr]).toEqual([1, expect.stringContaining('already has clients')]);
}, 300_000);

describe('client', async () => {
  const { args: words } = await freshDatabase();
  const client = (...args: string[]) => run('client', ...args, ...words);
  const asJson = async (...args: string[]) => {
    const { stdout, stderr, code } = await client(...args, '--json');
    expect([code, stderr]).toEqual([0, '']);
    return JSON.parse(stdout) as ClientOutput;
  };
  const realm = '01234567-89ab-cdef-0123-456789abcdef';

  test('client create, update, rotate and list print the client', async () => {
    const made = await asJson(
      'create',
      '--name',
      'n',
      '--scope',
      'profile-infos:read',
      '--realm',
      realm.toUpperCase(),
    );
    expect(made.client_secret).toMatch(/^ars_[A-Za-z0-9_-]{43}$/);
    expect(made.scope).toBe('oidc-profile-infos:read password-profile-infos:read');
    expect(made.realms).toEqual([realm]);
    const updated = await asJson('update', made.client_id, '--scope', 'users:read', '--all-realms');
    expect(updated).toMatchObject({ scope: 'users:read', realms: '*', state: 'enabled' });
    expect(updated).not.toHaveProperty('client_secret');
    const rotated = await asJson('rotate', made.client_id, '--overlap', '1.5');
    expect(rotated.client_secret).not.toBe(made.client_secret);
    expect((await asJson('update', made.client_id, '--state', 'disabled')).state).toBe('disabled');
    expect((await asJson('update', made.client_id, '--state', 'enabled')).state).toBe('enabled');
    const listed = await client('list', '--json');
    expect(JSON.parse(listed.stdout)).toHaveLength(1);
    expect(listed.stdout).not.toContain('ars_');
  }, 300_000);

  test('client create --implicit prints what the ID alone gives, and client update changes it or takes it away', async () => {
    const rights = ['--scope', 'users:read', '--implicit', 'settings:read profiles:read'];
    const where = ['--implicit-realm', realm, '--storefront', '192.0.2.1 2001:db8::/32'];
    const more = [...where, '--storefront', '192.0.2.64/26', '--rate-per-address', '5/60'];
    const made = await asJson('create', '--name', 'p', ...rights, ...more);
    const implicit = {
      implicit_scopes: ['settings:read', 'profiles:read'],
      implicit_realms: [realm],
      storefronts: ['192.0.2.1', '2001:db8::/32', '192.0.2.64/26'],
    };
    expect(made).toMatchObject({ ...implicit, rate_per_address: '5/60', realms: '*' });
    const updated = await asJson('update', made.client_id, '--rate-per-address', '9/60');
    expect(updated).toMatchObject({ ...implicit, rate_per_address: '9/60' });
    const bare = await asJson('update', made.client_id, '--implicit', '', '--rate-per-address', '');
    expect(bare).toMatchObject({ ...implicit, implicit_scopes: [], rate_per_address: null });
  }, 300_000);
});

test('keys list shows the state of each key after rotate and withdraw', async () => {
  const { args } = await freshDatabase();
  const keys = async (...more: string[]) => (await run('keys', ...more, ...args)).stdout;
  const states = async () =>
    [...(await keys('list')).matchAll(/^kid +(\S+)\nstate +(\S+)$/gm)].map(([, kid, state]) => [kid, state]);
  const [[first = ''] = []] = await states();
  const rotated = /^kid +(\S+)\nstate +next\nsigns_from +\d{4}-/.exec(await keys('rotate'))?.[1];
  expect(await states()).toEqual([
    [first, 'signs'],
    [rotated, 'next'],
  ]);
  expect(await keys('withdraw', first)).toMatch(/^state +withdrawn$/m);
  expect((await states()).map(([, state]) => state)).toEqual(['withdrawn', 'next', 'signs']);
  const unknown = await run('keys', 'withdraw', 'nothing', ...args);
  expect([unknown.code, unknown.stderr]).toEqual([1, expect.stringContaining('no signing key ')]);
}, 300_000);

describe('serve', () => {
  test('serve prints its URL and a hint to create a client, and exits with 0 on SIGTERM', async () => {
    const service = startCommand([AUTHREALM, 'serve', '--port', '0', ...(await freshDatabase()).args]);
    const url = (await service.line(/^listening on http:\/\/127\.0\.0\.1:\d+$/)).slice(
      'listening on '.length,
    );
    await service.line(/^no clients yet: .*"authrealm client create" a client for existing realms$/);
    const connection = await fetch(`${url}/healthz`);
    expect(await connection.json()).toEqual({ status: 'ok' });
    const before = performance.now();
    expect(await service.stop()).toBe(0);
    expect(performance.now() - before).toBeLessThan(5_000);
  });

  test('serve answers a request in flight before it exits, even after a second SIGTERM', async () => {
    const service = startCommand([AUTHREALM, 'serve', '--port', '0', ...(await freshDatabase()).args]);
    const url = (await service.line(/^listening on /)).slice('listening on '.length);
    const { promise, resolve } = Promise.withResolvers<void>();
    const slow = new ReadableStream({
      async start(controller) {
        controller.enqueue(new TextEncoder().encode('grant_type=client_'));
        await promise;
        controller.enqueue(new TextEncoder().encode('credentials'));
        controller.close();
      },
    });
    const answer = fetch(`${url}/oauth/token`, { method: 'POST', body: slow });
    await Bun.sleep(1_000);
    const stopped = service.stop();
    await Bun.sleep(100);
    // Scripts may signal twice: directly and in a trap.
    service.process.kill('SIGTERM');
    await Bun.sleep(100);
    resolve();
    expect((await answer).status).toBe(401);
    expect(await stopped).toBe(0);
  });

  test('serve creates and updates the client of the bootstrap file, and refuses an invalid file', async () => {
    const folder = freshFolder();
    const { args } = await freshDatabase();
    const file = join(folder, 'client.json');
    const writeClient = (scope: string) =>
      writeFileSync(
        file,
        JSON.stringify({
          client_id: 'boot',
          client_secret: 's'.repeat(40),
          name: 'boot',
          scope,
          realms: '*',
        }),
      );
    const grantedScope = async () => {
      const serveArgs = ['serve', '--port', '0', ...args, '--bootstrap-client-file', file];
      const service = startCommand([AUTHREALM, ...serveArgs]);
      const url = (await service.line(/^listening on /)).slice('listening on '.length);
      const form = { grant_type: 'client_credentials', client_id: 'boot', client_secret: 's'.repeat(40) };
      const answer = await fetch(`${url}/oauth/token`, { method: 'POST', body: new URLSearchParams(form) });
      expect(await service.stop()).toBe(0);
      return ((await answer.json()) as { scope: string }).scope;
    };
    writeClient('users:read');
    expect([await grantedScope(), await grantedScope()]).toEqual(['users:read', 'users:read']);
    writeClient('realms:read');
    expect(await grantedScope()).toBe('realms:read');
    writeFileSync(file, '{"client_id":"boot"}');
    const refused = await run('serve', '--port', '0', ...args, '--bootstrap-client-file', file);
    expect([refused.code, refused.stderr.split('\n').length]).toEqual([1, 4]);
    const missing = `sqlite:${join(folder, 'none.db')}`;
    const withoutDatabase = await run(
      'serve',
      '--port',
      '0',
      '--database',
      missing,
      '--bootstrap-client-file',
      file,
    );
    expect([withoutDatabase.code, withoutDatabase.stderr, readdirSync(folder)]).toEqual([
      1,
      refused.stderr,
      ['client.json'],
    ]);
  }, 300_000);

  test('serve with a certificate listens for https', async () => {
    const fixture = (name: string) => join(import.meta.dir, '../fixtures', name);
    const [cert, key] = [fixture('localhost.cert.pem'), fixture('localhost.key.pem')];
    const tls = ['--tls-cert', cert, '--tls-key', key];
    const service = startCommand([
      AUTHREALM,
      'serve',
      '--port',
      '0',
      ...(await freshDatabase()).args,
      ...tls,
    ]);
    const url = (await service.line(/^listening on https:/)).slice('listening on '.length);
    const answer = await fetch(`${url}/healthz`, { tls: { ca: await Bun.file(cert).text() } });
    expect(answer.status).toBe(200);
    expect(await service.stop()).toBe(0);
  });
});

test('client create reports a busy database, and serve with an existing bootstrap client needs no lock', async () => {
  const folder = freshFolder();
  const database = await freshDatabase();
  const file = join(folder, 'client.json');
  const client = { client_id: 'boot', client_secret: 's'.repeat(40), name: 'boot', scope: 'users:read' };
  writeFileSync(file, JSON.stringify(client));
  const serve = [AUTHREALM, 'serve', '--port', '0', ...database.args, '--bootstrap-client-file', file];
  const first = startCommand(serve);
  await first.line(/^listening on /);
  expect(await first.stop()).toBe(0);
  const unlock = await database.lockWriters();
  const create = ['client', 'create', '--name', 'n', '--scope', 'admin', ...database.args];
  const busy = runCommand([AUTHREALM, ...create]);
  const second = startCommand(serve);
  await second.line(/^listening on /);
  expect(await second.stop()).toBe(0);
  const { code, stderr } = await busy;
  expect([code, stderr]).toEqual([
    1,
    expect.stringMatching(
      /^authrealm: the database operation failed: .*(held the lock|because of other transactions).*; try again\n$/,
    ),
  ]);
  await unlock();
}, 300_000);
