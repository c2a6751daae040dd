import { expect, test } from 'bun:test';
import { type ConsoleSession, postConsoleToken, sameOrigin } from '../support/console_sign_in.ts';
import { freshDatabase } from '../support/database.ts';
import { AUTHREALM, runAuthrealm, runCommand } from '../support/processes.ts';
import { serveWithClient } from '../support/service_process.ts';

/** `authrealm console link` and `console sessions`, and the processes that accept codes and sessions. */

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
}, 300_000);

test('the commands list the sessions of a running service, and end one of them on every process', async () => {
  const database = await freshDatabase();
  const run = (...words: string[]) => runAuthrealm(['console', ...words, ...database.args]);
  const client = { client_id: 'nobody', client_secret: 'nothing' };
  const served = await serveWithClient(database, client, ['--processes', '2']);
  const signIn = async (label: string) => {
    const { stdout } = await run('link', '--role', 'support', '--label', label, '--json');
    const code = (JSON.parse(stdout) as { url: string }).url.split('#code=')[1] ?? '';
    const answer = await postConsoleToken(served, { grant: 'link', code }, sameOrigin(served));
    return ((await answer.json()) as { data: ConsoleSession }).data;
  };
  const [anna, berta] = [await signIn('Anna'), await signIn('Berta')];
  expect(anna.scope.split(' ').filter((scope) => !scope.endsWith(':read'))).toEqual([
    'oidc-profile-infos:write',
    'sign-in-throttles:write',
  ]);
  expect(anna.scope).toContain('changes:read');
  const list = async () => JSON.parse((await run('sessions', 'list', '--json')).stdout) as StoredSession[];
  const [first, second] = await list();
  expect([first, second].map((session) => session?.actor)).toEqual(['console:Anna', 'console:Berta']);
  expect(Object.keys(first ?? {}).join(' ')).toBe(
    'session_id actor scope realms begun_at renewed_at ends_at',
  );
  const id = first?.session_id ?? '';
  expect(await run('sessions', 'end', id)).toEqual({
    code: 0,
    stdout: `${id} of console:Anna has ended\n`,
    stderr: '',
  });
  await Bun.sleep(1_000);
  const statusOf = async ({ access_token: token }: ConsoleSession) => {
    const headers = { Authorization: `Bearer ${token}`, Connection: 'close' };
    return (await fetch(`${served.url}/v2/authentication-realms`, { headers })).status;
  };
  for (let request = 0; request < 8; request += 1)
    expect([await statusOf(anna), await statusOf(berta)]).toEqual([401, 200]);
  expect((await list()).map(({ actor }) => actor)).toEqual(['console:Berta']);
  expect(await run('sessions', 'end', id)).toEqual({
    ...{ code: 1, stdout: '' },
    stderr: `authrealm: no console session ${id}, or it has ended: list them with "authrealm console sessions list"\n`,
  });
}, 300_000);

test('console link takes a role, scopes or both, and fails without either', async () => {
  const { args } = await freshDatabase();
  const link = (...words: string[]) => runAuthrealm(['console', 'link', ...words, ...args]);
  for (const words of [
    ['--role', 'read', '--scope', 'transfer'],
    ['--role', 'everything'],
  ])
    expect(await link(...words)).toMatchObject({ code: 0, stderr: '' });
  const missing = {
    code: 2,
    stdout: '',
    stderr: expect.stringMatching(/^authrealm: pass --role, or in --scope any of: /),
  };
  for (const words of [[], ['--scope', ''], ['--role', 'read', '--scope', 'read']])
    expect(await link(...words)).toMatchObject(missing);
  expect(await link('--role', 'admin')).toMatchObject({ code: 2, stdout: '' });
  const limited = await link('--role', 'everything', '--realm', crypto.randomUUID());
  expect(limited).toMatchObject({ code: 1, stderr: expect.stringContaining('reaches every realm') });
}, 300_000);

interface StoredSession {
  readonly session_id: string;
  readonly actor: string;
}
