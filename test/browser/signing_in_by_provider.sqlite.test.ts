import { afterAll, describe, expect, setDefaultTimeout, test } from 'bun:test';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { Provider } from 'oidc-provider';
import type { Locator } from 'playwright-core';
import { findPort } from '../support/daemons.ts';
import { issuersFile } from '../support/issuers.ts';
import { signInOnPages } from '../support/provider_pages.ts';
import { startService } from '../support/service.ts';
import { expectNoErrors, openMenu } from './console_session.ts';
import { BROWSER_TEST_MS, type ConsoleWindow, openWindow, VIEWS } from './console_window.ts';
import { pagePaths } from './page_paths.ts';
import { createShop } from './shop_fixture.ts';

/** Sign-in by a real provider (oidc-provider from npm, on loopback), through its own pages. */

setDefaultTimeout(BROWSER_TEST_MS);

const PEOPLE: Readonly<Record<string, object>> = {
  anna: { email: 'anna@example.com', email_verified: true, groups: ['support'] },
  carl: { email: 'carl@example.com', email_verified: true, groups: ['kitchen'] },
};

/** Modifies the redirects of the provider to the console. */
let changeCallback: (back: URL) => void = () => undefined;

const isBack = (name: string, value: unknown) =>
  name.toLowerCase() === 'location' && String(value).startsWith(`${service.url}/console?`);

function changedCallback(address: string): string {
  const back = new URL(address);
  changeCallback(back);
  return back.href;
}

const server = createServer();
await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
const issuer = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
const port = findPort();
const baseUrl = `http://127.0.0.1:${port}`;
const console = { client_id: 'console', client_secret: 'a secret of the console' };
const provider = new Provider(issuer, {
  clients: [{ ...console, redirect_uris: [`${baseUrl}/console`] }],
  claims: { openid: ['sub', 'groups'], email: ['email', 'email_verified'], profile: ['name'] },
  conformIdTokenClaims: false,
  findAccount: (_: unknown, id: string) => ({
    accountId: id,
    claims: () => ({ sub: id, ...PEOPLE[id] }),
  }),
});
const answer = provider.callback();
server.on('request', (request, response) => {
  const set = response.setHeader.bind(response);
  response.setHeader = (name, value) =>
    set(name, isBack(name, value) ? changedCallback(String(value)) : value);
  answer(request, response);
});
const scopes = 'realms:read profiles:read users:read profile-infos:read';
const entry = {
  ...{ name: 'staff', issuer, audience: 'https://directory.example', console },
  rights: [{ claim: 'groups', value: 'support', scopes, realms: '*' }],
};
const settings = { baseUrl, port: String(port), badTokenRate: 'off' };
const setup = await startService({ ...settings, offline: 'true' });
const shop = await createShop(setup);
await setup.stop();
const service = await startService({
  ...setup.database.flags,
  ...{ ...settings, allowPrivate: 'localhost 127.0.0.0/8', issuersFile: issuersFile(entry) },
});
afterAll(async () => {
  server.closeAllConnections();
  server.close();
});

/** Opens this address of the console and starts a sign-in by the provider. */
async function leave(window: ConsoleWindow, fragment = ''): Promise<void> {
  // The pages of the provider load a font.
  await window.page.route('https://fonts.googleapis.com/**', (route) =>
    route.fulfill({ contentType: 'text/css', body: '' }),
  );
  await window.goto(fragment);
  await window.page.getByRole('button', { name: /^Sign in with\s+staff$/ }).click();
  await window.page.waitForURL((url) => url.origin === issuer);
}

async function expectSignIn(window: ConsoleWindow, words: RegExp): Promise<void> {
  const { page } = window;
  await page.getByRole('heading', { name: 'Sign in to the console' }).waitFor();
  await page.getByRole('status').filter({ hasText: words }).first().waitFor();
  expect(await page.evaluate('location.search')).toBe('');
  expect(await page.evaluate('sessionStorage.length')).toBe(0);
}

