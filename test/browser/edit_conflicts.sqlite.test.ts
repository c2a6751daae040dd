import { describe, expect, test } from 'bun:test';
import type { Locator, Page } from 'playwright-core';
import { expectNoErrors, openSignedIn, WRITE_SCOPE } from './console_session.ts';
import { openShop } from './open_console.ts';
import { pagePaths } from './page_paths.ts';

/** Concurrent edits of a record, and records deleted while a page shows them. */

const { service, shop } = await openShop();

const press = (page: Page, name: string) => page.getByRole('button', { name, exact: true }).click();
const userPath = () => `/v2/authentication-realms/${shop.realm}/user-authentication-info/${shop.user}`;
const facts = (page: Page) => page.getByRole('region', { name: 'Profile' });

/** Two windows with the same form open; the first has saved another middle name. */
async function contend(words: string) {
  const [first, second] = [
    await openSignedIn(service, pagePaths(shop).user),
    await openSignedIn(service, pagePaths(shop).user),
  ];
  for (const { page } of [first, second]) {
    await press(page, 'Edit');
    await page.getByLabel('Middle name').waitFor();
  }
  await first.page.getByLabel('Middle name').fill(`theirs ${words}`);
  await press(first.page, 'Save');
  await first.page.getByText(`theirs ${words}`).waitFor();
  await second.page.getByLabel('Middle name').fill(`mine ${words}`);
  await press(second.page, 'Save');
  const dialog = second.page.getByRole('dialog', { name: 'Edit conflict' });
  await dialog.waitFor();
  await second.expectError(/status of 412/);
  return { second, dialog };
}

/** Opens the form of a record, after which somebody else saves `theirs`. */
async function editDuring(fragment: string, edit: string, path: string, theirs: object) {
  const window = await openSignedIn(service, fragment);
  await press(window.page, edit);
  await window.page.getByRole('dialog').getByRole('textbox').first().waitFor();
  expect((await service.put(path, await service.token(WRITE_SCOPE), { data: theirs })).status).toBe(200);
  return window;
}

/** The member `data` of a record. */
async function dataOf(path: string): Promise<Record<string, unknown>> {
  const answer = await service.get(path, await service.token(WRITE_SCOPE));
  return ((await answer.json()) as { data: Record<string, unknown> }).data;
}

describe('changes of two people to different members', () => {
  const realmPath = () => `/v2/authentication-realms/${shop.realm}`;
  const linkPath = () => `${userPath()}/user-authentication-password-profile-info/${shop.usernameLink}`;
  const link = { type: 'user_authentication_password_profile_info' };

  test('two changes to different members of a user are both saved, without a question', async () => {
    const theirs = { type: 'user_authentication_info', family_name: 'Merged' };
    const window = await editDuring(pagePaths(shop).user, 'Edit', userPath(), theirs);
    await window.page.getByLabel('Given name').fill('Mine');
    await press(window.page, 'Save');
    await window.page.getByText('Saved.').waitFor();
    await window.expectError(/status of 412/);
    expect(await dataOf(userPath())).toMatchObject({ given_name: 'Mine', family_name: 'Merged' });
    await expectNoErrors(window);
  });

  test('a username is saved without a question after somebody else has set its password', async () => {
    const theirs = { ...link, password: 'another long password' };
    const window = await editDuring(pagePaths(shop).user, 'Edit jane.doe', linkPath(), theirs);
    await window.page.getByRole('textbox', { name: 'Username' }).fill('jane.mine');
    await press(window.page, 'Save');
    await window.page.getByText('Saved.').waitFor();
    await window.expectError(/status of 412/);
    expect(await dataOf(linkPath())).toMatchObject({ username: 'jane.mine' });
    await expectNoErrors(window);
  });

  test('a password is not saved without a question after somebody else has changed its link', async () => {
    const theirs = { ...link, username: 'jane.doe' };
    const window = await editDuring(pagePaths(shop).user, 'Edit jane.mine', linkPath(), theirs);
    await window.page.getByLabel('Password (optional)').fill('my own long password');
    await press(window.page, 'Save');
    await window.page.getByRole('dialog', { name: 'Edit conflict' }).waitFor();
    await window.expectError(/status of 412/);
    await expectNoErrors(window);
  });

  test('the name of a realm is saved without a question after somebody else has changed redirect URIs', async () => {
    const theirs = { type: 'authentication-realm', redirect_uris: ['https://shop.example.com/theirs'] };
    const window = await editDuring(pagePaths(shop).realm, 'Edit', realmPath(), theirs);
    await window.page.getByLabel('Name', { exact: true }).fill('Buyer Organization 2');
    await press(window.page, 'Save');
    await window.page.getByText('Saved.').waitFor();
    await window.expectError(/status of 412/);
    expect(await dataOf(realmPath())).toMatchObject({ ...theirs, name: 'Buyer Organization 2' });
    await expectNoErrors(window);
  });

  test('redirect URIs are not saved without a question after somebody else has renamed the realm', async () => {
    const theirs = { type: 'authentication-realm', name: 'Buyer Organization' };
    const window = await editDuring(pagePaths(shop).realm, 'Edit', realmPath(), theirs);
    await window.page.getByLabel('Redirect URIs').fill('https://shop.example.com/mine');
    await press(window.page, 'Save');
    const dialog = window.page.getByRole('dialog', { name: 'Edit conflict' });
    await dialog.getByRole('region', { name: 'Redirect URIs' }).getByText('mine').waitFor();
    await window.expectError(/status of 412/);
    expect(await dataOf(realmPath())).toMatchObject({ redirect_uris: ['https://shop.example.com/theirs'] });
    await expectNoErrors(window);
  });
});

