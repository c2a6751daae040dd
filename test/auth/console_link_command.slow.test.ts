import { expect, test } from 'bun:test';
import { serveFor } from '../support/client_service.ts';
import { freshDatabase } from '../support/database.ts';
import { AUTHREALM, runCommand } from '../support/processes.ts';
import { exchange, ownPage } from '../support/signed_in.ts';

/** `authrealm console link`, and processes that are shown its code. */

test('a link that the command prints is followed once, in whichever process, across a restart', async () => {
  const database = await freshDatabase();
  const { words } = database;
  const made = async (...more: string[]) => {
    const { stdout, stderr, code } = await runCommand([
      ...[AUTHREALM, 'console', 'link', '--scope', 'users:read', '--label', 'Carla', ...more],
      ...words,
    ]);
    expect([code, stderr]).toEqual([0, '']);
    return stdout;
  };
  const plain = await made('--base-url', 'https://idp.example/sso');
  expect(plain).toMatch(/^https:\/\/idp\.example\/sso\/console#code=[\w-]{22}\n/);
  const client = { client_id: 'nobody', client_secret: 'nothing' };
  const one = await serveFor(database, client, ['--processes', '2']);
  const other = await serveFor(database, client);
  const codeOf = async () =>
    (JSON.parse(await made('--json')) as { url: string }).url.split('#code=')[1] ?? '';
  const ask = async (served: { url: string }, code: string) =>
    (await exchange(served, { grant: 'link', code }, { ...ownPage(served), Connection: 'close' })).status;
  const code = await codeOf();
  const statuses = await Promise.all([one, other, one, other, one, one].map((served) => ask(served, code)));
  expect(statuses.sort()).toEqual([200, 400, 400, 400, 400, 400]);
  const kept = await codeOf();
  await Promise.all([one.running.stop(), other.running.stop()]);
  const again = await serveFor(database, client);
  expect([await ask(again, kept), await ask(again, kept)]).toEqual([200, 400]);
  await again.running.stop();
}, 300_000);
