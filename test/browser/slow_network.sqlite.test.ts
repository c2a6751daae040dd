import { expect, test } from 'bun:test';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Locator, Page } from 'playwright-core';
import type { Uuid } from '../../src/model/id.ts';
import { openSignInBudgets } from '../../src/sign_in/budgets.ts';
import { freshFolder } from '../support/service.ts';
import { expectNoErrors, openSignedIn, WRITE_SCOPE } from './console_session.ts';
import { type ConsoleWindow, NEXT_FRAME } from './console_window.ts';
import { openShop } from './open_console.ts';
import { pagePaths } from './page_paths.ts';

/** Pages of the console over 400 kbit/s. */

const { service, shop } = await openShop();
const SCOPE = `${WRITE_SCOPE} history:read sign-in-throttles:write admin transfer`;

const NETWORK = { offline: false, latency: 400, downloadThroughput: 50_000, uploadThroughput: 50_000 };

/** A window whose network is slow and whose cache is off. */
async function openSlowly(): Promise<ConsoleWindow> {
  const window = await openSignedIn(service, '#/nowhere', { scope: SCOPE });
  const network = await window.page.context().newCDPSession(window.page);
  await network.send('Network.enable');
  await network.send('Network.setCacheDisabled', { cacheDisabled: true });
  await network.send('Network.emulateNetworkConditions', NETWORK);
  return window;
}

const button = (within: Page | Locator, name: string) => within.getByRole('button', { name, exact: true });
const loading = (page: Page) => page.getByRole('status').filter({ hasText: 'Loading…' });

/** Counts the requests with this method and path. */
function countRequests(page: Page, pattern: RegExp): () => number {
  let sent = 0;
  page.on('request', (request) => {
    if (pattern.test(`${request.method()} ${request.url()}`)) sent += 1;
  });
  return () => sent;
}

test.each(['access', 'changes', 'user'] as const)(
  'the page %s over 400 kbit/s says that it is loading, and becomes complete',
  async (place) => {
    const window = await openSlowly();
    const { page } = window;
    await Promise.all([loading(page).first().waitFor(), window.load(pagePaths(shop)[place])]);
    await window.settled();
    expect(await loading(page).count()).toBe(0);
    await expectNoErrors(window);
  },
);

test('a slow answer to a search for changes does not replace the answer to a later one', async () => {
  const window = await openSlowly();
  const { page } = window;
  await window.load(pagePaths(shop).changes);
  const { promise: isReleased, resolve: release } = Promise.withResolvers<void>();
  await page.route(`**/changes/search?*${shop.strange}*`, async (route) => {
    await isReleased;
    // The page may have cancelled it.
    await route.continue().catch(() => undefined);
  });
  const asked = page.waitForRequest((request) => request.url().includes(shop.strange));
  await page.getByLabel('User ID').fill(shop.strange);
  await asked;
  await page.getByLabel('User ID').fill(shop.user);
  const found = page.getByRole('list', { name: 'Changes, newest first' }).getByRole('link');
  // The name of the realm is read after the changes.
  await found
    .filter({ hasText: /Jane Doe.*Buyer Organization/ })
    .first()
    .waitFor();
  const before = await found.allTextContents();
  release();
  await window.settled();
  expect(await found.allTextContents()).toEqual(before);
  await expectNoErrors(window);
});

test('an invitation over 400 kbit/s is created once and withdrawn once by buttons that are pressed twice', async () => {
  const window = await openSlowly();
  const { page } = window;
  await window.load(pagePaths(shop).access);
  await button(page, 'New invitation').click();
  await page.getByLabel('Name').fill('Pressed twice');
  const created = countRequests(page, /^POST .*\/console-links$/);
  await button(page, 'Create link').dblclick();
  await button(page, 'I have stored it').click();
  await button(page, 'Withdraw Pressed twice').click();
  const withdrawn = countRequests(page, /^DELETE /);
  await button(page.getByRole('dialog'), 'Withdraw').dblclick();
  await page.getByText('Pressed twice').first().waitFor({ state: 'detached' });
  await window.settled();
  expect([created(), withdrawn()]).toEqual([1, 1]);
  await expectNoErrors(window);
});

test('a throttle over 400 kbit/s is lifted once, and its button stays disabled until the page shows the lift', async () => {
  const budgets = openSignInBudgets(service.db.engine.budgets, service.db.logKeys, service.clock);
  const name = {
    realmId: shop.realm as Uuid,
    profileId: shop.passwordProfile as Uuid,
    usernameKey: 'jane.doe',
  };
  for (let count = 0; count < 100; count += 1)
    await budgets.countWrong({ ...name, clientId: 'shop', address: undefined, device: undefined });
  const window = await openSlowly();
  const { page } = window;
  await window.load(pagePaths(shop).user);
  const lifts = countRequests(page, /^POST .*\/lift$/);
  const lift = page.getByRole('button', { name: /^Check passwords again/ });
  await lift.waitFor();
  const isReadAgain = page.waitForRequest(/sign-in-state$/);
  await lift.dblclick();
  await isReadAgain;
  await page.evaluate(NEXT_FRAME);
  expect(await lift.isDisabled()).toBe(true);
  await lift.waitFor({ state: 'detached' });
  await window.settled();
  expect(lifts()).toBe(1);
  await expectNoErrors(window);
});

test('a file over 400 kbit/s is exported once and imported once, and the page says that this is in progress', async () => {
  const window = await openSlowly();
  const { page } = window;
  await window.load(pagePaths(shop).transfer);
  const inProgress = page.getByRole('dialog', { name: 'In progress' });
  const once = async (name: string, request: RegExp) => {
    const count = countRequests(page, request);
    await Promise.all([inProgress.waitFor(), button(page, name).dblclick()]);
    await inProgress.waitFor({ state: 'detached' });
    await window.settled();
    expect(count()).toBe(1);
  };
  await once('Export users as CSV', /^GET .*\/export/);
  const path = join(freshFolder(), 'users.csv');
  writeFileSync(path, 'No,Name,E-mail\n1,Ann,ann@example.com\n');
  await page.getByLabel('File of JSON lines, or of users as CSV').setInputFiles(path);
  await once('Import', /^POST .*\/import/);
  await page.getByText('1 imported, 0 unchanged, 0 replaced, 0 rejected.').waitFor();
  await expectNoErrors(window);
});