/** Like `expectNoErrors`, except for requests to the pages of the provider. */
async function expectSoundBut(window: ConsoleWindow): Promise<void> {
  await window.expectError(
    new RegExp(`request to another origin: (${issuer}|https://fonts.googleapis.com)$`),
  );
  await expectNoErrors(window);
}

/** Waits for what is shown after a sign-in, and retries one for which the provider was too busy. */
async function expectSignedIn(window: ConsoleWindow, shown: Locator): Promise<void> {
  const { page } = window;
  const again = page.getByRole('button', { name: 'Retry sign-in' });
  await shown.or(again).first().waitFor();
  while (await again.isVisible()) {
    await window.expectError(/status of 503/);
    const answered = page.waitForResponse(/\/console\/token$/);
    await again.click();
    if ((await answered).status() !== 503) break;
  }
  await shown.waitFor();
}

const foundUser = ({ page }: ConsoleWindow) => page.getByRole('link', { name: /Jane Doe/ }).first();

test.each(VIEWS)(
  'a sign-in by a provider returns to the requested page, $viewport.width wide, $scheme',
  async (view) => {
    const window = await openWindow(service.url, view);
    const { page } = window;
    await leave(window, pagePaths(shop).user);
    const target = new URL(page.url());
    expect(target.href).not.toContain(shop.user);
    await signInOnPages(window.page, 'anna');
    await expectSignedIn(window, page.getByRole('heading', { name: 'Jane Doe' }));
    await openMenu(window);
    await page.getByText('anna@example.com', { exact: true }).waitFor();
    expect(await page.evaluate('location.href')).toBe(`${service.url}/console${pagePaths(shop).user}`);
    expect(await page.evaluate('Object.keys(sessionStorage).join()')).toBe('authrealm.session');
    await expectSoundBut(window);
    await page.reload();
    await openMenu(window);
    await page.getByText('anna@example.com', { exact: true }).waitFor();
    await page.getByRole('button', { name: 'Sign out' }).click();
    await expectSignIn(window, /You have signed out/);
    await expectNoErrors(window);
  },
);

/** The Find page of a session that began with the provider and was ended elsewhere, with a typed text. */
async function openEndedSession() {
  const window = await openWindow(service.url);
  const { page } = window;
  await leave(window, pagePaths(shop).find);
  await signInOnPages(window.page, 'anna');
  const box = page.getByRole('searchbox');
  await expectSignedIn(window, box);
  // No request is open when the session ends: the dialog would come before the text, which it keeps out of the box.
  await window.settled();
  const session = JSON.parse((await page.evaluate(`sessionStorage['authrealm.session']`)) as string);
  await service.del('/console/token', session.grant.access_token, { Origin: service.url });
  service.clock.advance(1_000);
  await box.fill('Jane');
  await expectSignIn(window, /Your session has ended: it expired or was revoked/);
  return { window, page, box };
}

test('after a session ended, a window for the provider signs in again, and the page keeps what was typed', async () => {
  const { window, page, box } = await openEndedSession();
  await window.expectError(/status of 401/);
  const opened = page.context().waitForEvent('page');
  await page.getByRole('button', { name: /^Sign in with\s+staff$/ }).click();
  const closed = opened.then((provider) => provider.waitForEvent('close'));
  // The session at the provider is still open.
  await expectSignedIn(window, foundUser(window));
  expect(await box.inputValue()).toBe('Jane');
  expect(await page.evaluate('Object.keys(sessionStorage).join()')).toBe('authrealm.session');
  await closed;
  await expectSoundBut(window);
});

test('a window for the provider closes after a page that is busy for two seconds has accepted its response', async () => {
  const { window, page } = await openEndedSession();
  await page.evaluate(`(() => {
    const { set } = Object.getOwnPropertyDescriptor(BroadcastChannel.prototype, 'onmessage');
    Object.defineProperty(BroadcastChannel.prototype, 'onmessage', {
      set(listener) {
        set.call(this, (event) => setTimeout(() => listener(event), 2_000));
      },
    });
  })()`);
  const opened = page.context().waitForEvent('page');
  await page.getByRole('button', { name: /^Sign in with\s+staff$/ }).click();
  await (await opened).waitForEvent('close');
  await expectSignedIn(window, foundUser(window));
});

