import { expect, test } from 'bun:test';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { startCaptureProxy } from '../support/capture_proxy.ts';
import { startRecordCommands } from '../support/record_commands.ts';
import { freshFolder } from '../support/service.ts';

/** How the commands `get` to `delete` reach the service, and what they print of its responses. */

const { service, environment, realm, run, output, json } = await startRecordCommands();
const folder = freshFolder();

test('the commands send secret and token past every proxy of the environment', async () => {
  const proxy = startCaptureProxy();
  const [shown] = await json(['get', 'realm', realm], { more: proxy.environment });
  expect(shown?.id).toBe(realm);
  await output(['update', 'realm', realm, 'name=Shop'], { more: proxy.environment });
  expect(proxy.methods).toEqual([]);
});

test('plain http to another host requires --allow-plain-http', async () => {
  // Not a loopback address to the command, but Linux routes it to this machine.
  const url = service.url.replace('127.0.0.1', '0.0.0.0');
  const refused = await run(['get', 'realm', realm, '--url', url]);
  expect([refused.code, refused.stderr]).toEqual([2, expect.stringContaining('--allow-plain-http')]);
  expect(await json(['get', 'realm', realm, '--url', url, '--allow-plain-http'])).toHaveLength(1);
  const more = { AUTHREALM_URL: url };
  expect(await json(['get', 'realm', realm, '--allow-plain-http'], { more })).toHaveLength(1);
}, 300_000);

test('options override environment variables, and the client secret may be in a file', async () => {
  const file = join(folder, 'client-secret');
  writeFileSync(file, `${environment.AUTHREALM_CLIENT_SECRET}\n`);
  const connection = [
    '--url',
    `${service.url}/`,
    '--client-id',
    environment.AUTHREALM_CLIENT_ID ?? '',
    '--client-secret-file',
    file,
  ];
  const more = {
    AUTHREALM_URL: 'http://127.0.0.1:9',
    AUTHREALM_CLIENT_ID: 'nobody',
    AUTHREALM_CLIENT_SECRET: 'wrong',
  };
  expect(await json(['get', 'realm', realm, ...connection], { more })).toHaveLength(1);
  const help = await run(['get', '--help']);
  expect(help.stdout).toMatch(/--url <URL>[^-]+AUTHREALM_URL, /);
});

test('control characters of records and errors are escaped on the terminal', async () => {
  const name = 'a\u001b[2J\u0007\u009b31m\u202eb\u2028\r\n';
  const stamps = { created_at: '2026-01-31T09:00:00.000Z', updated_at: '2026-01-31T09:00:00.000Z' };
  const record = { id: realm, type: 'authentication-realm', name, redirect_uris: [name], meta: stamps };
  const server = Bun.serve({
    port: 0,
    hostname: '127.0.0.1',
    routes: {
      '/oauth/access_token': Response.json({ access_token: 'x', expires_in: 60 }),
      '/v2/authentication-realms': Response.json({ data: [record], meta: {}, links: { next: null } }),
      '/v2/authentication-realms/:id': {
        GET: Response.json({ data: record, links: { self: name } }),
        DELETE: Response.json({ errors: [{ status: '422', title: name, detail: name }] }, { status: 422 }),
      },
    },
  });
  const more = { AUTHREALM_URL: server.url.origin };
  for (const args of [
    ['get', 'realm', realm],
    ['list', 'realm'],
    ['delete', '--yes', 'realm', realm],
  ]) {
    const { stdout, stderr } = await run(args, { more });
    expect(stdout + stderr).toContain('a\\u{1b}[2J\\u{7}\\u{9b}31m\\u{202e}b\\u{2028}\\u{d}\\u{a}');
    expect((stdout + stderr).replaceAll('\n', '')).not.toMatch(/[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]/u);
  }
  const asJson = await output(['list', 'realm', '--json'], { more });
  expect(asJson.trimEnd()).not.toMatch(/[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]/u);
  expect(JSON.parse(asJson)).toMatchObject({ name, redirect_uris: [name] });
  await server.stop(true);
});
