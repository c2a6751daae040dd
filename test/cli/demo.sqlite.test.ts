import { afterAll, beforeAll, describe, expect, setDefaultTimeout, test } from 'bun:test';
import { readdirSync } from 'node:fs';
import { demoSignIn } from '../../src/cli/demo_service.ts';
import { type ServerSettings, startServer } from '../../src/http/server/server.ts';
import { type ConsoleSession, postConsoleToken } from '../support/console_sign_in.ts';
import { AUTHREALM, type RunningCommand, startCommand } from '../support/processes.ts';
import { freshFolder, startService } from '../support/service.ts';

/** What `authrealm demo` goes on serving: something to look at, and a way into its console. */

setDefaultTimeout(300_000);

const LISTENING: ServerSettings = {
  ...{ host: '127.0.0.1', port: 0, tls: undefined, isShared: false, trustedProxies: [] },
  ...{ forwardedHeader: 'x-forwarded-for', requestLogging: 'off', corsOrigins: [] },
};

let running: RunningCommand;
let url: string;
let door: string;

beforeAll(async () => {
  running = startCommand([AUTHREALM, 'demo']);
  url = (await running.line(/^serving a demo realm at /)).slice('serving a demo realm at '.length);
  door = await running.line(/^http:\/\/127\.0\.0\.1:\d+\/demo$/);
}, 300_000);
afterAll(() => running.stop());

test('a signal while it begins ends it, and nothing of it stays', async () => {
  const folder = freshFolder();
  const begun = startCommand([AUTHREALM, 'demo'], { TMPDIR: folder });
  while (readdirSync(folder).length === 0) {
    if (begun.process.exitCode !== null) throw new Error(begun.output());
    await Bun.sleep(1);
  }
  expect(await begun.stop()).toBe(0);
  expect(readdirSync(folder)).toEqual([]);
});

const knock = (headers: Record<string, string> = {}) => fetch(door, { redirect: 'manual', headers });
const codeIn = (answer: Response) =>
  /^\/console#code=([\w-]{22})$/.exec(answer.headers.get('location') ?? '')?.[1] ?? '';

async function signIn(): Promise<ConsoleSession> {
  const answer = await postConsoleToken({ url }, { grant: 'link', code: codeIn(await knock()) });
  expect(answer.status).toBe(200);
  return ((await answer.json()) as { data: ConsoleSession }).data;
}

test('it leads to the console with a code of its own each time, that is worth everything', async () => {
  expect(door).toBe(`${url}/demo`);
  const answers = [await knock(), await knock()];
  expect(answers.map(({ status }) => status)).toEqual([303, 303]);
  expect(answers[0]?.headers.get('cache-control')).toBe('no-store');
  const [one, other] = answers.map(codeIn);
  expect(one).not.toBe(other as string);
  const told = await signIn();
  expect(told).toMatchObject({ label: 'demo', realms: '*', scope: expect.stringContaining('admin') });
});

test.each(['evil.example', 'evil.example:80', '127.0.0.1', 'localhost', '127.0.0.1.evil.example'])(
  'under the name %s it answers 421, and gives no code',
  async (host) => {
    const answer = await knock({ Host: host });
    expect([answer.status, answer.headers.get('location')]).toEqual([421, null]);
  },
);

test('at port 80 a browser names no port', async () => {
  const service = await startService();
  const at80 = async () => [demoSignIn(service.db.engine.access, 'http://127.0.0.1:80')];
  const { url: here, stop } = await startServer(LISTENING, { write: () => undefined }, at80);
  const ask = (Host: string) => fetch(`${here}/demo`, { redirect: 'manual', headers: { Host } });
  const statuses = await Promise.all(['127.0.0.1', 'localhost', 'evil.example'].map(ask));
  expect(statuses.map(({ status }) => status)).toEqual([303, 303, 421]);
  await stop();
  await service.stop();
});

test('this machine may be called localhost', async () => {
  const { port } = new URL(url);
  expect((await knock({ Host: `localhost:${port}` })).status).toBe(303);
});

describe('there is enough to look at:', () => {
  test('realms, profiles, people of many scripts, and what happened to them', async () => {
    const { access_token: token } = await signIn();
    const headers = { Authorization: `Bearer ${token}` };
    const ask = async (path: string) =>
      ((await (await fetch(`${url}${path}`, { headers })).json()) as { data: Record<string, string>[] }).data;
    const realms = await ask('/v2/authentication-realms');
    expect(realms).toHaveLength(2);
    const home = realms.find(({ name }) => name === 'Buyer Organization')?.id;
    const at = `/v2/authentication-realms/${home}`;
    const users = await ask(`${at}/user-authentication-info?page[limit]=100`);
    expect(users.length).toBeGreaterThan(20);
    const names = users.map(({ name }) => name).join(' ');
    for (const script of ['Hebrew', 'Arabic', 'Han', 'Cyrillic', 'Devanagari', 'Greek', 'Hangul'])
      expect([script, new RegExp(`\\p{Script=${script}}`, 'u').test(names)]).toEqual([script, true]);
    expect(names).toMatch(/\p{Emoji_Presentation}/u);
    for (const profiles of ['oidc-profiles', 'password-profiles']) {
      expect(await ask(`${at}/${profiles}`)).toHaveLength(2);
    }
    const what = new Set<string | undefined>();
    for (const { id } of users) {
      for (const entry of await ask(`/admin/v1/realms/${home}/log?page[limit]=100&user_id=${id}`)) {
        what.add(entry.what?.split('.').at(-1));
      }
    }
    expect([...what].sort()).toEqual(['created', 'updated']);
    const changes = await fetch(`${url}${at}/changes?limit=100`, { headers });
    expect(await changes.text()).toContain('user-authentication-info.created');
  });

  test('requests and how long they take are counted', async () => {
    const { access_token: token } = await signIn();
    const answer = await fetch(`${url}/admin/v1/metrics`, { headers: { Authorization: `Bearer ${token}` } });
    const { data } = (await answer.json()) as { data: { families: { name: string }[] } };
    expect(data.families.map(({ name }) => name)).toContain('authrealm_request_duration_seconds');
  });

  test('who signed in stands in the log', async () => {
    const { access_token: token } = await signIn();
    const headers = { Authorization: `Bearer ${token}` };
    const answer = await fetch(`${url}/admin/v1/log?page[limit]=100`, { headers });
    const { data } = (await answer.json()) as { data: { what: string; actor: string }[] };
    expect(data.some(({ what, actor }) => what === 'session.begun' && actor === 'console:demo')).toBe(true);
  });
});
