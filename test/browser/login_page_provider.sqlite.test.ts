import { afterAll, expect, setDefaultTimeout, test } from 'bun:test';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { Provider } from 'oidc-provider';
import type { Page } from 'playwright-core';
import { realm } from '../../src/model/resources.ts';
import { DISCOVERY } from '../support/issuers.ts';
import { createOidcProfile } from '../support/oidc_sign_in.ts';
import { signInAtProvider, signInOnPages } from '../support/provider_pages.ts';
import { startService } from '../support/service.ts';
import { createSettingsRealms } from '../support/settings_realms.ts';
import { createPassword, createSignInClient, enableSelfSignup } from '../support/sign_in.ts';
import { expectNoErrors } from './console_session.ts';
import { BROWSER_TEST_MS, openWindow } from './console_window.ts';
import { installLoginPage, isBusy, noteOf, openPage, press, signedIn, typePassword } from './login_page.ts';

/** Registration, and sign-in through a real provider (oidc-provider from npm), at the example of docs/guides/login-page.md. */

setDefaultTimeout(BROWSER_TEST_MS);

const people: Readonly<Record<string, string>> = { jill: 'jill@example.com', carl: 'carl@example.com' };
const server = createServer();
await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
const issuer = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
const service = await startService({ allowPrivate: '127.0.0.0/8' });
const { accounts } = await createSettingsRealms(service.db);
const { profile } = await createPassword(service.db, accounts);
const { clientId, secret } = await createSignInClient(service, {
  scope: 'sign-in sign-up oidc-profile-infos:write',
});
const token = await service.token('settings:write realms:write');
await enableSelfSignup(service, token);
const data = { type: realm.type, duplicate_email_policy: 'api_only' };
expect((await service.put(`/v2/authentication-realms/${accounts}`, token, { data })).status).toBe(200);
const start = await installLoginPage();
const login = await start('node', {
  ...{ AUTHREALM_URL: service.url, AUTHREALM_CLIENT_ID: clientId, AUTHREALM_CLIENT_SECRET: secret },
  ...{ REALM: accounts, PASSWORD_PROFILE: profile },
  OIDC_PROFILE: await createOidcProfile(service.db, accounts, issuer),
  ...{ PROVIDER_NAME: 'Example', PROVIDER_DISCOVERY_URL: issuer + DISCOVERY },
  ...{ PROVIDER_CLIENT_ID: 'shop', PROVIDER_CLIENT_SECRET: 'a secret+of the shop' },
});
const shop = { client_id: 'shop', client_secret: 'a secret+of the shop' };
const provider = new Provider(issuer, {
  clients: [{ ...shop, redirect_uris: [`${login.url}/callback`] }],
  claims: { openid: ['sub'], email: ['email', 'email_verified'] },
  // The check of an ID token reads no userinfo.
  conformIdTokenClaims: false,
  findAccount: (_: unknown, id: string) => ({
    accountId: id,
    claims: () => ({ sub: id, email: people[id], email_verified: true }),
  }),
});
server.on('request', provider.callback());
afterAll(async () => {
  await login.running.stop();
  server.closeAllConnections();
  server.close();
});

async function openVisitor(): Promise<Page> {
  const page = await openPage(login.url);
  // The pages of the provider load a font.
  await page.route('https://fonts.googleapis.com/**', (route) =>
    route.fulfill({ contentType: 'text/css', body: '' }),
  );
  return page;
}
const leave = (page: Page, name: string) => page.getByRole('button', { name, exact: true }).click();

/** Starts a sign-in through the provider, and returns at its first page. */
async function leaveToProvider(page: Page, name = 'Sign in with Example'): Promise<void> {
  await leave(page, name);
  await page.locator('[name=login]').waitFor();
}

/** How a user is signed in, and the ID. */
async function userOf(page: Page): Promise<readonly string[]> {
  await signedIn(page);
  return /Signed in (.+), user (.+)\./.exec(await page.getByRole('main').innerText())?.slice(1) ?? [];
}

/** Attempts again while the machine is too busy for a password. */
async function register(page: Page, username: string, typed: string): Promise<void> {
  do {
    await page.goto(`${login.url}/register`);
    await page.getByLabel('Username').fill(username);
    await page.getByLabel('Name', { exact: true }).fill('Jill <Hill>');
    await page.getByLabel('E-mail').fill(`${username}@example.com`);
    await page.getByLabel('Password').fill(typed);
    await press(page, 'Register');
  } while (await isBusy(page));
}

async function type(page: Page, username: string, typed: string): Promise<void> {
  do await typePassword(page, username, typed);
  while (await isBusy(page));
}

const PASSWORD = 'correct horse battery';

