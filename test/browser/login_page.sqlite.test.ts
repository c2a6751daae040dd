import { afterAll, describe, expect, setDefaultTimeout, test } from 'bun:test';
import type { Page } from 'playwright-core';
import { realm } from '../../src/model/resources.ts';
import { systemClock } from '../../src/ops/process/clock.ts';
import { findPort } from '../support/daemons.ts';
import { insertRecord, realmMembers, startService } from '../support/service.ts';
import { createPassword, createSignInClient, from, signInTokenOf } from '../support/sign_in.ts';
import { expectNoErrors } from './console_session.ts';
import { BROWSER_TEST_MS, openWindow } from './console_window.ts';
import { installLoginPage, isBusy, noteOf, openPage, press, signedIn, typePassword } from './login_page.ts';

/** Sign-in by password at the example of docs/guides/login-page.md. */

setDefaultTimeout(BROWSER_TEST_MS);

// With metrics, which count late checks.
const service = await startService({ metrics: '127.0.0.1:0' });
const REALM = systemClock.mintId();
await insertRecord(service.db, realm, [REALM], realmMembers);
const { profile } = await createPassword(service.db, REALM);
const newUser = () => createPassword(service.db, REALM, { profile });
const { clientId, secret } = await createSignInClient(service);
const install = await installLoginPage();
const startLoginPage = (runtime: string, more: Record<string, string> = {}) =>
  install(runtime, {
    ...{ AUTHREALM_URL: service.url, AUTHREALM_CLIENT_ID: clientId, AUTHREALM_CLIENT_SECRET: secret },
    ...{ REALM, PASSWORD_PROFILE: profile, ...more },
  });

/** A wrong password more is allowed after this time. */
const REFILL_MS = 90_000;

/** How many checks ended too late on a busy machine: they are answered 503, and count as wrong. */
async function lateChecks(): Promise<number> {
  const families = await service.server.metrics.own();
  const errors = families.find(({ name }) => name === 'authrealm_errors_total');
  const samples = errors && 'samples' in errors ? errors.samples : [];
  return samples.find(({ labels }) => labels.cause === 'WORKER_TIMEOUT')?.value ?? 0;
}

/** Attempts again while the machine is too busy for the check. Returns how often it was. */
async function untilChecked(attempt: () => Promise<{ readonly isBusy: boolean }>): Promise<number> {
  for (let busy = 0; ; busy += 1) {
    const late = await lateChecks();
    if (!(await attempt()).isBusy) return busy;
    if ((await lateChecks()) > late) service.clock.advance(REFILL_MS);
    await Bun.sleep(100);
  }
}

const type = (page: Page, username: string, password: string) =>
  untilChecked(async () => {
    await typePassword(page, username, password);
    return { isBusy: await isBusy(page) };
  });

/** Sends the form without a browser. */
async function post(url: string, form: Record<string, string>, headers: Record<string, string>) {
  const init = { method: 'POST', redirect: 'manual', headers, body: new URLSearchParams(form) } as const;
  let answer = new Response();
  await untilChecked(async () => {
    answer = await fetch(`${url}/sign-in`, init);
    return { isBusy: answer.status === 503 };
  });
  return answer;
}

