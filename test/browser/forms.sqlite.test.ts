import { describe, expect, test } from 'bun:test';
import type { Page } from 'playwright-core';
import {
  copiedText,
  expectNoErrors,
  expectNoErrorsInAnyView,
  openSignedIn,
  READ_SCOPE,
  WRITE_SCOPE,
} from './console_session.ts';
import { openShop } from './open_console.ts';
import { pagePaths } from './page_paths.ts';

/** What forms say and keep: required fields, typed values, duplicates, secrets. */

const { service, shop } = await openShop();
const ADMIN = `${READ_SCOPE} admin`;
const SUBJECT = 'auth0|5f7c8ec7c33c6c004bbafe82';

const press = (page: Page, name: string) => page.getByRole('button', { name, exact: true }).click();

/** The questions of the browser, and how the next ones are answered. */
function answering(page: Page) {
  const state = { questions: [] as string[], isAccepted: false };
  page.on('dialog', (question) => {
    state.questions.push(question.message());
    void (state.isAccepted ? question.accept() : question.dismiss());
  });
  return state;
}

describe('a form', () => {
  test.each([
    ['a new user', (): string => pagePaths(shop).users, 'New user', 'Name'],
    ['a user', (): string => pagePaths(shop).user, 'Edit', 'Name'],
    ['a link', (): string => pagePaths(shop).user, 'Add link', 'Provider'],
    ['a new client', (): string => '#/clients', 'New client', 'Name'],
    ['a deletion', (): string => pagePaths(shop).realm, 'Delete', /^Type delete/],
  ] as const)('the form of %s begins with the focus in its first field', async (_, path, button, field) => {
    const window = await openSignedIn(service, path(), { scope: `${WRITE_SCOPE} admin` });
    const { page } = window;
    await press(page, button);
    const first = page.getByRole('dialog').getByLabel(field, { exact: true });
    await first.waitFor();
    await window.until(`document.activeElement.closest('.field') !== null`);
    expect(await first.evaluate((each) => each === each.ownerDocument.activeElement)).toBe(true);
    await expectNoErrors(window);
  });

  test('Escape asks before it discards what was typed, and keeps it if the answer is no', async () => {
    const window = await openSignedIn(service, pagePaths(shop).users);
    const { page } = window;
    const browser = answering(page);
    await press(page, 'New user');
    await page.getByRole('dialog').waitFor();
    await page.keyboard.press('Escape');
    await page.getByRole('dialog').waitFor({ state: 'detached' });
    expect(browser.questions).toEqual([]);
    await press(page, 'New user');
    await page.keyboard.type('Half a name');
    for (let turn = 0; turn < 3; turn += 1) await page.keyboard.press('Escape');
    await page.getByRole('dialog').getByRole('button', { name: 'Close' }).click();
    expect(await page.getByLabel('Name', { exact: true }).inputValue()).toBe('Half a name');
    expect(browser.questions).toEqual(Array(4).fill('Discard what you have typed?'));
    await expectNoErrors(window);
    browser.isAccepted = true;
    await page.keyboard.press('Escape');
    await page.getByRole('dialog').waitFor({ state: 'detached' });
    expect(browser.questions.length).toBe(5);
    await expectNoErrors(window);
  });

  test('Escape closes a confirmation without a question', async () => {
    const window = await openSignedIn(service, pagePaths(shop).realm);
    const { page } = window;
    const browser = answering(page);
    await press(page, 'Delete');
    await page.getByRole('dialog').getByRole('textbox').fill('delete');
    await page.keyboard.press('Escape');
    await page.getByRole('dialog').waitFor({ state: 'detached' });
    expect(browser.questions).toEqual([]);
  });

  test('a password form states its rule, and generates a password that is shown, copied and stored', async () => {
    const window = await openSignedIn(service, pagePaths(shop).user);
    const { page } = window;
    await press(page, 'Add username');
    const password = page.getByLabel('Password', { exact: true });
    await page.getByText('At least 8 characters.', { exact: true }).waitFor();
    expect(await password.getAttribute('type')).toBe('password');
    await page.getByRole('textbox', { name: 'Username' }).fill('jane.generated');
    await press(page, 'Generate');
    const generated = await password.inputValue();
    expect(generated).toMatch(/^([a-km-z2-9]{4}-){4}[a-km-z2-9]{4}$/);
    expect(await password.getAttribute('type')).toBe('text');
    expect(await copiedText(window, page.getByRole('button', { name: 'Copy the password' }))).toBe(generated);
    await expectNoErrorsInAnyView(window);
    await press(page, 'Hide');
    expect(await password.getAttribute('type')).toBe('password');
    await press(page, 'Generate');
    expect(await password.inputValue()).not.toBe(generated);
    await press(page, 'Create');
    await page.getByText('jane.generated').first().waitFor();
    await page.getByRole('dialog').waitFor({ state: 'detached' });
    await expectNoErrors(window);
  });

  test('the form of a provider states the order of its registration, with examples of providers', async () => {
    const window = await openSignedIn(service, pagePaths(shop).realm);
    const { page } = window;
    await press(page, 'New provider');
    const steps = page.getByRole('dialog').getByRole('listitem');
    expect((await steps.allInnerTexts()).map((each) => each.split(' ')[0])).toEqual([
      'Register',
      'Create',
      'Copy',
      'Add',
    ]);
    await page.getByText(/where TENANT is the ID of your directory/).waitFor();
    expect(await page.getByRole('button', { name: 'Generate' }).count()).toBe(0);
    await expectNoErrorsInAnyView(window);
    await page.getByLabel('Name', { exact: true }).fill('Entra ID');
    await page
      .getByLabel('Discovery URL')
      .fill('https://login.microsoftonline.com/9188040d/v2.0/.well-known/openid-configuration');
    await page.getByLabel('Client ID').fill('6731de76-14a6-49ae-97bc-6eba6914391e');
    await page.getByLabel('Client secret').fill('of the application');
    await press(page, 'Create');
    await page.getByRole('heading', { name: 'Entra ID' }).waitFor();
    await page.getByRole('button', { name: 'Copy the redirect URI' }).waitFor();
    expect(await page.locator('main dt').first().innerText()).toBe('Redirect URI');
    await expectNoErrorsInAnyView(window);
  });
});

