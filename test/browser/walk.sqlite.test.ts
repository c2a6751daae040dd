import { expect, test } from 'bun:test';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Page } from 'playwright-core';
import { freshFolder } from '../support/service.ts';
import { EVERY_SCOPE, expectNoErrorsInAnyView, openSignedIn } from './console_session.ts';
import { openWindow } from './console_window.ts';
import { openShop } from './open_console.ts';
import { type PageName, pagePaths, waitForPage } from './page_paths.ts';

/** Every page in every view, without errors, accessibility violations and horizontal scrolling. */

const { service, shop } = await openShop();

/** A text that appears once the page has loaded. */
const SIGNS: Readonly<Record<PageName, string>> = {
  find: 'Type or paste anything you know about a user:',
  found: 'jane.doe@example.com',
  notFound: 'No user found',
  allUsers: 'Ada Lovelace',
  realms: 'Buyer Organization',
  realm: 'Company login',
  users: 'Ada Lovelace',
  user: 'auth0|5f7c8ec7c33c6c004bbafe82',
  unlinked: 'No links or usernames yet',
  strange: 'U+202E',
  oidcProfile: 'https://login.example.com',
  passwordProfile: 'any',
  clients: 'Signs all new tokens',
  changes: 'Live',
  changesOfRealm: 'Live',
  transfer: 'Export users as CSV',
  tryOne: 'No request sent yet.',
  client: 'profile-infos:read',
  access: 'Providers that let people in',
  webhooks: 'Search index',
  webhook: 'https://hooks.example.com/authrealm',
  health: 'counted from',
  session: 'Signed in by',
  nowhere: 'Nothing at this address',
};

/** The same for pages of /docs. */
const REFERENCE: readonly (readonly [string, string])[] = [
  ['', '/admin/v1/clients/{client_id}/rotate'],
  ['#/create-user-authentication-info', 'given_name'],
];

test('the sign-in page is accessible and free of errors', async () => {
  const window = await openWindow(service.url);
  await window.goto('');
  await window.page.getByRole('heading', { name: 'Sign in to the console' }).waitFor();
  await window.page.getByText('authrealm console link').waitFor();
  await expectNoErrorsInAnyView(window);
});

test.each(REFERENCE)('the page docs%s is accessible and free of errors', async (fragment, sign) => {
  const window = await openWindow(service.url);
  await window.page.goto(`${service.url}/docs${fragment}`);
  await window.page.getByRole('main').getByText(sign).first().waitFor();
  await waitForPage(window);
  await expectNoErrorsInAnyView(window);
});

test.each(Object.entries(SIGNS))(
  'the console page %s is accessible and free of errors',
  async (place, sign) => {
    const fragment = pagePaths(shop)[place as PageName];
    const window = await openSignedIn(service, fragment, { scope: EVERY_SCOPE });
    await window.page.getByText(sign).first().waitFor();
    await waitForPage(window);
    await expectNoErrorsInAnyView(window);
    expect(await window.page.title()).not.toBe('authrealm');
  },
);

/** A file of one user, with names of columns and texts that are too long for a line. */
async function chooseFile(page: Page): Promise<void> {
  const path = join(freshFolder(), 'users.csv');
  const long = 'W'.repeat(255);
  writeFileSync(path, `No,Name,E-mail,${long}\n1,${long},jane@example.com,${long}\n`);
  await page.getByLabel('File of JSON lines, or of users as CSV').setInputFiles(path);
  await page.getByRole('definition').filter({ hasText: long }).first().waitFor();
}

/** What opens on a page, by an action and a text that appears. */
const OPENED: readonly (readonly [string, PageName, (page: Page) => Promise<void>, string])[] = [
  ['the first users of a CSV file', 'transfer', chooseFile, 'The first users'],
  ['a change', 'changesOfRealm', (page) => page.locator('.entry-row').first().click(), 'Sequence'],
  ['the history of a username', 'user', (page) => press(page, 'History of jane.doe'), 'Username created'],
  ['the form of an invitation', 'access', (page) => press(page, 'New invitation'), 'May import and export'],
];

const press = (page: Page, name: string) => page.getByRole('button', { name, exact: true }).click();

test.each(OPENED)('%s on the page %s is accessible and free of errors', async (...row) => {
  const [, place, open, sign] = row;
  const scope = EVERY_SCOPE;
  const window = await openSignedIn(service, pagePaths(shop)[place], { scope });
  await open(window.page);
  await window.page.getByText(sign).first().waitFor();
  await expectNoErrorsInAnyView(window);
});

test.each(['users', 'user', 'oidcProfile', 'passwordProfile'] as const)(
  'the breadcrumbs of the page %s link to its realm',
  async (place) => {
    const window = await openSignedIn(service, pagePaths(shop)[place]);
    const above = window.page.getByRole('navigation', { name: 'Breadcrumbs' });
    await above.getByRole('link', { name: 'Buyer Organization' }).click();
    await window.page.getByRole('heading', { name: 'Buyer Organization', level: 1 }).waitFor();
  },
);
