import { expect, setDefaultTimeout, test } from 'bun:test';
import type { Uuid } from '../../src/model/id.ts';
import { passwordProfileInfo, realm as realms, user } from '../../src/model/resources.ts';
import { createFixture, insertRecord, realmMembers, startService, userMembers } from '../support/service.ts';
import { expectNoErrors, expectNoErrorsInAnyView, openSignedIn, READ_SCOPE } from './console_session.ts';
import { BROWSER_TEST_MS } from './console_window.ts';

/** The people on the Find page: one row each, by the keyboard, and while records change. */

setDefaultTimeout(BROWSER_TEST_MS);

const service = await startService();
const fixture = await createFixture(service.db);
const other = service.clock.mintId();
await insertRecord(service.db, realms, [other], { ...realmMembers, name: 'Second Shop' });

async function createUser(members: Readonly<Record<string, unknown>>, realm = fixture.realm): Promise<Uuid> {
  const id = service.clock.mintId();
  await insertRecord(service.db, user, [realm, id], { ...userMembers, ...members });
  return id;
}

async function createUsername(user: Uuid, username: string): Promise<void> {
  const key = [fixture.realm, user, service.clock.mintId()] as const;
  await insertRecord(service.db, passwordProfileInfo, key, {
    username,
    password_profile_id: fixture.passwordProfile,
  });
}

async function searchFor(text: string, scope = READ_SCOPE) {
  const window = await openSignedIn(service, '#/', { scope });
  await window.page.getByRole('searchbox').fill(text);
  return window;
}

test('Find shows two namesakes in two rows, with what distinguishes them', async () => {
  await createUser({ family_name: 'Namesake', email: 'one@namesake.example' });
  await createUser({ family_name: 'Namesake', email: 'two@namesake.example' });
  const window = await searchFor('namesake');
  await window.page.getByText('2 found', { exact: true }).waitFor();
  const rows = await window.page.locator('.found a.row').allInnerTexts();
  expect(rows.map((row) => /(one|two)@namesake/.exec(row)?.[1]).sort()).toEqual(['one', 'two']);
  expect(rows.every((row) => /since .*20\d\d/.test(row))).toBe(true);
});

test('Find shows a person in two realms once for each, with the names of the realms', async () => {
  await createUser({ family_name: 'Commuter' });
  await createUser({ family_name: 'Commuter' }, other);
  const window = await searchFor('commuter');
  for (const name of ['Second Shop', realmMembers.name])
    await window.page.locator('.row-realm').getByText(name, { exact: true }).waitFor();
  expect(await window.page.locator('.found a.row').count()).toBe(2);
  await expectNoErrorsInAnyView(window);
});

test('Find shows one row for a user that matches in several ways, with each of them', async () => {
  const id = await createUser({ name: 'Multi Match', email: 'multi@example.com' });
  await createUsername(id, 'multi.one');
  await createUsername(id, 'multi.two');
  const window = await searchFor('multi');
  await window.page.getByText('1 found', { exact: true }).waitFor();
  const row = await window.page.locator('.found a.row').innerText();
  expect(row).toContain('Multi Match');
  expect(row).toContain('multi@example.com');
  expect(row).toMatch(/Username multi\.one/);
  expect(row).toMatch(/Username multi\.two/);
});

test('Find shows the name and the e-mail of a user that was found by a username alone', async () => {
  const id = await createUser({ name: 'Owner Person', email: 'owner@example.com' });
  await createUsername(id, 'zanzibar');
  const window = await searchFor('zanz');
  await window.page.locator('.found a.row', { hasText: 'Owner Person' }).waitFor();
  expect(await window.page.locator('.found a.row').innerText()).toContain('owner@example.com');
  await expectNoErrors(window);
  await window.close();
  // Without the right to read users, the username is all that is known.
  const limited = await searchFor('zanz', 'password-profile-infos:read');
  await limited.page.locator('.found a.row', { hasText: 'zanzibar' }).waitFor();
  expect(await limited.page.getByText('Owner Person').count()).toBe(0);
  await limited.page.getByText('This session cannot search: links, users.').waitFor();
});

test('Enter opens the owner of an e-mail address, who comes before people with the same words', async () => {
  for (const number of [17080, 17081])
    await createUser({ name: `Jane ${number}`, email: `jane.doe${number}@firma.example` });
  const owner = await createUser({ name: 'Jane Owner', email: 'Jane.Doe@firma.example' });
  const window = await searchFor('jane.doe@firma.example');
  const { page } = window;
  await page.getByText('3 found', { exact: true }).waitFor();
  expect(await page.locator('.found a.row').first().innerText()).toContain('Jane Owner');
  await expectNoErrorsInAnyView(window);
  await page.keyboard.press('Enter');
  await page.waitForURL(`**/console#/realms/${fixture.realm}/users/${owner}`);
});