describe('an edit conflict', () => {
  test('an edit conflict shows both versions before saving, and can overwrite the other one', async () => {
    const { second, dialog } = await contend('one');
    expect(await dialog.getByText('theirs one').count()).toBe(1);
    expect(await dialog.getByText('mine one').count()).toBe(1);
    expect(await second.violations()).toEqual([]);
    await press(second.page, 'Overwrite with yours');
    await facts(second.page).getByText('mine one').waitFor();
    await expectNoErrors(second);
  });

  test('an edit conflict can start over from the current version', async () => {
    const { second } = await contend('two');
    await press(second.page, 'Start over from the current version');
    expect(await second.page.getByLabel('Middle name').inputValue()).toBe('theirs two');
    await press(second.page, 'Save');
    await second.page.getByText('No changes to save.').waitFor();
    await expectNoErrors(second);
  });

  test('an edit conflict is shown again when a third edit is saved before the overwrite', async () => {
    const { second, dialog } = await contend('three');
    const token = await service.token(WRITE_SCOPE);
    const body = { data: { type: 'user_authentication_info', middle_name: 'a third' } };
    await service.put(userPath(), token, body);
    await press(second.page, 'Overwrite with yours');
    await dialog.getByText('a third').waitFor();
    await second.expectError(/status of 412/);
    await press(second.page, 'Overwrite with yours');
    await facts(second.page).getByText('mine three').waitFor();
    await expectNoErrors(second);
  });

  test('an edit conflict with an unreadable current version can be retried', async () => {
    const { second, dialog } = await contend('four');
    const token = await service.token(WRITE_SCOPE);
    const body = { data: { type: 'user_authentication_info', middle_name: 'a fourth' } };
    await service.put(userPath(), token, body);
    // The network fails between the response and the next request.
    await second.page.route(`**${userPath()}`, (route) =>
      route.request().method() === 'GET' ? route.abort() : route.continue(),
    );
    await press(second.page, 'Overwrite with yours');
    await dialog.getByText('The service is unreachable.').waitFor();
    await second.expectError(/status of 412/);
    await second.expectError(/ERR_FAILED/);
    await second.page.unroute(`**${userPath()}`);
    await press(second.page, 'Overwrite with yours');
    await dialog.getByText('a fourth').waitFor();
    await second.expectError(/status of 412/);
    await expectNoErrors(second);
  });
});