describe('a link form', () => {
  test('a link form asks for the provider first, and copies its issuer', async () => {
    const window = await openSignedIn(service, pagePaths(shop).user);
    const { page } = window;
    await press(page, 'Add link');
    await page.getByRole('dialog').getByLabel('Issuer').waitFor();
    const labels = await page.getByRole('dialog').locator('label').allInnerTexts();
    expect(labels).toEqual(['Provider', 'Subject', 'Issuer']);
    await press(page, 'Create');
    for (const words of ['Choose the provider.', 'Enter the subject.', 'Enter the issuer.']) {
      await page.locator('.field-error').filter({ hasText: words }).waitFor();
    }
    await page.locator('[name=oidc_profile_id]:focus').waitFor();
    await expectNoErrorsInAnyView(window);
    await page.getByLabel('Provider').selectOption({ label: 'Partner portal' });
    expect(await page.getByLabel('Issuer').inputValue()).toBe('https://partners.example.org');
    await page.getByLabel('Provider').selectOption({ label: 'Company login' });
    expect(await page.getByLabel('Issuer').inputValue()).toBe('https://login.example.com');
  });

  test('choosing a provider does not overwrite a typed issuer', async () => {
    const window = await openSignedIn(service, pagePaths(shop).user);
    const { page } = window;
    await press(page, 'Add link');
    await page.getByLabel('Issuer').fill('https://typed.example');
    await page.getByLabel('Provider').selectOption({ label: 'Partner portal' });
    expect(await page.getByLabel('Issuer').inputValue()).toBe('https://typed.example');
    await page.getByText('The selected provider has https://partners.example.org.').waitFor();
    await page.getByLabel('Issuer').fill('');
    await page.getByLabel('Provider').selectOption({ label: 'Company login' });
    expect(await page.getByLabel('Issuer').inputValue()).toBe('https://login.example.com');
    await expectNoErrors(window);
  });

  test('a duplicate link leads to the user that has it, if this session may read it', async () => {
    const add = async (scope: string) => {
      const window = await openSignedIn(service, pagePaths(shop).strange, { scope });
      const { page } = window;
      await press(page, 'Add link');
      await page.getByLabel('Provider').selectOption({ label: 'Company login' });
      await page.getByLabel('Subject', { exact: true }).fill(SUBJECT);
      await press(page, 'Create');
      await page.getByText('Subject must be unique in the realm, together with issuer.').waitFor();
      await window.expectError(/status of 422/);
      return window;
    };
    const reads = 'realms:read profiles:read users:read';
    const window = await add(`${reads} oidc-profile-infos:read oidc-profile-infos:write`);
    await expectNoErrorsInAnyView(window);
    await window.page.getByRole('dialog').getByRole('link', { name: 'Jane Doe' }).click();
    await window.page.getByRole('heading', { name: 'Jane Doe', level: 1 }).waitFor();
    expect(await window.page.getByRole('dialog').count()).toBe(0);
    await window.close();

    const blind = await add(`${reads} oidc-profile-infos:write`);
    await blind.page.waitForLoadState('networkidle');
    expect(await blind.page.getByRole('dialog').innerText()).not.toContain('Jane Doe');
    await expectNoErrors(blind);
    await blind.close();
  });

  test('a removed link can be created again with its values', async () => {
    const window = await openSignedIn(service, pagePaths(shop).user);
    const { page } = window;
    const link = page.getByRole('row', { name: `link ${SUBJECT}` });
    await press(page, `Remove ${SUBJECT}`);
    await press(page, 'Remove');
    await link.waitFor({ state: 'detached' });
    await expectNoErrors(window);
    await press(page, 'Undo');
    expect(await page.getByLabel('Subject', { exact: true }).inputValue()).toBe(SUBJECT);
    await press(page, 'Create');
    await link.waitFor();
    await page.getByRole('button', { name: 'Undo' }).waitFor({ state: 'detached' });
    await expectNoErrors(window);
  });
});

