import { describe, expect, test } from 'bun:test';
import type { Page } from 'playwright-core';
import { expectNoErrors, openSignedIn, WRITE_SCOPE } from './console_session.ts';
import { type ConsoleWindow, VIEWS } from './console_window.ts';
import { openShop } from './open_console.ts';
import { pagePaths } from './page_paths.ts';

/** Every write on the pages of users, realms and profiles. */

const { service, shop } = await openShop();

const saved = (page: Page, words: string) => page.getByRole('status').filter({ hasText: words }).waitFor();
const press = (page: Page, name: string) => page.getByRole('button', { name, exact: true }).click();
const link = ({ page }: ConsoleWindow, name: string) => page.getByRole('row', { name });
const fragment = ({ page }: ConsoleWindow) => page.evaluate('location.hash') as Promise<string>;

async function createUser(name: string) {
  const token = await service.token(WRITE_SCOPE);
  const users = `/v2/authentication-realms/${shop.realm}/user-authentication-info`;
  const data = { type: 'user_authentication_info', name, email: 'somebody@example.com' };
  const made = await service.post(users, token, { data });
  const { id } = ((await made.json()) as { data: { id: string } }).data;
  return { id, path: `${users}/${id}`, token };
}

async function confirm(page: Page, verb: string): Promise<void> {
  const dialog = page.getByRole('dialog');
  const word = (await dialog.locator('label strong').textContent()) ?? '';
  const button = dialog.getByRole('button', { name: verb, exact: true });
  await dialog.getByRole('textbox').fill(`${word}!`);
  expect(await button.isDisabled()).toBe(true);
  await dialog.getByRole('textbox').fill(word);
  await button.click();
}

async function makePasswordProfile(page: Page): Promise<void> {
  await press(page, 'New password profile');
  await page.getByLabel('Name', { exact: true }).fill('Names');
  await page.getByLabel('Username format').selectOption('email');
  await page.getByLabel('One-time password tokens').check();
  await press(page, 'Create');
  await page.getByRole('heading', { name: 'Names' }).waitFor();
  await page.locator('dd').filter({ hasText: /^yes$/ }).waitFor();
}

