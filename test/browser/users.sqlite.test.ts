import { expect, setDefaultTimeout, test } from 'bun:test';
import { LIMITS } from '../../src/model/limits.ts';
import { realm as realms, user } from '../../src/model/resources.ts';
import { createFixture, insertRecord, realmMembers, startService, userMembers } from '../support/service.ts';
import {
  expectNoErrors,
  expectNoErrorsInAnyView,
  openSignedIn,
  READ_SCOPE,
  showMore,
} from './console_session.ts';
import { BROWSER_TEST_MS } from './console_window.ts';

/** The Users page: all users of all realms, or of one. */

setDefaultTimeout(BROWSER_TEST_MS);

/** More than two pages. */
const CROWD = 230;
const PAGE_ROWS = LIMITS.pageRecordsMax;

const service = await startService();
const small = (await createFixture(service.db)).realm;
const crowded = service.clock.mintId();
await insertRecord(service.db, realms, [crowded], { ...realmMembers, name: 'Crowded Shop' });
for (let start = 0; start < CROWD; start += 46)
  await Promise.all(
    Array.from({ length: 46 }, (_, at) => {
      const members = {
        ...userMembers,
        name: `Person ${start + at}`,
        family_name: at === 0 ? 'Rarely' : 'Often',
      };
      return insertRecord(service.db, user, [crowded, service.clock.mintId()], members);
    }),
  );

const openUsers = (scope = READ_SCOPE, more: { readonly realms?: readonly string[] } = {}) =>
  openSignedIn(service, '#/', { scope, ...more });

test('Users is one click from the start, with all users of all realms, their number and their realms', async () => {
  const window = await openUsers();
  const { page } = window;
  await page.getByRole('link', { name: 'Users', exact: true }).click();
  await page.getByText(`${CROWD + 1} users`, { exact: true }).waitFor();
  const list = page.getByRole('list', { name: 'users' });
  await list.getByText('Crowded Shop').first().waitFor();
  await expectNoErrorsInAnyView(window);
  const rows = list.getByRole('link');
  expect(await rows.count()).toBe(PAGE_ROWS);
  const more = page.getByRole('button', { name: 'Show more' });
  while (await more.isVisible()) await showMore(window);
  const links = await rows.evaluateAll((all) => all.map((a) => a.getAttribute('href')));
  expect(new Set(links).size).toBe(CROWD + 1);
  expect(links).toHaveLength(CROWD + 1);
  await expectNoErrors(window);
});

test('the next users of a list are read by keys alone, and the first of them has the focus', async () => {
  const window = await openUsers();
  const { page } = window;
  await page.goto(`${service.url}/console#/users?realm=${crowded}`);
  const rows = page.getByRole('list', { name: 'users' }).getByRole('link');
  for (const shown of [PAGE_ROWS, 2 * PAGE_ROWS]) {
    await rows.nth(shown - 1).focus();
    await page.keyboard.press('Tab');
    await page.keyboard.press('Enter');
    await page.locator(`.long-list li:nth-child(${shown + 1}):focus`).waitFor();
    await page.keyboard.press('Tab');
    const focused = await page.evaluate('document.activeElement.getAttribute("href")');
    expect(focused).toBe(await rows.nth(shown).getAttribute('href'));
  }
  expect(await rows.count()).toBe(CROWD);
  expect(await page.getByRole('button', { name: 'Show more' }).count()).toBe(0);
  await expectNoErrors(window);
});

test('a page of a list that fails is read again, and the rows before it stay', async () => {
  const window = await openUsers();
  const { page } = window;
  await page.goto(`${service.url}/console#/users?realm=${crowded}`);
  const rows = page.getByRole('list', { name: 'users' }).getByRole('link');
  await rows.nth(PAGE_ROWS - 1).waitFor();
  await page.route('**/search', (route) => route.fulfill({ status: 500 }), { times: 1 });
  await page.getByRole('button', { name: 'Show more' }).click();
  await page.getByRole('button', { name: 'Retry now' }).click();
  await rows.nth(2 * PAGE_ROWS - 1).waitFor();
  expect(await rows.count()).toBe(2 * PAGE_ROWS);
  await window.expectError(/status of 500/);
});

test('the Users page searches by the beginnings of words, filters by realm, and keeps both in its address', async () => {
  const window = await openUsers();
  const { page } = window;
  await page.goto(`${service.url}/console#/users`);
  await page.getByLabel('Name or e-mail').fill('rare');
  await page.getByText('5 users found', { exact: true }).waitFor();
  await page.getByRole('search').getByLabel('Realm').selectOption(small);
  await page.getByText('No user found').waitFor();
  await page.getByLabel('Name or e-mail').fill('doe');
  await page.getByText('1 user found', { exact: true }).waitFor();
  expect(await page.evaluate('location.hash')).toBe(`#/users?q=doe&realm=${small}`);
  await page.reload();
  await page.getByText('1 user found', { exact: true }).waitFor();
  await page.getByRole('list', { name: 'users' }).getByText('jane@example.com').waitFor();
  await expectNoErrors(window);
});

test('the Users page asks for a longer word, or for fewer, instead of showing all users', async () => {
  const window = await openUsers();
  const { page } = window;
  await page.goto(`${service.url}/console#/users`);
  await page.getByText(`${CROWD + 1} users`, { exact: true }).waitFor();
  const list = page.getByRole('list', { name: 'users' });
  for (const text of ['r', 'a|b', '#']) {
    await page.getByLabel('Name or e-mail').fill(text);
    await page.getByText('Type a word of at least 2 letters or digits.').waitFor();
    expect(await list.count()).toBe(0);
    await page.getByLabel('Name or e-mail').fill('');
    await list.waitFor();
  }
  await page.getByLabel('Name or e-mail').fill('abcdefghijklmnopq'.split('').join(' '));
  await page.getByText('Type at most 16 words.').waitFor();
  await page.getByLabel('Name or e-mail').fill('rarely+person');
  await page.getByText('5 users found', { exact: true }).waitFor();
  await page.getByLabel('Name or e-mail').fill('李');
  await page.getByText('No user found').waitFor();
  await expectNoErrors(window);
});

