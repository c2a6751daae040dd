import { expect, test } from 'bun:test';
import { postConsoleToken, sameOrigin } from '../support/console_sign_in.ts';
import { freshDatabase } from '../support/database.ts';
import { AUTHREALM, runCommand } from '../support/processes.ts';
import { serveWithClient } from '../support/service_process.ts';

/** `authrealm console link`, and the processes that accept its code. */

test('a console link of the command works once, on any process and after a restart', async () => {
  const database = await freshDatabase();
  const { args } = database;
  const createLink = async (...more: string[]) => {
    const { stdout, stderr, code } = await runCommand([
      ...[AUTHREALM, 'console', 'link', '--scope', 'users:read', '--label', 'Carla', ...more],
      ...args,
    ]);
    expect([code, stderr]).toEqual([0, '']);
    return stdout;
  };
  const plain = await createLink('--base-url', 'https://idp.example/sso');
  expect(plain).toMatch(/^https:\/\/idp\.example\/sso\/console#code=[\w-]{22}\n/);
  const client = { client_id: 'nobody', client_secret: 'nothing' };
  const first = await serveWithClient(database, client, ['--processes', '2']);
  const second = await serveWithClient(database, client);
  const codeOf = async () =>
    (JSON.parse(await createLink('--json')) as { url: string }).url.split('#code=')[1] ?? '';
  const statusOf = async (served: { url: string }, code: string) =>
    (await postConsoleToken(served, { grant: 'link', code }, { ...sameOrigin(served), Connection: 'close' }))
      .status;
  const code = await codeOf();
  const statuses = await Promise.all(
    [first, second, first, second, first, first].map((served) => statusOf(served, code)),
  );
  expect(statuses.sort()).toEqual([200, 400, 400, 400, 400, 400]);
  const unused = await codeOf();
  await Promise.all([first.running.stop(), second.running.stop()]);
  const restarted = await serveWithClient(database, client);
  expect([await statusOf(restarted, unused), await statusOf(restarted, unused)]).toEqual([200, 400]);
  await restarted.running.stop();
}, 300_000);
