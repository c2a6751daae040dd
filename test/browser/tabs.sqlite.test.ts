import { expect, test } from 'bun:test';
import { findPort } from '../support/daemons.ts';
import { type Service, startService } from '../support/service.ts';
import {
  expectNoErrors,
  expectNoErrorsInAnyView,
  openMenu,
  READ_SCOPE,
  signInByLink,
  WRITE_SCOPE,
} from './console_session.ts';
import { type ConsoleWindow, openTab, openWindow } from './console_window.ts';
import { openShop } from './open_console.ts';
import { pagePaths } from './page_paths.ts';

/** Several tabs of one browser: which of them share a session, and for how long. */

const { service, shop } = await openShop();
const USER_PAGE = pagePaths(shop).user;

const storedSession = async ({ page }: ConsoleWindow) =>
  JSON.parse((await page.evaluate(`sessionStorage['authrealm.session']`)) as string);
const tokenOf = async (window: ConsoleWindow): Promise<string> =>
  (await storedSession(window)).grant.access_token;
const statusOf = async (token: string) => (await service.get('/v2/authentication-realms', token)).status;
const janesPage = ({ page }: ConsoleWindow) => page.getByRole('heading', { name: 'Jane Doe' });
const signInOver = ({ page }: ConsoleWindow) => page.getByRole('dialog', { name: 'Sign in to the console' });
const choice = ({ page }: ConsoleWindow, label: string) =>
  page.getByRole('button', { name: new RegExp(`^Continue as\\s+${label} until `) });
const press = ({ page }: ConsoleWindow, name: string) =>
  page.getByRole('button', { name, exact: true }).click();

/** A window with the session of a link. */
async function openSignedInByLink(label?: string): Promise<ConsoleWindow> {
  const window = await openWindow(service.url);
  await signInByLink(window, service, WRITE_SCOPE, label);
  return window;
}

/** Another tab, whose first address is this one. */
async function openTabAt(window: ConsoleWindow, fragment: string): Promise<ConsoleWindow> {
  const tab = await openTab(window, service.url);
  await tab.goto(fragment);
  return tab;
}

/** Another tab with the session of the window, on the page of a user. */
async function openSecondTab(window: ConsoleWindow): Promise<ConsoleWindow> {
  const tab = await openTabAt(window, USER_PAGE);
  await janesPage(tab).waitFor();
  return tab;
}

/** Another tab of the same browser, in which another person signs in. */
async function openTabOf(window: ConsoleWindow, label: string): Promise<ConsoleWindow> {
  const tab = await openTab(window, service.url);
  await signInByLink(tab, service, WRITE_SCOPE, label);
  return tab;
}

async function typeInForm(window: ConsoleWindow, typed: string): Promise<void> {
  await press(window, 'Edit');
  await window.page.getByLabel('Family name').fill(typed);
  await window.settled();
}

async function endOnServer(token: string): Promise<void> {
  await service.del('/console/token', token, { Origin: service.url });
  service.clock.advance(1_000);
}

test('a link opened in a new tab shows its page with the session of the other tab, stored in the new tab alone', async () => {
  const first = await openSignedInByLink();
  const tab = await openSecondTab(first);
  const token = await tokenOf(first);
  expect(await tokenOf(tab)).toBe(token);
  const elsewhere = 'JSON.stringify([{ ...localStorage }, document.cookie, location.href])';
  expect(await tab.page.evaluate(elsewhere)).not.toContain(token);
  await first.page.close();
  await tab.page.reload();
  await janesPage(tab).waitFor();
  await expectNoErrors(tab);
});

test('a new tab asks which session to take if two persons are signed in, and each tab keeps its own', async () => {
  const anna = await openSignedInByLink('Anna');
  const berta = await openTabOf(anna, 'Berta');
  expect((await storedSession(anna)).grant.label).toBe('Anna');
  const tab = await openTabAt(anna, USER_PAGE);
  await choice(tab, 'Anna').waitFor();
  await choice(tab, 'Berta').waitFor();
  await expectNoErrorsInAnyView(tab);
  await choice(tab, 'Berta').click();
  await janesPage(tab).waitFor();
  expect(await tokenOf(tab)).toBe(await tokenOf(berta));

  const token = await tokenOf(berta);
  await press(anna, 'Sign out');
  await anna.page.getByText('You have signed out.').waitFor();
  await choice(anna, 'Berta').waitFor();
  expect(await anna.page.evaluate('sessionStorage.length')).toBe(0);
  service.clock.advance(1_000);
  for (const window of [berta, tab]) {
    await window.page.getByRole('link', { name: 'Realms', exact: true }).first().click();
    await window.page.getByRole('heading', { name: 'Realms', exact: true }).waitFor();
    await window.page.getByText('Buyer Organization').waitFor();
    expect(await tokenOf(window)).toBe(token);
    await expectNoErrors(window);
  }
});