describe.each(VIEWS)('$viewport.width wide, $scheme', (view) => {
  describe('a user', () => {
    test('a user is created, edited and deleted', async () => {
      const window = await openSignedIn(service, pagePaths(shop).users, { view });
      const { page } = window;
      await press(page, 'New user');
      await page.getByLabel('Name', { exact: true }).fill('Mary Shelley');
      await press(page, 'Create');
      await page.getByText('Enter the e-mail.').waitFor();
      await page.locator('[name=email]:focus').waitFor();
      await page.getByLabel('E-mail', { exact: true }).fill('no address');
      await press(page, 'Create');
      await page.getByText('E-mail must be an e-mail address.').waitFor();
      await window.expectError(/status of 400/);
      expect(await window.violations()).toEqual([]);
      await page.getByLabel('E-mail', { exact: true }).fill('mary@example.com');
      await press(page, 'Create');
      await page.getByRole('heading', { name: 'Mary Shelley' }).waitFor();
      await page.getByText('No links or usernames yet').waitFor();
      await press(page, 'Edit');
      await page.getByLabel('Given name').fill('Mary');
      await press(page, 'Save');
      await saved(page, 'Saved.');
      const givenName = page.locator('dd').filter({ hasText: /^Mary$/ });
      await givenName.waitFor();
      await press(page, 'Edit');
      await page.getByLabel('Given name').fill('');
      await press(page, 'Save');
      // The announcement disappears after a few seconds, and may be that of the previous change.
      await Promise.all([saved(page, 'Saved.'), givenName.waitFor({ state: 'detached' })]);
      const id = (await fragment(window)).split('/').at(-1) ?? '';
      const path = `/v2/authentication-realms/${shop.realm}/user-authentication-info/${id}`;
      const token = await service.token(WRITE_SCOPE);
      const { data } = (await (await service.get(path, token)).json()) as { data: Record<string, unknown> };
      expect(data).toMatchObject({ name: 'Mary Shelley', email: 'mary@example.com', given_name: null });
      await press(page, 'Delete');
      await confirm(page, 'Delete');
      await page.getByRole('heading', { name: 'Users' }).waitFor();
      expect((await service.get(path, token)).status).toBe(404);
      await expectNoErrors(window);
    });

    test('a user is disabled and enabled again in the form, and the page says that the user cannot sign in', async () => {
      const { id, path, token } = await createUser('Disable Me');
      const window = await openSignedIn(service, `${pagePaths(shop).users}/${id}`, { view });
      const { page } = window;
      const note = page.getByRole('heading', { name: 'Disabled: cannot sign in' });
      const enabled = page.getByLabel('Enabled');
      const stored = async () =>
        ((await (await service.get(path, token)).json()) as { data: { enabled?: boolean } }).data.enabled;
      await page.locator('dd').filter({ hasText: /^yes$/ }).waitFor();
      expect(await note.count()).toBe(0);
      await press(page, 'Edit');
      expect(await enabled.isChecked()).toBe(true);
      await enabled.uncheck();
      await press(page, 'Save');
      await note.waitFor();
      await page.locator('dd').filter({ hasText: /^no$/ }).waitFor();
      expect(await stored()).toBe(false);
      await press(page, 'Edit');
      expect(await enabled.isChecked()).toBe(false);
      await enabled.check();
      await press(page, 'Save');
      await note.waitFor({ state: 'detached' });
      expect(await stored()).toBeUndefined();
      await expectNoErrors(window);
    });

    test('a user is erased by a session with the scope admin', async () => {
      const { id } = await createUser('Erase Me');
      const window = await openSignedIn(service, `${pagePaths(shop).users}/${id}`, {
        scope: `${WRITE_SCOPE} admin`,
        view,
      });
      await press(window.page, 'Erase permanently');
      await confirm(window.page, 'Erase permanently');
      await saved(window.page, 'The user was erased.');
      const admin = await service.token('admin');
      expect((await service.get(`/admin/v1/erasures/${shop.realm}/${id}`, admin)).status).toBe(200);
      await expectNoErrors(window);
    });
  });

  describe('links of a user', () => {
    test('links of a user are added, edited and removed', async () => {
      const window = await openSignedIn(service, pagePaths(shop).user, { view });
      const { page } = window;
      await press(page, 'Add link');
      await page.getByLabel('Provider').selectOption({ label: 'Partner portal' });
      expect(await page.getByLabel('Issuer').inputValue()).toBe('https://partners.example.org');
      await page.getByLabel('Subject', { exact: true }).fill('auth0|5f7c8ec7c33c6c004bbafe82');
      await page.getByLabel('Issuer').fill('https://login.example.com');
      await press(page, 'Create');
      await page
        .getByRole('dialog')
        .getByText(/must be unique in the realm/)
        .first()
        .waitFor();
      await window.expectError(/status of 422/);
      await page.getByLabel('Issuer').fill('https://partners.example.org');
      await page.getByLabel('Subject', { exact: true }).fill('new-subject');
      await press(page, 'Create');
      await link(window, 'link new-subject').waitFor();
      await press(page, 'Edit new-subject');
      expect(await page.getByRole('dialog').getByLabel('Provider').count()).toBe(0);
      await page.getByLabel('Subject', { exact: true }).fill('newer-subject');
      await press(page, 'Save');
      await link(window, 'link newer-subject').waitFor();
      await press(page, 'Remove newer-subject');
      await press(page, 'Remove');
      await saved(page, 'The link was removed.');
      await link(window, 'link newer-subject').waitFor({ state: 'detached' });
      await expectNoErrors(window);
    });

    test('usernames of a user are added, edited and removed without showing a password', async () => {
      const window = await openSignedIn(service, pagePaths(shop).user, { view });
      const { page } = window;
      await press(page, 'Add username');
      await page.getByLabel('Username', { exact: true }).fill('jane.second');
      await page.getByLabel('Password', { exact: true }).fill('short');
      await press(page, 'Create');
      await page.getByText('Enter at least 8 characters, not 5.').waitFor();
      await page.getByLabel('Password', { exact: true }).fill('correct horse battery');
      const added = link(window, 'username jane.second');
      const busy = page.getByRole('dialog').getByText('The service is busy.');
      for (let isBusy = true; isBusy; ) {
        await press(page, 'Create');
        await added.or(busy).first().waitFor();
        // A busy machine has no time to hash the password.
        isBusy = await busy.isVisible();
        if (isBusy) await window.expectError(/status of 503/);
      }
      expect(await page.textContent('body')).not.toContain('correct horse');
      await press(page, 'Edit jane.second');
      await page.getByLabel('Username', { exact: true }).fill('jane.third');
      await press(page, 'Save');
      await link(window, 'username jane.third').waitFor();
      await press(page, 'Remove jane.third');
      await press(page, 'Remove');
      await link(window, 'username jane.third').waitFor({ state: 'detached' });
      await expectNoErrors(window);
    });
  });

  describe('a realm', () => {
    test('a realm is created, edited and deleted, with profiles of both kinds', async () => {
      const window = await openSignedIn(service, '#/realms', { view });
      const { page } = window;
      await press(page, 'New realm');
      await page.getByLabel('Name', { exact: true }).fill('Outlet');
      await page.getByLabel('Redirect URIs').fill('https://outlet.example/callback\nftp://nowhere');
      await press(page, 'Create');
      await page.getByText(/must be an absolute https URL/).waitFor();
      await window.expectError(/status of 422/);
      await page.getByLabel('Redirect URIs').fill('https://outlet.example/callback\n');
      await page.getByLabel('Duplicate e-mail addresses').selectOption('api_only');
      await press(page, 'Create');
      await page.getByRole('heading', { name: 'Outlet' }).waitFor();
      await page.getByText('https://outlet.example/callback').waitFor();
      const realm = await fragment(window);

      await press(page, 'New provider');
      await page.getByLabel('Name', { exact: true }).fill('Staff login');
      await page.getByLabel('Discovery URL').fill('https://staff.example/.well-known/openid-configuration');
      await page.getByLabel('Client ID').fill('outlet');
      await page.getByLabel('Client secret').fill('of the provider alone');
      await press(page, 'Create');
      await page.getByRole('heading', { name: 'Staff login' }).waitFor();
      expect(await page.textContent('body')).not.toContain('of the provider alone');
      await press(page, 'Edit');
      await page.getByLabel('Name', { exact: true }).fill('Staff sign-in');
      await press(page, 'Save');
      await page.getByRole('heading', { name: 'Staff sign-in' }).waitFor();
      await press(page, 'Delete');
      await confirm(page, 'Delete');
      await page.getByText('No providers yet').waitFor();

      await makePasswordProfile(page);
      await window.page.evaluate(`location.hash = '${realm}'`);
      await page.getByRole('heading', { name: 'Outlet' }).waitFor();
      await press(page, 'Edit');
      await page.getByLabel('Name', { exact: true }).fill('Outlet store');
      await press(page, 'Save');
      await page.getByRole('heading', { name: 'Outlet store' }).waitFor();
      await press(page, 'Delete');
      await confirm(page, 'Delete');
      await page.getByRole('heading', { name: 'Realms' }).waitFor();
      expect(await page.getByText('Outlet store').count()).toBe(0);
      await expectNoErrors(window);
    });

    test('a password profile is created, edited and deleted', async () => {
      const window = await openSignedIn(service, pagePaths(shop).realm, { view });
      const { page } = window;
      await makePasswordProfile(page);
      const id = (await fragment(window)).split('/').at(-1) ?? '';
      const path = `/v2/authentication-realms/${shop.realm}/password-profiles/${id}`;
      const token = await service.token(WRITE_SCOPE);
      await press(page, 'Edit');
      await page.getByLabel('Name', { exact: true }).fill('Nicknames');
      await page.getByLabel('Username format').selectOption('any');
      await page.getByLabel('One-time password tokens').uncheck();
      expect(await window.violations()).toEqual([]);
      await press(page, 'Save');
      await page.getByRole('heading', { name: 'Nicknames' }).waitFor();
      const { data } = (await (await service.get(path, token)).json()) as { data: Record<string, unknown> };
      expect(data).toMatchObject({ name: 'Nicknames', username_format: 'any' });
      await expectNoErrors(window);
      await press(page, 'Delete');
      await confirm(page, 'Delete');
      await page.getByRole('heading', { name: 'Buyer Organization' }).waitFor();
      await page.getByRole('link', { name: 'Passwords' }).waitFor();
      expect(await page.getByText('Nicknames').count()).toBe(0);
      expect((await service.get(path, token)).status).toBe(404);
      await expectNoErrors(window);
    });
  });
});