test('Enter opens the owner of a username, who comes before people with that word in their names', async () => {
  await createUser({ name: 'Quokka One' });
  await createUser({ name: 'Quokka Two' });
  const owner = await createUser({ name: 'Somebody Else' });
  await createUsername(owner, 'quokka');
  const { page } = await searchFor('quokka');
  await page.getByText('3 found', { exact: true }).waitFor();
  expect(await page.locator('.found a.row').first().innerText()).toContain('Somebody Else');
  await page.getByRole('searchbox').press('Enter');
  await page.waitForURL(`**/console#/realms/${fixture.realm}/users/${owner}`);
});

test('Enter moves to the first of several people with one name, or with one e-mail address in several realms', async () => {
  const third = service.clock.mintId();
  await insertRecord(service.db, realms, [third], { ...realmMembers, name: 'Third Shop' });
  for (const realm of [fixture.realm, other, third])
    await createUser({ name: 'Tripler', email: 'tripler@example.com' }, realm);
  for (const text of ['tripler', 'tripler@example.com']) {
    const window = await searchFor(text);
    const { page } = window;
    await page.getByText('3 found', { exact: true }).waitFor();
    await page.getByRole('searchbox').press('Enter');
    await page.locator('.found li:first-child a.row:focus').waitFor();
    expect(await page.evaluate('location.hash')).toContain('#/?q=tripler');
    await expectNoErrors(window);
  }
});

test('Find shows names in any script as they are, and names the script of an address that reads as Latin', async () => {
  const names = ['Ayşe Yıldırım', 'Вера', 'ΑΝΝΑ', 'دالیا می\u200cخواهم', 'श्री\u200dमती'];
  for (const name of names) await createUser({ name, family_name: 'Polyglot', email: 'аррӏе@example.com' });
  const window = await searchFor('polyglot');
  const { page } = window;
  await page.getByText('5 found', { exact: true }).waitFor();
  for (const name of names)
    expect(await page.locator('.found bdi', { hasText: name }).first().textContent()).toBe(name);
  expect(await page.locator('.found .mark').allInnerTexts()).toEqual(names.map(() => 'Cyrillic'));
  await expectNoErrorsInAnyView(window);
});

test('Enter opens the only person, also when it is pressed before the results arrive', async () => {
  const id = await createUser({ family_name: 'Enterling' });
  const window = await openSignedIn(service, '#/', { scope: READ_SCOPE });
  const { page } = window;
  await page.getByRole('searchbox').fill('enterl');
  await page.keyboard.press('Enter');
  await page.waitForURL(`**/console#/realms/${fixture.realm}/users/${id}`);
  await expectNoErrors(window);
});

test('arrow keys move between the search box and the rows, and Enter opens the focused one', async () => {
  const ids = [
    await createUser({ family_name: 'Arrowsmith' }),
    await createUser({ family_name: 'Arrowsmith' }),
  ];
  const window = await searchFor('arrows');
  const { page } = window;
  await page.getByText('2 found', { exact: true }).waitFor();
  const order = await page
    .locator('.found a.row')
    .evaluateAll((rows) => rows.map((row) => row.getAttribute('href')));
  const focused = () =>
    page.evaluate('document.activeElement.getAttribute("href") ?? document.activeElement.type');
  const visited = [];
  for (const key of ['ArrowDown', 'ArrowDown', 'ArrowDown', 'ArrowUp', 'ArrowUp', 'ArrowDown', 'ArrowDown']) {
    await page.keyboard.press(key);
    visited.push(await focused());
  }
  const [one, two] = order;
  expect(visited).toEqual([one, two, two, one, 'search', one, two]);
  await page.keyboard.press('Enter');
  await page.waitForURL(`**/console${two}`);
  expect(ids.some((id) => two?.endsWith(id))).toBe(true);
});

test('Find leaves out a user that is deleted between the search and the reading of its name', async () => {
  const id = await createUser({ name: 'Vanishing' });
  await createUsername(id, 'vanishing-point');
  const writer = await service.token('users:write');
  const window = await openSignedIn(service, '#/', { scope: READ_SCOPE });
  const { page } = window;
  const path = `/v2/authentication-realms/${fixture.realm}/user-authentication-info/${id}`;
  let deleted: number | undefined;
  await page.route(`**${path}`, async (route) => {
    deleted ??= (await service.del(path, writer)).status;
    await route.continue();
  });
  await page.getByRole('searchbox').fill('point');
  await page.getByText('No user found').waitFor();
  expect(deleted).toBe(204);
  await window.expectError(/status of 404/);
});

test.each<[script: string, text: string]>([
  ['Latin', 'Þórdís Ægisdóttir '],
  ['Greek', 'Ὀδυσσεύς Λαερτιάδης '],
  ['Arabic', 'محمد بن عبد الله '],
  ['Devanagari', 'श्रीमती लक्ष्मी '],
  ['Han', '欧阳夏丹の長い名前'],
])('Find shows a name of 255 characters in the %s script', async (script, text) => {
  const name = [...`${script} ${text.repeat(60)}`].slice(0, 255).join('').trim();
  await createUser({ name });
  const window = await searchFor(`${script} ${[...text].slice(0, 4).join('').trim()}`);
  await window.page.getByText('1 found', { exact: true }).waitFor();
  await expectNoErrorsInAnyView(window);
});