test('signing out ends every tab of the session, discards what was typed there, and revokes its token', async () => {
  const first = await openSignedInByLink();
  const tab = await openSecondTab(first);
  await typeInForm(tab, 'Typed before the end');
  const token = await tokenOf(first);
  const revoked = first.page.waitForResponse((answer) => answer.request().method() === 'DELETE');
  await press(first, 'Sign out');
  await tab.page.getByText('You have signed out in another tab.').waitFor();
  expect(await tab.page.getByLabel('Family name').count()).toBe(0);
  expect(await tab.page.evaluate('sessionStorage.length')).toBe(0);
  await revoked;
  service.clock.advance(1_000);
  expect(await statusOf(token)).toBe(401);
  const later = await openTabAt(first, USER_PAGE);
  await later.page.getByRole('heading', { name: 'Sign in to the console' }).waitFor();
  expect(await later.page.getByRole('button', { name: /^Continue as/ }).count()).toBe(0);
  await expectNoErrors(first);
  await expectNoErrors(tab);
});

test('another person who signs in in one tab of a session leaves its other tabs signed in', async () => {
  const first = await openSignedInByLink('Anna');
  const tab = await openSecondTab(first);
  const token = await tokenOf(first);
  const methods: string[] = [];
  first.page.context().on('request', (request) => methods.push(request.method()));
  await signInByLink(tab, service, WRITE_SCOPE, 'Berta');
  await tab.page.getByText('Berta', { exact: true }).waitFor();
  await tab.settled();
  expect(methods).not.toContain('DELETE');
  expect(await tokenOf(first)).toBe(token);
  expect(await statusOf(token)).toBe(200);
  await expectNoErrors(first);
});

test('one tab of a session renews its token for all of them', async () => {
  const first = await openWindow(service.url);
  await first.page.clock.install();
  await signInByLink(first, service);
  const tab = await openSecondTab(first);
  const before = await tokenOf(first);
  let renewals = 0;
  first.page.context().on('request', (request) => {
    renewals += request.method() === 'PUT' ? 1 : 0;
  });
  await first.page.clock.fastForward(400_000);
  for (const { page } of [first, tab]) await page.keyboard.press('Shift');
  await first.page.clock.fastForward(210_000);
  for (const { until } of [first, tab])
    await until(`!sessionStorage['authrealm.session'].includes('${before}')`);
  expect(await tokenOf(tab)).toBe(await tokenOf(first));
  expect(renewals).toBe(1);
  // 15 minutes after the first token, both go on.
  await first.page.clock.fastForward(300_000);
  for (const window of [first, tab]) {
    expect(await signInOver(window).count()).toBe(0);
    await expectNoErrors(window);
  }
});

test('the use of a tab that is closed since keeps the session of the other tabs', async () => {
  const first = await openWindow(service.url);
  await first.page.clock.install();
  await signInByLink(first, service);
  const tab = await openSecondTab(first);
  const before = await tokenOf(first);
  await first.page.evaluate(`(() => {
    new BroadcastChannel('authrealm.sessions').onmessage = ({ data }) => {
      globalThis.wasUsed ||= data.kind === 'used';
    };
  })()`);
  await first.page.clock.fastForward(400_000);
  await tab.page.keyboard.press('Shift');
  await first.until('globalThis.wasUsed');
  await tab.close();
  await first.page.clock.fastForward(210_000);
  await first.until(`!sessionStorage['authrealm.session'].includes('${before}')`);
  await expectNoErrors(first);
});

/** Lets a tab miss the messages of the others while `isDeaf` is set. */
const MAY_BE_DEAF = `(() => {
  const { set } = Object.getOwnPropertyDescriptor(BroadcastChannel.prototype, 'onmessage');
  Object.defineProperty(BroadcastChannel.prototype, 'onmessage', {
    set(listener) {
      set.call(this, (event) => globalThis.isDeaf || listener(event));
    },
  });
})()`;

test('a tab that missed the renewal of its session keeps its form, and continues with the token of another tab', async () => {
  const first = await openWindow(service.url);
  await first.page.clock.install();
  await signInByLink(first, service);
  const tab = await openTab(first, service.url);
  await tab.page.addInitScript(MAY_BE_DEAF);
  await tab.goto(USER_PAGE);
  await typeInForm(tab, 'Typed before the renewal');
  const before = await tokenOf(first);
  await tab.page.evaluate('globalThis.isDeaf = true');
  await first.page.clock.fastForward(400_000);
  await first.page.keyboard.press('Shift');
  await first.page.clock.fastForward(210_000);
  await first.until(`!sessionStorage['authrealm.session'].includes('${before}')`);
  // The form was used more than five minutes ago: its tab does not renew the token.
  expect(await tokenOf(tab)).toBe(before);
  await tab.page.evaluate('globalThis.isDeaf = false');
  await first.page.clock.fastForward(300_000);
  await tab.until(`sessionStorage['authrealm.session']`);
  await signInOver(tab).waitFor({ state: 'detached' });
  expect(await tokenOf(tab)).toBe(await tokenOf(first));
  expect(await tab.page.getByLabel('Family name').inputValue()).toBe('Typed before the renewal');
  await expectNoErrors(tab);
});