describe('names', () => {
  const SCRIPTS = { Latin: 'ä', Cyrillic: 'Ж', Han: '王', Arabic: 'ب', Deseret: '𐐀' } as const;

  test.each(Object.entries(SCRIPTS))(
    'a name of 255 characters in %s script is stored and shown, one of 256 is refused in the form',
    async (script, letter) => {
      const window = await openSignedIn(service, pagePaths(shop).users);
      const { page } = window;
      await press(page, 'New user');
      await page.getByLabel('Name', { exact: true }).fill(letter.repeat(256));
      await page.getByLabel('E-mail', { exact: true }).fill(`${script}@example.com`);
      await press(page, 'Create');
      await page.getByText('Enter at most 255 characters, not 256.').waitFor();
      await page.getByLabel('Name', { exact: true }).fill(letter.repeat(255));
      await press(page, 'Create');
      await page.getByText('No links or usernames yet').waitFor();
      expect(await page.getByRole('heading', { level: 1 }).innerText()).toBe(letter.repeat(255));
      await expectNoErrorsInAnyView(window);
      await window.goto('#/changes');
      await page.getByText(letter.repeat(255)).first().waitFor();
      await expectNoErrorsInAnyView(window);
    },
  );

  test('two users with one name are told apart by their e-mail addresses in the list', async () => {
    const token = await service.token('users:write');
    const path = `/v2/authentication-realms/${shop.realm}/user-authentication-info`;
    for (const email of ['kim.first@example.com', 'kim.second@example.com']) {
      const data = { type: 'user_authentication_info', name: 'Kim Lee', email };
      expect((await service.post(path, token, { data })).status).toBe(201);
    }
    const window = await openSignedIn(service, pagePaths(shop).users);
    const { page } = window;
    await page.getByRole('link', { name: 'Kim Lee' }).filter({ hasText: 'kim.second@example.com' }).click();
    await page.getByRole('heading', { name: 'Kim Lee', level: 1 }).waitFor();
    await page.getByText('kim.second@example.com').first().waitFor();
    await expectNoErrors(window);
  });
});

