import { expect, test } from 'bun:test';
import { postConsoleToken, sameOrigin } from '../support/console_sign_in.ts';
import { freshDatabase } from '../support/database.ts';
import { AUTHREALM, runCommand } from '../support/processes.ts';
import { serveWithClient } from '../support/service_process.ts';

/** `authrealm console link`, and processes that are shown its code. */

test('a link that the command prints is followed once, in whichever process, across a restart', async () => {
  const database = await freshDatabase();
  const { args } = database;
  const made = async (...more: string[]) => {
    const { stdout, stderr, code } = await runCommand([
      ...[AUTHREALM, 'console', 'link', '--scope', 'users:read', '--label', 'Carla', ...more],
      ...args,
    ]);
    expect([code, stderr]).toEqual([0, '']);
    return stdout;
  };
  const plain = await made('--base-url', 'https://idp.example/sso');
  expect(plain).toMatch(/^https:\/\/idp\.example\/sso\/console#code=[\w-]{22}\n/);
  const client = { client_id: 'nobody', client_secret: 'nothing' };
  const one = await serveWithClient(database, client, ['--processes', '2']);
  const other = await serveWithClient(database, client);
  const codeOf = async () =>
    (JSON.parse(await made('--json')) as { url: string }).url.split('#code=')[1] ?? '';
  const ask = async (served: { url: string }, code: string) =>
    (await postConsoleToken(served, { grant: 'link', code }, { ...sameOrigin(served), Connection: 'close' }))
      .status;
  const code = await codeOf();
  const statuses = await Promise.all([one, other, one, other, one, one].map((served) => ask(served, code)));
  expect(statuses.sort()).toEqual([200, 400, 400, 400, 400, 400]);
  const kept = await codeOf();
  await Promise.all([one.running.stop(), other.running.stop()]);
  const again = await serveWithClient(database, client);
  expect([await ask(again, kept), await ask(again, kept)]).toEqual([200, 400]);
  await again.running.stop();
}, 300_000);