test('a form whose session has ended continues with the session that its user begins in another tab', async () => {
  const first = await openSignedInByLink();
  const other = await openSecondTab(first);
  await first.page.evaluate(`location.hash = '${USER_PAGE}'`);
  const typed = 'Typed in one tab';
  await typeInForm(first, typed);
  await endOnServer(await tokenOf(first));
  await press(first, 'Save');
  await signInOver(first)
    .getByText(/Your session has ended/)
    .waitFor();
  await first.expectError(/status of 401/);
  // The other tab has the refused token, and gives no other one.
  await other.page.getByRole('link', { name: 'Realms', exact: true }).first().click();
  await signInOver(other).waitFor();
  await other.expectError(/status of 401/);
  await signInByLink(other, service);
  await choice(first, 'Anna at the desk').click();
  await signInOver(first).waitFor({ state: 'detached' });
  expect(await first.page.getByLabel('Family name').inputValue()).toBe(typed);
  expect(await tokenOf(first)).toBe(await tokenOf(other));
  await press(first, 'Save');
  await first.page.getByText(typed).first().waitFor();
  await expectNoErrors(first);
  await expectNoErrors(other);
});

test('a form whose session has ended waits while another person signs in in another tab', async () => {
  const first = await openSignedInByLink('Anna');
  await first.page.evaluate(`location.hash = '${USER_PAGE}'`);
  await typeInForm(first, 'Typed by Anna');
  await endOnServer(await tokenOf(first));
  await press(first, 'Save');
  await signInOver(first).waitFor();
  await first.expectError(/status of 401/);
  await openTabOf(first, 'Berta');
  await choice(first, 'Berta').waitFor();
  expect(await first.page.getByLabel('Family name').inputValue()).toBe('Typed by Anna');
  await expectNoErrors(first);
  await choice(first, 'Berta').click();
  await signInOver(first).waitFor({ state: 'detached' });
  await openMenu(first);
  await first.page.getByText('Berta', { exact: true }).waitFor();
  expect(await first.page.getByLabel('Family name').count()).toBe(0);
});

/**
 * What a page of another program at the origin of this console hears after it has asked for a session, offered a forged one, and
 * reported a sign-out. The console's page answers last, when it has received all of this.
 */
async function heardByScript(window: ConsoleWindow, { url }: Pick<Service, 'url'>): Promise<unknown> {
  const stored = await storedSession(window);
  const forged = {
    ...stored,
    grant: { ...stored.grant, access_token: 'forged' },
    savedAt: Date.now() + 60_000,
  };
  const messages = [
    { kind: 'asked' },
    { kind: 'session', stored: forged },
    { kind: 'left', id: stored.id },
    { kind: 'done' },
  ];
  await window.page.evaluate(`(() => {
    const channel = new BroadcastChannel('authrealm.sessions');
    channel.onmessage = ({ data }) => data.kind === 'done' && channel.postMessage({ kind: 'received' });
  })()`);
  const script = await window.page.context().newPage();
  await script.route(`${url}/shop`, (route) =>
    route.fulfill({ contentType: 'text/html', body: '<!doctype html><title>Shop</title>' }),
  );
  await script.goto(`${url}/shop`);
  return script.evaluate(`new Promise((resolve) => {
    const heard = [];
    const channel = new BroadcastChannel('authrealm.sessions');
    channel.onmessage = ({ data }) => {
      heard.push(data.kind);
      if (data.kind === 'received') resolve(heard);
    };
    for (const message of ${JSON.stringify(messages)}) channel.postMessage(message);
  })`);
}

test('a script of another path gets no session of a console whose address has a path, and cannot end or replace it', async () => {
  const port = String(findPort());
  const shared = await startService({ offline: 'true', port, baseUrl: `http://127.0.0.1:${port}/auth` });
  const window = await openWindow(`${shared.url}/auth`);
  await signInByLink(window, shared, READ_SCOPE);
  const before = await storedSession(window);
  expect(await heardByScript(window, shared)).toEqual(['received']);
  expect(await storedSession(window)).toEqual(before);
  await expectNoErrors(window);

  const tab = await openTab(window, `${shared.url}/auth`);
  await tab.goto('#/realms');
  await tab.page
    .getByText(/Each tab needs a sign-in of its own, .* has a path, so other programs may have its host/)
    .waitFor();
  expect(await tab.page.getByRole('button', { name: /^Continue as/ }).count()).toBe(0);
  await expectNoErrorsInAnyView(tab);

  // The same script where the whole origin belongs to the console.
  expect(await heardByScript(await openSignedInByLink(), service)).toContain('session');
});