describe('clients', () => {
  test('the dialog of a new secret stays open until its button is pressed', async () => {
    const window = await openSignedIn(service, '#/clients', { scope: ADMIN });
    const { page } = window;
    await press(page, 'New client');
    await page.getByLabel('Name', { exact: true }).fill('Keeps its secret');
    await page.getByLabel('users:read').check();
    await press(page, 'Create');
    const dialog = page.getByRole('dialog', { name: 'Secret of this client' });
    const secret = await dialog.locator('code').nth(1).innerText();
    expect(secret).toStartWith('ars_');
    for (let turn = 0; turn < 4; turn += 1) await page.keyboard.press('Escape');
    await expectNoErrorsInAnyView(window);
    expect(await dialog.locator('code').nth(1).innerText()).toBe(secret);
    expect(await dialog.getByRole('button', { name: 'Close' }).count()).toBe(0);
    await dialog.getByRole('button', { name: 'I have stored it' }).click();
    await dialog.waitFor({ state: 'detached' });
    await expectNoErrors(window);
  });

  test('a client gets tokens by its ID alone, with scopes, realms and a rate of their own', async () => {
    const window = await openSignedIn(service, '#/clients', { scope: ADMIN });
    const { page } = window;
    await press(page, 'New client');
    await page.getByLabel('Name', { exact: true }).fill('The storefront');
    await page.getByLabel('users:read').check();
    await page.getByLabel('For a storefront').check();
    const alone = page.getByRole('group', { name: 'Scopes of the ID alone' });
    expect(await alone.getByRole('checkbox').count()).toBe(4);
    await press(page, 'Create');
    await alone.getByText('Select at least one scope.').waitFor();
    const realms = page.getByRole('group', { name: 'Realms of the ID alone' });
    expect(await realms.getByLabel('Those of the client').isChecked()).toBe(true);
    await realms.getByText('Select at least one realm.').waitFor();
    await alone.getByLabel('profiles:read').check();
    await realms.getByLabel('Some').check();
    await realms.getByLabel('Buyer Organization').check();
    await page.getByLabel('Requests per address').fill('many');
    await press(page, 'Create');
    await page.getByText('Enter requests and seconds, such as 60/60.').waitFor();
    await expectNoErrorsInAnyView(window);
    await page.getByLabel('Requests per address').fill('30/60');
    await page.getByLabel('Networks of the storefront').pressSequentially('192.0.2.1 192.0.2.64/26 ');
    await press(page, 'Create');
    await press(page, 'I have stored it');
    const row = page.getByRole('link', { name: 'The storefront' });
    await row.filter({ hasText: 'by the ID alone read providers and password profiles' }).click();
    await page.getByText('30 requests in 60 seconds from each address').waitFor();
    await page.getByText('192.0.2.1, 192.0.2.64/26').waitFor();
    await expectNoErrorsInAnyView(window);

    await press(page, 'Edit');
    await page.getByLabel('Requests per address').fill('45/60');
    await press(page, 'Save');
    await page.getByText('45 requests in 60 seconds from each address').waitFor();
    await press(page, 'Edit');
    await page.getByLabel('For a storefront').uncheck();
    await press(page, 'Save');
    await page.getByText('45 requests in 60 seconds from each address').waitFor({ state: 'detached' });
    await expectNoErrorsInAnyView(window);
  });
});