/** Whether the focused row is in view, both in its list and in the window. */
const IS_FOCUS_IN_VIEW = `(() => {
  const row = document.activeElement.getBoundingClientRect();
  const list = document.querySelector('.long-list').getBoundingClientRect();
  return row.top >= Math.max(list.top, 0) && row.bottom <= Math.min(list.bottom, innerHeight);
})()`;

test('Back returns to the user that was opened, with all rows that were read, and a new visit begins at the first', async () => {
  const window = await openUsers();
  const { page } = window;
  await page.goto(`${service.url}/console#/users?realm=${crowded}`);
  const rows = page.getByRole('list', { name: 'users' }).getByRole('link');
  await rows.first().waitFor();
  await showMore(window);
  const row = rows.nth(PAGE_ROWS + 40);
  const opened = await row.getAttribute('href');
  for (const open of [() => row.click(), () => row.press('Enter')]) {
    await open();
    await page.getByRole('heading', { name: 'How this user signs in' }).waitFor();
    await page.goBack();
    await page.locator(`a[href="${opened}"]:focus`).waitFor();
    expect(await rows.count()).toBe(2 * PAGE_ROWS);
    expect(await page.evaluate(IS_FOCUS_IN_VIEW)).toBe(true);
  }
  await page.getByRole('link', { name: 'Users', exact: true }).click();
  await page.getByText(`${CROWD + 1} users`, { exact: true }).waitFor();
  await rows.first().waitFor();
  expect(await rows.count()).toBe(PAGE_ROWS);
  await expectNoErrors(window);
});

test('the Users page shows what an address asks for that is opened while it is open', async () => {
  const window = await openSignedIn(service, '#/users?q=rare', { scope: READ_SCOPE });
  const { page } = window;
  const box = page.getByLabel('Name or e-mail');
  await page.getByText('5 users found', { exact: true }).waitFor();
  await page.evaluate(`location.hash = '#/users?q=doe'`);
  await page.getByText('1 user found', { exact: true }).waitFor();
  expect(await box.inputValue()).toBe('doe');
  await box.fill('rare');
  await page.getByText('5 users found', { exact: true }).waitFor();
  await page.getByRole('link', { name: 'Users', exact: true }).click();
  await page.getByText(`${CROWD + 1} users`, { exact: true }).waitFor();
  expect(await box.inputValue()).toBe('');
  await expectNoErrors(window);
});

test('the columns of the Users page are chosen, and stay after a reload', async () => {
  const window = await openUsers();
  const { page } = window;
  await page.goto(`${service.url}/console#/users?realm=${small}`);
  const head = page.locator('.table-head > span');
  await head.first().waitFor();
  expect(await head.allInnerTexts()).toEqual(['Name', 'E-mail', 'Realm', 'Since']);
  await page.getByText('Columns', { exact: true }).first().click();
  await page.getByLabel('Family name').check();
  await page.getByLabel('Realm', { exact: true }).last().uncheck();
  await expectNoErrors(window);
  expect(await head.allInnerTexts()).toEqual(['Name', 'E-mail', 'Family name', 'Since']);
  await page.reload();
  await page.getByRole('list', { name: 'users' }).getByText('Doering', { exact: true }).waitFor();
});

test('a session limited to one realm sees its users alone, also without the right to read realms', async () => {
  const window = await openUsers('users:read', { realms: [small] });
  const { page } = window;
  await page.getByRole('link', { name: 'Users', exact: true }).click();
  await page.getByText('1 user', { exact: true }).waitFor();
  await page.getByRole('list', { name: 'users' }).getByText(small).waitFor();
  await page.getByRole('list', { name: 'users' }).getByRole('link').click();
  await page.getByRole('heading', { name: 'Jane Doe' }).waitFor();
  await expectNoErrors(window);
});

test('the Users page shows users with the IDs of their realms while the names cannot be read', async () => {
  const window = await openUsers();
  const { page } = window;
  await page.route(/\/v2\/authentication-realms(\?|\/[^/]+$)/, (route) => route.fulfill({ status: 503 }));
  await page.goto(`${service.url}/console#/users?q=rare`);
  await page.getByText('5 users found', { exact: true }).waitFor();
  await page.getByRole('list', { name: 'users' }).getByText(crowded).first().waitFor();
  await window.expectError(/status of 503/);
});

test('the address of the users of a realm searches them alone, and creates users in it', async () => {
  const window = await openSignedIn(service, `#/realms/${small}/users`);
  const { page } = window;
  await page.getByText('1 user', { exact: true }).waitFor();
  expect(await page.getByRole('search').getByLabel('Realm').count()).toBe(0);
  await page.getByLabel('Name or e-mail').fill('person');
  await page.getByText('No user found').waitFor();
  expect(await page.evaluate('location.hash')).toBe(`#/realms/${small}/users?q=person`);
  await expectNoErrorsInAnyView(window);
  await page.getByRole('button', { name: 'New user' }).click();
  await page.getByLabel('Name', { exact: true }).fill('Second Person');
  await page.getByLabel('E-mail', { exact: true }).fill('second@example.com');
  await page.getByRole('button', { name: 'Create', exact: true }).click();
  await page.getByRole('heading', { name: 'Second Person' }).waitFor();
  await page.goBack();
  await page.getByText('1 user found', { exact: true }).waitFor();
});