test('a link deleted during its edit is reported as not found, and leaves the page of the user', async () => {
  const window = await openSignedIn(service, pagePaths(shop).user);
  const { page } = window;
  await press(page, 'Edit jdoe@corp.example');
  await page.getByLabel('Subject', { exact: true }).fill('somebody');
  const token = await service.token(WRITE_SCOPE);
  const collection = `${userPath()}/user-authentication-oidc-profile-info`;
  const { data } = (await (await service.get(collection, token)).json()) as {
    data: { id: string; subject: string }[];
  };
  const gone = data.find(({ subject }) => subject === 'jdoe@corp.example');
  expect((await service.del(`${collection}/${gone?.id}`, token)).status).toBe(204);
  await press(page, 'Save');
  await page.getByText('Not found, or not visible to this session.').waitFor();
  await window.expectError(/status of 404/);
  await press(page, 'Cancel');
  await page.getByRole('row', { name: 'link jdoe@corp.example' }).waitFor({ state: 'detached' });
  await expectNoErrors(window);
});

test('a user deleted during an edit conflict is reported as not found', async () => {
  const token = await service.token(WRITE_SCOPE);
  const collection = `/v2/authentication-realms/${shop.realm}/user-authentication-info`;
  const data = { type: 'user_authentication_info', name: 'Going', email: 'going@example.com' };
  const made = await service.post(collection, token, { data });
  const { id } = ((await made.json()) as { data: { id: string } }).data;
  const path = `${collection}/${id}`;
  const rename = (name: string) => service.put(path, token, { data: { type: data.type, name } });
  const window = await openSignedIn(service, `#/realms/${shop.realm}/users/${id}`);
  const { page } = window;
  await press(page, 'Edit');
  await page.getByLabel('Name', { exact: true }).fill('Mine');
  await rename('Going on');
  await press(page, 'Save');
  const dialog = page.getByRole('dialog', { name: 'Edit conflict' });
  await dialog.waitFor();
  await window.expectError(/status of 412/);
  await rename('Going further');
  await page.route(`**${path}`, async (route) => {
    if (route.request().method() === 'GET') await service.del(path, token);
    await route.continue();
  });
  await press(page, 'Overwrite with yours');
  await dialog.getByText('Not found, or not visible to this session.').waitFor();
  await window.expectError(/status of 412/);
  await window.expectError(/status of 404/);
  await expectNoErrors(window);
});

test('deleting a user first warns of a link added since the page was loaded', async () => {
  const window = await openSignedIn(service, pagePaths(shop).user);
  await window.page.getByRole('heading', { name: 'How this user signs in' }).waitFor();
  service.clock.advance(1_000);
  const link = await madeLink('frank');
  await press(window.page, 'Delete');
  const dialog = window.page.getByRole('dialog', { name: 'Delete this user?' });
  await dialog.getByText('The change is not in the fields shown here').waitFor();
  await expectNoErrors(window);
  await press(window.page, 'Cancel');
  expect(await link.status()).toBe(200);
  await link.remove();
});

/** Creates a link of the user for one test. */
async function madeLink(subject: string) {
  const token = await service.token(WRITE_SCOPE);
  const collection = `${userPath()}/user-authentication-oidc-profile-info`;
  const type = 'user_authentication_oidc_profile_info';
  const data = { type, subject, issuer: 'https://login.example.com', oidc_profile_id: shop.oidcProfile };
  const answer = await service.post(collection, token, { data });
  const { id } = ((await answer.json()) as { data: { id: string } }).data;
  const path = `${collection}/${id}`;
  return {
    rename: (name: string) => service.put(path, token, { data: { type, subject: name } }),
    remove: () => service.del(path, token),
    status: async () => (await service.get(path, token)).status,
  };
}

/** The button of a dialog, which is enabled once the dialog has read the current version. */
const enabled = (dialog: Locator, name: string) =>
  dialog.getByRole('button', { name, exact: true, disabled: false });

/** The page of the user, with the dialog that confirms the removal of a link. */
async function removing(subject: string) {
  const window = await openSignedIn(service, pagePaths(shop).user);
  const dialog = window.page.getByRole('dialog', { name: 'Remove this link?' });
  const open = () => press(window.page, `Remove ${subject}`);
  const confirm = () => enabled(dialog, 'Remove').click();
  return { window, dialog, open, confirm };
}