test('a user registers, adds a provider after a sign-in by password, and signs in through it in each browser', async () => {
  const page = await openVisitor();
  await page.getByRole('link', { name: 'Register' }).click();
  await register(page, 'jill', PASSWORD);
  const [by, user] = await userOf(page);
  expect(by).toBe('as jill');
  await press(page, 'Sign out');
  // Nobody has proved that the address of a user who registered is theirs.
  await leaveToProvider(page);
  await signInOnPages(page, 'jill');
  await noteOf(page, 'No user found. Sign in with a password, then add Example.');
  await type(page, 'jill', PASSWORD);
  expect(await userOf(page)).toEqual(['as jill', String(user)]);
  await leave(page, 'Add Example');
  await page.waitForURL(`${login.url}/`);
  expect(await userOf(page)).toEqual(['as jill', String(user)]);
  await press(page, 'Sign out');
  await leave(page, 'Sign in with Example');
  expect(await userOf(page)).toEqual(['through Example', String(user)]);
  expect((await page.context().cookies(login.url)).map(({ name }) => name).sort()).toEqual([
    'device',
    'session',
  ]);
  const other = await openVisitor();
  await leaveToProvider(other);
  await signInOnPages(other, 'jill');
  expect(await userOf(other)).toEqual(['through Example', String(user)]);
  await Promise.all([page, other].map((each) => each.context().close()));
});

test('a login of another user is not added, and a new one at the provider is a new user', async () => {
  const carl = await openVisitor();
  await leaveToProvider(carl);
  await signInOnPages(carl, 'carl');
  expect(await userOf(carl)).toEqual(['through Example', expect.stringMatching(/^[0-9a-f-]{36}$/)]);
  const page = await openVisitor();
  await register(page, 'jack', PASSWORD);
  const jack = await userOf(page);
  await leaveToProvider(page, 'Add Example');
  await signInOnPages(page, 'carl');
  await noteOf(page, 'Not added: it is the login of another user.');
  expect(await userOf(page)).toEqual(jack);
  await Promise.all([page, carl].map((each) => each.context().close()));
});

test('an answer of the provider is refused in another browser, and after another user signed in', async () => {
  const begun = await fetch(`${login.url}/provider`, { method: 'POST', headers: { Origin: login.url } });
  const [, first = ''] = begun.headers.get('refresh')?.split('url=') ?? [];
  const [flow = ''] = begun.headers.getSetCookie().map((each) => each.split(';', 1)[0] ?? '');
  const answer = await signInAtProvider(first, 'carl', (url) => url.startsWith(login.url));
  const page = await openVisitor();
  await register(page, 'joan', PASSWORD);
  const joan = await userOf(page);
  const session = (await page.context().cookies(login.url)).find(({ name }) => name === 'session')?.value;
  const visit = async (Cookie: string) => {
    const { status, headers } = await fetch(answer, { redirect: 'manual', headers: { Cookie } });
    return [status, ...headers.getSetCookie().map((each) => each.split('=', 1)[0])];
  };
  expect(await visit('')).toEqual([400, 'flow']);
  expect(await visit(`${flow}; session=${session}`)).toEqual([400, 'flow']);
  await page.reload();
  expect(await userOf(page)).toEqual(joan);
  expect(await visit(flow)).toEqual([303, 'session', 'flow']);
  await page.context().close();
});

test('a sign-in that is cancelled at the provider signs nobody in', async () => {
  const page = await openVisitor();
  await leaveToProvider(page);
  await page.getByRole('link', { name: /Cancel|Abort/i }).click();
  await noteOf(page, 'Not signed in. Try again.');
  await page.context().close();
});

test('the form to register shows rules and taken names, keeps what was typed, and says when it is closed', async () => {
  const page = await openVisitor();
  await register(page, 'mary', PASSWORD);
  await signedIn(page);
  await press(page, 'Sign out');
  await register(page, 'MARY', PASSWORD);
  await noteOf(page, 'This username is taken.');
  expect(await page.getByLabel('Name', { exact: true }).inputValue()).toBe('Jill <Hill>');
  const headers = { Origin: login.url };
  const body = new URLSearchParams({ username: 'bob', name: 'Bob', email: 'bob', password: 'short' });
  const short = await fetch(`${login.url}/register`, { method: 'POST', headers, body });
  expect([short.status, await short.text()]).toEqual([400, expect.stringMatching(/role="alert">[^<]+</)]);
  await enableSelfSignup(service, token, false);
  await register(page, 'bill', PASSWORD);
  await noteOf(page, 'Registration is closed.');
  await enableSelfSignup(service, token);
  await page.context().close();
});

test('the pages to register and to sign in through a provider have no accessibility violation', async () => {
  const window = await openWindow(login.url);
  for (const path of ['/', '/register']) {
    await window.page.goto(login.url + path);
    await expectNoErrors(window);
  }
  await window.close();
});