test('a sign-in by a provider is cancelled when its page is discarded meanwhile', async () => {
  const { page } = await openEndedSession();
  const { promise: discarded, resolve: discard } = Promise.withResolvers<void>();
  const requested = page.context().waitForEvent('request', (request) => request.url().startsWith(issuer));
  await page.context().route(`${issuer}/**`, async (route) => {
    await discarded;
    await route.continue();
  });
  const opened = page.context().waitForEvent('page');
  await page.getByRole('button', { name: /^Sign in with\s+staff$/ }).click();
  await requested;
  await page.getByRole('button', { name: 'Discard what was typed' }).click();
  await page.getByText('You have signed out.').waitFor();
  discard();
  await (await opened)
    .getByText(/not requested by this tab/)
    .first()
    .waitFor();
  expect(await page.evaluate('sessionStorage.length')).toBe(0);
});

test('a sign-in cancelled at the provider is reported with its error code', async () => {
  const window = await openWindow(service.url);
  await leave(window, pagePaths(shop).realms);
  await window.page.getByRole('link', { name: /Cancel|Abort/i }).click();
  await expectSignIn(window, /The provider did not sign you in \(access_denied\)/);
  expect(await window.page.evaluate('location.hash')).toBe(pagePaths(shop).realms);
  await expectSoundBut(window);
});

test('a sign-in by a provider without any rights is rejected with a message', async () => {
  const window = await openWindow(service.url);
  await leave(window);
  await signInOnPages(window.page, 'carl');
  await expectSignIn(window, /The provider authenticated you, but you have no permissions here/);
  await window.expectError(/status of 403/);
  await expectSoundBut(window);
});

describe('a forged response of a provider', () => {
  const wrong: readonly [string, (back: URL) => void, RegExp][] = [
    [
      'with a different state',
      (back) => back.searchParams.set('state', 'x'.repeat(43)),
      /not requested by this tab/,
    ],
    ['without a state', (back) => back.searchParams.delete('state'), /not requested by this tab/],
    [
      'with a different issuer',
      (back) => back.searchParams.set('iss', 'https://evil.example'),
      /came from a different provider/,
    ],
  ];
  test.each(wrong)('a response of a provider %s is rejected', async (_, change, words) => {
    const window = await openWindow(service.url);
    const { page } = window;
    const sent: string[] = [];
    page.on('request', (request) => sent.push(`${request.method()} ${new URL(request.url()).pathname}`));
    changeCallback = change;
    await leave(window);
    await signInOnPages(window.page, 'anna');
    await expectSignIn(window, words);
    changeCallback = () => undefined;
    expect(sent).toContain('POST /console/provider');
    expect(sent).not.toContain('POST /console/token');
    await expectSoundBut(window);
  });

  test('a response of a provider is rejected in a tab that did not request it', async () => {
    const window = await openWindow(service.url);
    await window.goto(`?code=stolen&state=${'x'.repeat(43)}&iss=${encodeURIComponent(issuer)}#/realms`);
    await expectSignIn(window, /not requested by this tab/);
    await expectNoErrors(window);
  });

  test('a response of a provider with an invalid code is rejected without showing the code', async () => {
    const window = await openWindow(service.url);
    const { page } = window;
    await leave(window);
    const state = new URL(page.url());
    expect(state.pathname).toMatch(/interaction|auth/);
    await window.goto('');
    const visited = JSON.parse((await page.evaluate(`sessionStorage['authrealm.visit']`)) as string);
    const back = new URLSearchParams({ code: 'nonsense-of-nobody', state: visited.state, iss: issuer });
    await window.goto(`?${back}`);
    await expectSignIn(window, /The response of the provider is no longer valid/);
    expect(await page.textContent('body')).not.toContain('nonsense-of-nobody');
    await window.expectError(/status of 400/);
    await expectSoundBut(window);
  });
});
