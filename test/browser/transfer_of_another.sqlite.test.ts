import { describe, expect, test } from 'bun:test';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { createLink } from '../support/console_sign_in.ts';
import { freshFolder } from '../support/service.ts';
import { expectNoErrors, WRITE_SCOPE } from './console_session.ts';
import { BROWSER_TEST_MS, type ConsoleWindow, openWindow } from './console_window.ts';
import { openShop } from './open_console.ts';

/** An export or import belongs to the user who started it, not to a later user of the tab. */

const { service, shop } = await openShop();

async function open({ page }: ConsoleWindow, label: string): Promise<void> {
  const { code } = await createLink(service, { scope: WRITE_SCOPE, label });
  await page.evaluate(`location.hash = '#code=${code}'`);
  await page.getByRole('region', { name: 'Session' }).getByText(label, { exact: true }).waitFor();
}

async function opened(label: string): Promise<ConsoleWindow> {
  const window = await openWindow(service.url);
  await window.goto(`#/transfer?realm=${shop.realm}`);
  await open(window, label);
  return window;
}

const tokenOf = async ({ page }: ConsoleWindow): Promise<string> =>
  JSON.parse((await page.evaluate(`sessionStorage['authrealm.session']`)) as string).grant.access_token;

async function expire(window: ConsoleWindow): Promise<void> {
  await service.del('/console/token', await tokenOf(window), { Origin: service.url });
  service.clock.advance(1_000);
}

const signInAsked = ({ page }: ConsoleWindow) =>
  page.getByRole('dialog', { name: 'Sign in to the console' }).waitFor();

async function signOut({ page }: ConsoleWindow): Promise<void> {
  await page.getByRole('button', { name: 'Sign out' }).click();
  await page.getByText('You have signed out.').waitFor();
}

const exportedFile = ({ page }: ConsoleWindow) => page.getByRole('button', { name: 'Save file' });

async function exportShop({ page }: ConsoleWindow): Promise<void> {
  await page.getByRole('button', { name: 'Export', exact: true }).click();
  await page.getByText('Export complete.').waitFor();
}

async function recordsOf({ page }: ConsoleWindow): Promise<number> {
  const text = await page.getByRole('main').textContent();
  return Number(/Export complete\. (\d+) records/.exec(text ?? '')?.[1]);
}

/** Starts the import of a realm with many users. */
async function importCrowd({ page }: ConsoleWindow, users: number): Promise<void> {
  const realm = crypto.randomUUID();
  const lines = [
    { type: 'authentication-realm', id: realm, name: 'Crowd' },
    ...Array.from({ length: users }, (_, index) => ({
      ...{ type: 'user_authentication_info', realm_id: realm, id: crypto.randomUUID() },
      ...{ name: `Person ${index}`, email: `person${index}@example.com` },
    })),
  ];
  const path = join(freshFolder(), 'crowd.ndjson');
  writeFileSync(path, lines.map((line) => JSON.stringify(line)).join('\n'));
  const field = page.getByLabel('File written by authrealm export');
  await field.setInputFiles(path, { timeout: BROWSER_TEST_MS });
  await page.getByRole('button', { name: 'Import', exact: true }).click();
  await page.getByText(/per second, /).waitFor();
}

describe('an exported file', () => {
  const comings: readonly [string, (window: ConsoleWindow) => Promise<void>][] = [
    ['over an open session', async (window) => open(window, 'Ben')],
    [
      'after a sign-out',
      async (window) => {
        await signOut(window);
        await open(window, 'Ben');
      },
    ],
    [
      'after the session expired',
      async (window) => {
        await expire(window);
        await window.page.getByRole('link', { name: 'Realms' }).click();
        await signInAsked(window);
        await window.expectError(/401/);
        await open(window, 'Ben');
        await window.page.getByRole('link', { name: 'Import and export' }).click();
      },
    ],
  ];
  test.each(comings)('an exported file is discarded when another user signs in %s', async (_, come) => {
    const window = await opened('Anna');
    await exportShop(window);
    await come(window);
    await window.page.getByRole('button', { name: 'Export', exact: true }).waitFor();
    expect(await exportedFile(window).count()).toBe(0);
    await expectNoErrors(window);
  });

  test('an exported file survives a new session of the same user, and is discarded on sign-out', async () => {
    const window = await opened('Anna');
    const { page } = window;
    await exportShop(window);
    const before = await tokenOf(window);
    await open(window, 'Anna');
    await page.getByText('You are now signed in as Anna.').waitFor();
    expect(await tokenOf(window)).not.toBe(before);
    await exportedFile(window).waitFor();
    await signOut(window);
    await open(window, 'Anna');
    await page.getByRole('button', { name: 'Export', exact: true }).waitFor();
    expect(await exportedFile(window).count()).toBe(0);
    await expectNoErrors(window);
  });
});

test('an export is complete although the session expires during it', async () => {
  const window = await opened('Anna');
  const { page } = window;
  await exportShop(window);
  const whole = await recordsOf(window);
  expect(whole).toBeGreaterThan(20);
  await page.getByRole('button', { name: 'Export another realm' }).click();
  const requested = Promise.withResolvers<void>();
  const expired = Promise.withResolvers<void>();
  await page.route(/user-authentication-info\?.*sort/, async (route) => {
    const response = await route.fetch();
    requested.resolve();
    await expired.promise;
    await route.fulfill({ response });
  });
  await page.getByRole('button', { name: 'Export', exact: true }).click();
  await requested.promise;
  await expire(window);
  await page.getByRole('link', { name: 'Realms' }).click();
  await signInAsked(window);
  await window.expectError(/401/);
  // The export needs the links of the users after the session has expired.
  expired.resolve();
  await open(window, 'Anna');
  await page.getByRole('link', { name: 'Import and export' }).click();
  await page.getByText('Export complete.').waitFor();
  expect(await recordsOf(window)).toBe(whole);
  await expectNoErrors(window);
});

describe('a running import', () => {
  test('a running import continues when the same user signs in after the session expired', async () => {
    const window = await opened('Anna');
    const { page } = window;
    await importCrowd(window, 600);
    await expire(window);
    await signInAsked(window);
    await window.expectError(/401/);
    await open(window, 'Anna');
    await page.getByText('601 created, 0 rejected.').waitFor();
    await expectNoErrors(window);
  });

  test('a running import is cancelled when another user signs in', async () => {
    const window = await opened('Anna');
    const { page } = window;
    await importCrowd(window, 20_000);
    const authorizations: (string | undefined)[] = [];
    page.on('request', (request) => {
      if (request.method() === 'POST' && request.url().includes('/user-authentication-info')) {
        authorizations.push(request.headers().authorization);
      }
    });
    await open(window, 'Ben');
    await page.getByLabel('File written by authrealm export').waitFor();
    await page.getByText('You are now signed in as Ben.').waitFor();
    await page.getByRole('link', { name: 'Realms' }).click();
    await page.getByText('Buyer Organization').waitFor();
    expect(authorizations).not.toContain(`Bearer ${await tokenOf(window)}`);
    await page.getByRole('link', { name: 'Import and export' }).click();
    await page.getByRole('button', { name: 'Export', exact: true }).waitFor();
    expect(await page.getByRole('progressbar').count()).toBe(0);
    await expectNoErrors(window);
  });
});
