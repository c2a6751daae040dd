import { expect, test } from 'bun:test';
import { expectNoErrors, openSignedIn, READ_SCOPE, WRITE_SCOPE } from './console_session.ts';
import type { ConsoleWindow } from './console_window.ts';
import { openShop } from './open_console.ts';

/** What the page of imports and exports offers for a realm, a file and a session. */

const { service, shop } = await openShop();
const SCOPE = `${WRITE_SCOPE} transfer`;

async function choose({ page }: ConsoleWindow, name: string, text: string): Promise<void> {
  const file = { name, mimeType: 'text/csv', buffer: Buffer.from(text) };
  await page.getByLabel('File of JSON lines, or of users as CSV').setInputFiles(file);
}

test('columns that were chosen for one file are not used for the next one', async () => {
  const window = await openSignedIn(service, `#/transfer?realm=${shop.realm}`, { scope: SCOPE });
  const { page } = window;
  const email = page.getByLabel('E-mail', { exact: true });
  await choose(window, 'users.csv', 'Number,Name,Mail,Second mail\n1,Ann,ann@old.example,ann@new.example\n');
  await email.selectOption('Second mail');
  await page.getByRole('definition').getByText('ann@new.example').waitFor();
  await choose(window, 'others.csv', 'No,Full name,E-mail\n2,Bo,bo@example.com\n');
  await page.getByRole('definition').getByText('bo@example.com').waitFor();
  expect(await email.inputValue()).toBe('E-mail');
  await expectNoErrors(window);
});

test('users as CSV can be imported only into a chosen realm, and all realms can be chosen again', async () => {
  const window = await openSignedIn(service, '#/transfer', { scope: SCOPE });
  const { page } = window;
  const realm = page.getByRole('main').getByLabel('Realm');
  const buttons = page.getByRole('button', { name: /^(Import|Dry run)$/ });
  const map = page.getByRole('link', { name: 'Save map.json' });
  await choose(window, 'users.csv', 'No,Full name,E-mail\n2,Bo,bo@example.com\n');
  await page.getByText('Choose the realm of the users.').waitFor();
  expect([await buttons.count(), await map.count()]).toEqual([0, 0]);
  await realm.locator('option').nth(1).waitFor({ state: 'attached' });
  await realm.selectOption(shop.realm);
  await map.waitFor();
  expect(await buttons.count()).toBe(2);
  await realm.selectOption({ label: 'All realms' });
  await map.waitFor({ state: 'detached' });
  expect(await buttons.count()).toBe(0);
  await expectNoErrors(window);
});

test('a session without the scope transfer is offered neither import nor export', async () => {
  const fragment = `#/transfer?realm=${shop.realm}`;
  const window = await openSignedIn(service, fragment, { scope: `${READ_SCOPE} admin` });
  const { page } = window;
  await page.getByText('This session lacks the scope transfer').waitFor();
  expect(await page.getByRole('button', { name: /^(Import|Export)/ }).count()).toBe(0);
  expect(await page.getByRole('link', { name: 'Import and export' }).count()).toBe(0);
  expect(await page.getByRole('main').getByLabel('Realm').count()).toBe(0);
  await expectNoErrors(window);
});
