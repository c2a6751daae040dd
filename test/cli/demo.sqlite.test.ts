import { afterAll, describe, expect, setDefaultTimeout, test } from 'bun:test';
import { readdirSync } from 'node:fs';
import { type ConsoleSession, postConsoleToken, sameOrigin } from '../support/console_sign_in.ts';
import { AUTHREALM, startCommand } from '../support/processes.ts';
import { freshFolder } from '../support/service.ts';

/** The data and the console sign-in that `authrealm demo` serves. */

setDefaultTimeout(300_000);

const running = startCommand([AUTHREALM, 'demo']);
const url = (await running.line(/^serving a demo realm on /)).slice('serving a demo realm at '.length);
const signInUrl = await running.line(/^http:\/\/127\.0\.0\.1:\d+\/demo$/);
afterAll(() => running.stop());

test('demo that receives a signal during its start exits with 0 and leaves no file', async () => {
  const folder = freshFolder();
  const demo = startCommand([AUTHREALM, 'demo'], { TMPDIR: folder });
  while (readdirSync(folder).length === 0) {
    if (demo.process.exitCode !== null) throw new Error(demo.output());
    await Bun.sleep(1);
  }
  expect(await demo.stop()).toBe(0);
  expect(readdirSync(folder)).toEqual([]);
});

const requestSignIn = (headers: Record<string, string> = {}) =>
  fetch(signInUrl, { redirect: 'manual', headers });
const codeIn = (answer: Response) =>
  /^\/console#code=([\w-]{22})$/.exec(answer.headers.get('location') ?? '')?.[1] ?? '';

async function signIn(): Promise<ConsoleSession> {
  const answer = await postConsoleToken({ url }, { grant: 'link', code: codeIn(await requestSignIn()) });
  expect(answer.status).toBe(200);
  return ((await answer.json()) as { data: ConsoleSession }).data;
}

test('each request for the sign-in path redirects to the console with a new code for every scope', async () => {
  expect(signInUrl).toBe(`${url}/demo`);
  const answers = [await requestSignIn(), await requestSignIn()];
  expect(answers.map(({ status }) => status)).toEqual([303, 303]);
  expect(answers[0]?.headers.get('cache-control')).toBe('no-store');
  const [first, second] = answers.map(codeIn);
  expect(first).not.toBe(second as string);
  const session = await signIn();
  expect(session).toMatchObject({ label: 'demo', realms: '*', scope: expect.stringContaining('admin') });
});

test('a sign-in code of the demo is refused to a page whose name resolves to this machine', async () => {
  const Host = `evil.example:${new URL(url).port}`;
  const code = codeIn(await requestSignIn({ Host }));
  const headers = { Host, ...sameOrigin({ url: `http://${Host}` }) };
  const answer = await postConsoleToken({ url }, { grant: 'link', code }, headers);
  expect([code.length, answer.status]).toEqual([22, 403]);
});

describe('the data of the demo', () => {
  test('the demo has realms, profiles, users with names in many scripts, and log entries about them', async () => {
    const { access_token: token } = await signIn();
    const headers = { Authorization: `Bearer ${token}` };
    const dataAt = async (path: string) =>
      ((await (await fetch(`${url}${path}`, { headers })).json()) as { data: Record<string, string>[] }).data;
    const realms = await dataAt('/v2/authentication-realms');
    expect(realms).toHaveLength(2);
    const realm = realms.find(({ name }) => name === 'Buyer Organization')?.id;
    const at = `/v2/authentication-realms/${realm}`;
    const users = await dataAt(`${at}/user-authentication-info?page[limit]=100`);
    expect(users.length).toBeGreaterThan(20);
    const names = users.map(({ name }) => name).join(' ');
    for (const script of ['Hebrew', 'Arabic', 'Han', 'Cyrillic', 'Devanagari', 'Greek', 'Hangul'])
      expect([script, new RegExp(`\\p{Script=${script}}`, 'u').test(names)]).toEqual([script, true]);
    expect(names).toMatch(/\p{Emoji_Presentation}/u);
    for (const profiles of ['oidc-profiles', 'password-profiles']) {
      expect(await dataAt(`${at}/${profiles}`)).toHaveLength(2);
    }
    const actions = new Set<string | undefined>();
    for (const { id } of users) {
      for (const entry of await dataAt(`/admin/v1/realms/${realm}/log?page[limit]=100&user_id=${id}`)) {
        actions.add(entry.what?.split('.').at(-1));
      }
    }
    expect([...actions].sort()).toEqual(['created', 'updated']);
    const changes = await fetch(`${url}${at}/changes?limit=100`, { headers });
    expect(await changes.text()).toContain('user-authentication-info.created');
  });

  test('the demo reports request durations in its metrics', async () => {
    const { access_token: token } = await signIn();
    const answer = await fetch(`${url}/admin/v1/metrics`, { headers: { Authorization: `Bearer ${token}` } });
    const { data } = (await answer.json()) as { data: { families: { name: string }[] } };
    expect(data.families.map(({ name }) => name)).toContain('authrealm_request_duration_seconds');
  });

  test('the demo logs the console sign-in with its label', async () => {
    const { access_token: token } = await signIn();
    const headers = { Authorization: `Bearer ${token}` };
    const answer = await fetch(`${url}/admin/v1/log?page[limit]=100`, { headers });
    const { data } = (await answer.json()) as { data: { what: string; actor: string }[] };
    expect(data.some(({ what, actor }) => what === 'session.begun' && actor === 'console:demo')).toBe(true);
  });
});