describe.each([
  ['Node.js', 'node'],
  ['Bun', process.execPath],
])('the login page under %s', async (_, runtime) => {
  const login = await startLoginPage(runtime);
  afterAll(() => login.running.stop());

  test('a right password signs in until the user signs out, and no script sees a cookie', async () => {
    const { username, user, password } = await newUser();
    const page = await openPage(login.url);
    await type(page, username, password);
    await signedIn(page);
    expect(await page.getByRole('main').innerText()).toContain(`Signed in as ${username}, user ${user}.`);
    expect(await page.evaluate('document.cookie')).toBe('');
    const cookies = await page.context().cookies();
    expect(cookies.map(({ name, httpOnly, sameSite }) => [name, httpOnly, sameSite]).sort()).toEqual([
      ['device', true, 'Lax'],
      ['session', true, 'Lax'],
    ]);
    await page.reload();
    await signedIn(page);
    await press(page, 'Sign out');
    await page.getByRole('button', { name: 'Sign in', exact: true }).waitFor();
    const { value = '' } = cookies.find(({ name }) => name === 'session') ?? {};
    const later = await fetch(login.url, { headers: { Cookie: `session=${value}` } });
    expect(await later.text()).not.toContain('Signed in');
    await page.context().close();
  });

  test('a wrong password and an unknown username look the same, and typed markup is text', async () => {
    const { username } = await newUser();
    const page = await openPage(login.url);
    await type(page, username, 'wrong horse');
    await noteOf(page, 'Wrong username or password.');
    const ofKnown = await page.content();
    const markup = `"><img src=x onerror=alert(1)>`;
    await type(page, markup, 'wrong horse');
    expect(await page.getByLabel('Username').inputValue()).toBe(markup);
    expect(await page.locator('img').count()).toBe(0);
    await type(page, 'nobody', 'wrong horse');
    expect(await page.getByLabel('Username').inputValue()).toBe('nobody');
    expect((await page.content()).replace('nobody', username)).toBe(ofKnown);
    await page.context().close();
  });

  test('after ten wrong passwords the page shows how long to wait, and then the right one signs in', async () => {
    const { username, password } = await newUser();
    const page = await openPage(login.url);
    let wrong = 0;
    const began = performance.now();
    await type(page, username, 'wrong horse');
    for (; !(await page.getByRole('alert').innerText()).includes('Too many attempts.'); wrong += 1) {
      await noteOf(page, 'Wrong username or password.');
      await type(page, username, 'wrong horse');
    }
    const refilled = Math.floor((performance.now() - began) / REFILL_MS);
    expect(wrong).toBeWithin(10, 10 + refilled + 1);
    await type(page, username, password);
    await noteOf(page, 'Too many attempts.');
    const [, wait] = /Try again in (\d+) seconds/.exec(await page.getByRole('alert').innerText()) ?? [];
    expect(Number(wait)).toBeGreaterThan(0);
    expect(Number(wait)).toBeLessThanOrEqual(90);
    service.clock.advance(Number(wait) * 1_000);
    await type(page, username, password);
    await signedIn(page);
    await page.context().close();
  });

  test('the pages have no accessibility violation, and keep their policy', async () => {
    const { username, password } = await newUser();
    const window = await openWindow(login.url);
    await window.page.goto(login.url);
    await expectNoErrors(window);
    if ((await type(window.page, username, password)) > 0) await window.expectError(/status of 503/);
    await signedIn(window.page);
    await expectNoErrors(window);
  });

  test('a form of another site signs nobody in, and a form that is too large is not read', async () => {
    const { username, password } = await newUser();
    const postFrom = (Origin: string, form: Record<string, string>) => post(login.url, form, { Origin });
    const foreign = await postFrom('https://evil.example', { username, password });
    expect([foreign.status, foreign.headers.getSetCookie()]).toEqual([403, []]);
    expect((await postFrom(login.url, { username, password: 'x'.repeat(20_000) })).status).toBe(413);
    const own = await postFrom(login.url, { username, password, next: 'https://evil.example' });
    expect([own.status, own.headers.get('location')]).toEqual([303, '/']);
  });
});

test('during a flood from many addresses the browser that signed in before gets in, and no other', async () => {
  const login = await startLoginPage('node');
  const { username, password } = await newUser();
  const own = await openPage(login.url);
  await type(own, username, password);
  await signedIn(own);
  await press(own, 'Sign out');
  const token = await signInTokenOf(service);
  const path = `/v2/authentication-realms/${REALM}/password-profiles/${profile}/check`;
  const statuses: number[] = [];
  const late = await lateChecks();
  for (let count = 0; statuses.at(-1) !== 429 && count < 110; count += 1) {
    const data = { type: 'password_check', username, password: `guess ${count}` };
    statuses.push((await service.post(path, token, { data }, from(`198.51.100.${count}`))).status);
  }
  expect(statuses.length + (await lateChecks()) - late).toBeGreaterThan(100);
  expect(statuses.at(-1)).toBe(429);
  const other = await openPage(login.url);
  await type(other, username, password);
  await noteOf(other, 'Too many attempts.');
  await type(own, username, password);
  await signedIn(own);
  await Promise.all([own, other].map((page) => page.context().close()));
  await login.running.stop();
});

test('behind a proxy with https the cookies are secure, and the address is the one that the proxy adds', async () => {
  const origin = 'https://shop.example';
  const login = await startLoginPage('node', { ORIGIN: origin, BEHIND_PROXY: '1' });
  const { username, password } = await newUser();
  const signIn = (typed: string, address: string) =>
    post(
      login.url,
      { username, password: typed },
      { Origin: origin, 'X-Forwarded-For': `203.0.113.1, ${address}` },
    );
  const right = await signIn(password, '198.51.100.7');
  expect(right.headers.getSetCookie()).toEqual([
    expect.stringMatching(
      /^__Host-session=[\w-]{43}; Max-Age=28800; Path=\/; HttpOnly; SameSite=Lax; Secure$/,
    ),
    expect.stringMatching(
      /^__Host-device=[\w-]{86}; Max-Age=15552000; Path=\/; HttpOnly; SameSite=Lax; Secure$/,
    ),
  ]);
  for (let count = 0; count < 10; count += 1)
    expect((await signIn('wrong horse', '198.51.100.7')).status).toBe(400);
  const refused = await signIn(password, '198.51.100.7');
  expect([refused.status, Number(refused.headers.get('retry-after')) > 0]).toEqual([429, true]);
  expect((await signIn(password, '198.51.100.8')).status).toBe(303);
  await login.running.stop();
});

test('without the service the page says so, and the log has neither username nor password', async () => {
  const login = await startLoginPage('node', { AUTHREALM_URL: `http://127.0.0.1:${findPort()}` });
  const page = await openPage(login.url);
  await typePassword(page, 'jane@example.com', 'correct horse battery staple');
  await noteOf(page, 'Sign-in is not available.');
  await login.running.stop();
  expect(login.running.output()).toMatch(/without a response: ECONNREFUSED/);
  expect(login.running.output()).not.toMatch(/jane|correct|horse/);
  await page.context().close();
});