describe('removing a link', () => {
  test('removing a link edited since the dialog was opened shows its current values first', async () => {
    const link = await madeLink('alice');
    const { window, dialog, open, confirm } = await removing('alice');
    await open();
    await dialog.getByText('From now on the user cannot sign in as alice').waitFor();
    await enabled(dialog, 'Remove').waitFor();
    await link.rename('bob');
    await confirm();
    await dialog.getByText('This record changed since it was displayed.').waitFor();
    await window.expectError(/status of 412/);
    const shown = dialog.getByRole('region', { name: 'Subject' });
    expect(await shown.getByRole('definition').allTextContents()).toEqual(['alice', 'bob']);
    await dialog.getByText('From now on the user cannot sign in as bob').waitFor();
    expect(await link.status()).toBe(200);
    await expectNoErrors(window);
    await confirm();
    await dialog.waitFor({ state: 'detached' });
    expect(await link.status()).toBe(404);
    await expectNoErrors(window);
  });

  test('removing a link edited since the page was loaded shows the change at once', async () => {
    const link = await madeLink('carol');
    const { window, dialog, open } = await removing('carol');
    await window.page.getByRole('row', { name: 'link carol' }).waitFor();
    await link.rename('dave');
    await open();
    await dialog.getByText('This record changed since it was displayed.').waitFor();
    await press(window.page, 'Cancel');
    await window.page.getByRole('row', { name: 'link dave' }).waitFor();
    expect(await link.status()).toBe(200);
    await link.remove();
    await expectNoErrors(window);
  });

  test('removing a deleted link reports it as not found, and updates the page', async () => {
    const link = await madeLink('erin');
    const { window, dialog, open, confirm } = await removing('erin');
    await open();
    await enabled(dialog, 'Remove').waitFor();
    await link.remove();
    await confirm();
    await dialog.getByText('Not found, or not visible to this session.').waitFor();
    await window.expectError(/status of 404/);
    await press(window.page, 'Cancel');
    await window.page.getByRole('row', { name: 'link erin' }).waitFor({ state: 'detached' });
    await expectNoErrors(window);
  });
});

describe('deleting a changed record', () => {
  const records: readonly [string, () => string, () => string, () => string][] = [
    [
      'a realm',
      () => pagePaths(shop).realm,
      () => `/v2/authentication-realms/${shop.realm}`,
      () => shop.realm,
    ],
    [
      'a provider',
      () => pagePaths(shop).oidcProfile,
      () => `/v2/authentication-realms/${shop.realm}/oidc-profiles/${shop.oidcProfile}`,
      () => shop.oidcProfile,
    ],
    ['a user', () => pagePaths(shop).user, userPath, () => shop.user],
    ['a client', () => pagePaths(shop).client, () => `/admin/v1/clients/${shop.client}`, () => shop.client],
    [
      'a webhook',
      () => pagePaths(shop).webhook,
      () => `/admin/v1/webhooks/${shop.webhook}`,
      () => shop.webhook,
    ],
  ];
  test.each(records)(
    'deleting %s changed since the page was loaded shows its current values first',
    async (_, place, path, id) => {
      const window = await openSignedIn(service, place(), { scope: `${WRITE_SCOPE} admin` });
      const { page } = window;
      await press(page, 'Delete');
      const dialog = page.getByRole('dialog');
      await dialog.getByRole('textbox').fill(`delete ${id().slice(-4)}`);
      await enabled(dialog, 'Delete').waitFor();
      const token = await service.token(`${WRITE_SCOPE} admin`);
      const before = (await (await service.get(path(), token)).json()) as { data: { type?: string } };
      const { type } = before.data;
      await service.put(path(), token, { data: { ...(type && { type }), name: 'Another name' } });
      await dialog.getByRole('button', { name: 'Delete', exact: true }).click();
      const shown = dialog.getByRole('region', { name: 'Name', exact: true });
      await shown.getByText('Another name').waitFor();
      await window.expectError(/status of 412/);
      expect((await service.get(path(), token)).status).toBe(200);
      await expectNoErrors(window);
    },
  );
});

test('a form keeps its input while the database rejects writes, and can be saved later', async () => {
  const window = await openSignedIn(service, pagePaths(shop).user);
  const { page } = window;
  await press(page, 'Edit');
  await page.getByLabel('Family name').fill('Roe');
  const release = await service.database.lockWriters();
  await press(page, 'Save');
  await page.getByText('The service is busy.').waitFor();
  expect(await page.getByLabel('Family name').inputValue()).toBe('Roe');
  await window.expectError(/status of 503/);
  await release();
  await press(page, 'Save');
  await facts(page).getByText('Roe').waitFor();
  await expectNoErrors(window);
});
