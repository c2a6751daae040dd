import { expect, test } from 'bun:test';
import { LIMITS } from '../../src/model/limits.ts';
import { expectNoErrors, openSignedIn, WRITE_SCOPE } from './console_session.ts';
import { openShop } from './open_console.ts';
import { pagePaths } from './page_paths.ts';

/** The history of a user and of each link, from the change feed, and lists longer than one page. */

const { service, shop } = await openShop();

test('the history of a link shows its own changes, that of a user also removed links', async () => {
  const window = await openSignedIn(service, pagePaths(shop).user);
  const { page } = window;
  const historyEntries = () =>
    page.getByRole('region', { name: 'History' }).getByRole('listitem').allTextContents();
  await page.getByRole('region', { name: 'History' }).getByText('User created').waitFor();
  // The user and four links; the updates of the user by each link are not listed.
  const before = await historyEntries();
  expect(before.map((line) => /(User|Link|Username) (created|updated)/.exec(line)?.[0])).toEqual([
    'Username created',
    'Link created',
    'Link created',
    'Link created',
    'User created',
  ]);
  await page.getByRole('button', { name: 'Edit jdoe@corp.example' }).click();
  await page.getByLabel('Subject', { exact: true }).fill('jane@corp.example');
  await page.getByRole('button', { name: 'Save', exact: true }).click();
  await page.getByRole('button', { name: 'History of jane@corp.example' }).click();
  const dialog = page.getByRole('dialog', { name: 'History of this link' });
  await dialog.getByText('Link updated').waitFor();
  const lines = await dialog.getByRole('listitem').allTextContents();
  expect(lines).toHaveLength(2);
  expect(lines[0]).toMatch(/Link updated.*Subject/);
  expect(lines[1]).toMatch(/Link created/);
  await expectNoErrors(window);
  await page.keyboard.press('Escape');
  await page.getByRole('button', { name: 'Remove jane@corp.example' }).click();
  await page.getByRole('button', { name: 'Remove', exact: true }).click();
  await page.getByRole('region', { name: 'History' }).getByText('Link deleted').waitFor();
  expect(await historyEntries()).toHaveLength(before.length + 2);
  expect(await page.getByText('Realm created').count()).toBe(0);
  await expectNoErrors(window);
});

test('the history shows times in the time zone of the browser, and in UTC as a tooltip', async () => {
  const window = await openSignedIn(service, pagePaths(shop).user, { scope: WRITE_SCOPE });
  const time = window.page.locator('ol.history time').first();
  await time.waitFor();
  const at = new Date((await time.getAttribute('datetime')) ?? '');
  const here = new Intl.DateTimeFormat('en-GB', { timeStyle: 'medium', timeZone: 'Europe/Berlin' }).format(
    at,
  );
  expect(await time.textContent()).toContain(here);
  expect(await time.getAttribute('title')).toBe(`${at.toISOString().replace('T', ' ').replace('Z', '')} UTC`);
});

/** Records in one page of a list. */
const PAGE = LIMITS.pageRecordsMax;

test('a long history says how far it reaches, and loads older changes on demand', async () => {
  const path = `/v2/authentication-realms/${shop.realm}/user-authentication-info/${shop.user}`;
  const token = await service.token(WRITE_SCOPE);
  for (let count = 0; count < 5 * PAGE; count += 1) {
    const data = { type: 'user_authentication_info', middle_name: `the ${count}th` };
    expect((await service.put(path, token, { data })).status).toBe(200);
  }
  const window = await openSignedIn(service, pagePaths(shop).user);
  const { page } = window;
  await page.getByRole('button', { name: 'History of jane.doe' }).click();
  const dialog = page.getByRole('dialog', { name: 'History of this username' });
  await dialog.getByText(`Only the newest ${5 * PAGE} changes of this user`).waitFor();
  await dialog.getByText('No changes of this record among those searched.').waitFor();
  expect(await dialog.getByText('The feed holds no changes of this record.').count()).toBe(0);
  await expectNoErrors(window);
  await dialog.getByRole('button', { name: 'Load older changes' }).click();
  await dialog.getByText('Username created').waitFor();
  expect(await dialog.getByRole('button', { name: 'Load older changes' }).count()).toBe(0);
  expect(await dialog.getByText('Only the newest').count()).toBe(0);
  await expectNoErrors(window);
  await page.keyboard.press('Escape');
  const whole = page.getByRole('region', { name: 'History' });
  expect(await whole.getByText('User created').count()).toBe(0);
  await whole.getByRole('button', { name: 'Load older changes' }).click();
  await whole.getByText('User created').waitFor();
});

test('the page of a user with many links loads more of them on demand', async () => {
  const users = `/v2/authentication-realms/${shop.realm}/user-authentication-info`;
  const token = await service.token(WRITE_SCOPE);
  const data = { type: 'user_authentication_info', name: 'Many', email: 'many@example.com' };
  const made = await service.post(users, token, { data });
  const { id } = ((await made.json()) as { data: { id: string } }).data;
  for (let count = 1; count <= PAGE + 1; count += 1) {
    const subject = `subject ${count}`;
    const link = { issuer: 'https://login.example.com', subject, oidc_profile_id: shop.oidcProfile };
    const data = { type: 'user_authentication_oidc_profile_info', ...link };
    const answer = await service.post(`${users}/${id}/user-authentication-oidc-profile-info`, token, {
      data,
    });
    expect(answer.status).toBe(201);
  }
  const window = await openSignedIn(service, `#/realms/${shop.realm}/users/${id}`);
  const { page } = window;
  const links = page.getByRole('row', { name: /^link subject/ });
  const namesOf = () => links.evaluateAll((all) => all.map((each) => each.getAttribute('aria-label') ?? ''));
  await page.getByText(`Showing the first ${PAGE} links and usernames of this user.`).waitFor();
  const requests: string[] = [];
  page.on('request', (request) => requests.push(request.url()));
  await page.reload();
  await page.getByText(`Showing the first ${PAGE} links and usernames of this user.`).waitFor();
  expect(requests.filter((url) => url.includes(`/user-authentication-info/${id}`))).toHaveLength(1);
  const before = await namesOf();
  expect(before).toHaveLength(PAGE);
  await expectNoErrors(window);
  await page.getByRole('button', { name: 'Show more' }).click();
  await page.getByText('links and usernames of this user.').waitFor({ state: 'detached' });
  const added = (await namesOf()).filter((name) => !before.includes(name));
  expect(added).toHaveLength(1);
  // An edit keeps the additional links on the page.
  const subject = added[0]?.replace('link ', '') ?? '';
  await page.getByRole('button', { name: `Edit ${before[0]?.replace('link ', '')}`, exact: true }).click();
  await page.getByLabel('Subject', { exact: true }).fill('another subject');
  await page.getByRole('button', { name: 'Save', exact: true }).click();
  await page.getByRole('row', { name: 'link another subject' }).waitFor();
  expect(await page.getByRole('row', { name: `link ${subject}`, exact: true }).count()).toBe(1);
  expect(await links.count()).toBe(PAGE);
});
