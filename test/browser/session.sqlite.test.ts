import { describe, expect, test } from 'bun:test';
import { createLink } from '../support/console_sign_in.ts';
import { startService } from '../support/service.ts';
import { expectNoErrors, openSignedIn, READ_SCOPE, signInByLink } from './console_session.ts';
import { type ConsoleWindow, openWindow } from './console_window.ts';
import { openShop } from './open_console.ts';
import { pagePaths } from './page_paths.ts';

/** The lifetime of a session, and how it ends. */

const { service, shop } = await openShop();

const HOUR_MS = 3_600_000;
const left = async ({ page }: ConsoleWindow) =>
  Number(await page.locator('[data-left]').getAttribute('data-left'));

async function tokenOf({ page }: ConsoleWindow): Promise<string> {
  const stored = (await page.evaluate(`sessionStorage['authrealm.session']`)) as string;
  return JSON.parse(stored).grant.access_token;
}

async function expectEnded({ page }: ConsoleWindow, message: RegExp): Promise<void> {
  await page.getByRole('status').filter({ hasText: message }).first().waitFor();
  await page.getByRole('heading', { name: 'Sign in to the console' }).waitFor();
}

describe.each([
  ['an hour slow', -HOUR_MS],
  ['right', 0],
  ['an hour fast', HOUR_MS],
] as const)('on a machine whose clock is %s', (_, offset) => {
  test('a session counts down and ends with a message, whatever the clock of the browser', async () => {
    const window = await openWindow(service.url);
    await window.page.clock.install({ time: Date.now() + offset });
    await signInByLink(window, service, READ_SCOPE);
    expect(await left(window)).toBeWithin(28_700, 28_801);
    await window.page.reload();
    expect(await left(window)).toBeWithin(28_700, 28_801);
    await window.page.clock.fastForward(780_000);
    await window.page.getByText(/Ends in 1:\d\d|Ends in 2:00/).waitFor();
    await window.page.clock.fastForward(121_000);
    await expectEnded(window, /Your session has expired\./);
    expect(await window.page.evaluate('sessionStorage.length')).toBe(0);
    expect(window.errors).toEqual([]);
  });
});

test('the end of a session that is not used is announced once, two minutes before it, even over an open dialog', async () => {
  const window = await openWindow(service.url);
  const { page } = window;
  await page.clock.install();
  await signInByLink(window, service, READ_SCOPE);
  await page.getByRole('button', { name: 'Shortcuts' }).click();
  const dialog = page.getByRole('dialog', { name: 'Keyboard shortcuts' });
  const warning = dialog
    .getByRole('status')
    .filter({ hasText: 'Your session ends in less than two minutes.' });
  await page.clock.fastForward(700_000);
  expect(await left(window)).toBeWithin(28_000, 28_101);
  expect(await warning.count()).toBe(0);
  await page.clock.fastForward(100_000);
  await warning.waitFor();
  await page.clock.fastForward(7_000);
  await warning.waitFor({ state: 'detached' });
  await page.clock.runFor(3_000);
  expect(await warning.count()).toBe(0);
  expect(await left(window)).toBeWithin(1, 100);
  await expectNoErrors(window);
});

test('a revoked token ends the session, and the next one opens at the same page', async () => {
  const window = await openWindow(service.url);
  const { page } = window;
  await signInByLink(window, service, READ_SCOPE);
  const token = await tokenOf(window);
  await service.del('/console/token', token, { Origin: service.url });
  service.clock.advance(1_000);
  await page.evaluate(`location.hash = '${pagePaths(shop).user}'`);
  await expectEnded(window, /Your session has ended/);
  await window.expectError(/status of 401/);
  await expectNoErrors(window);
  const { code } = await createLink(service, { scope: READ_SCOPE });
  const address = await page.evaluate('location.hash');
  expect(address).toBe(pagePaths(shop).user);
  await page.evaluate(`location.hash = '#code=${code}'`);
  await page.getByRole('heading', { name: 'Jane Doe' }).waitFor();
});

test('an unreachable service is reported, and the request is retried by itself', async () => {
  const window = await openSignedIn(service, '#/realms', { scope: READ_SCOPE });
  const { page } = window;
  await page.getByText('Buyer Organization').waitFor();
  await page.context().setOffline(true);
  await page.evaluate(`location.hash = '${pagePaths(shop).user}'`);
  await page.getByText(/The service is unreachable/).waitFor();
  await page.getByText(/Retrying in \d s/).waitFor();
  await window.expectError(/ERR_INTERNET_DISCONNECTED/);
  await page.context().setOffline(false);
  await page.getByRole('heading', { name: 'Jane Doe' }).waitFor();
  await expectNoErrors(window);
});

test('a rate-limited session shows how long to wait, and the request is retried automatically', async () => {
  const limited = await startService({ ...service.database.flags, offline: 'true', clientRate: '5/40' });
  const window = await openSignedIn(limited, '#/nowhere', { scope: READ_SCOPE });
  const { page } = window;
  const token = await tokenOf(window);
  for (let spent = 0; spent < 5; spent += 1) await limited.get('/v2/authentication-realms', token);
  await page.evaluate(`location.hash = '#/realms'`);
  await page.getByText('The service is busy.').waitFor();
  await page.getByText(/Retrying in \d s/).waitFor();
  await page.getByText(/^Request [\w-]+$/).waitFor();
  await window.expectError(/status of 429/);
  expect(await window.violations()).toEqual([]);
  await page.getByText('Buyer Organization').waitFor();
  expect(await page.getByText('The service is busy.').count()).toBe(0);
});
