import { expect, test } from 'bun:test';
import { oidcProfile, oidcProfileInfo, user } from '../../src/model/resources.ts';
import { createRecord, kindOf } from '../support/resource_cases.ts';
import {
  copiedText,
  expectNoErrors,
  expectNoErrorsInAnyView,
  HOSTILE_TEXTS,
  openSignedIn,
  WRITE_SCOPE,
} from './console_session.ts';
import { openShop } from './open_console.ts';

/** The links of a user, as a table. */

const { service, shop } = await openShop();
const token = await service.token(WRITE_SCOPE);

const create = async (
  resource: Parameters<typeof kindOf>[0],
  data: Readonly<Record<string, unknown>>,
  home = shop,
) => (await createRecord(service, token, { kind: kindOf(resource), home, data })).id;

const openUser = (id: string, scope = WRITE_SCOPE) =>
  openSignedIn(service, `#/realms/${shop.realm}/users/${id}`, { scope });

/** A user with 12 links, whose providers and subjects are hostile texts. */
async function createUserWithLinks() {
  const id = await create(user, { name: HOSTILE_TEXTS.script, email: 'twelve@example.com' });
  const texts = Object.values(HOSTILE_TEXTS);
  for (let count = 0; count < 12; count += 1) {
    const issuer = `https://issuer${count}.example`;
    const text = texts[count % texts.length] ?? '';
    const discovery_url = `${issuer}/.well-known/openid-configuration`;
    const oidc_profile_id = await create(oidcProfile, { name: text, discovery_url });
    await create(oidcProfileInfo, { subject: text, issuer, oidc_profile_id }, { ...shop, user: id });
  }
  return id;
}

test('a user with 12 links has a row for each, with its provider, and copies its subject unchanged', async () => {
  const window = await openUser(await createUserWithLinks());
  const { page } = window;
  const rows = page.getByRole('region', { name: 'How this user signs in' }).locator('tbody tr');
  await rows.nth(11).waitFor();
  expect(await rows.count()).toBe(12);
  // Before a text is copied: the page then says so over its last rows for a moment.
  await expectNoErrorsInAnyView(window);
  const copied = new Set<string>();
  for (const row of await rows.all()) {
    await row.getByText(/^https:\/\/issuer\d+\.example$/).waitFor();
    copied.add(await copiedText(window, row.getByRole('button', { name: 'Copy the subject' })));
  }
  expect(copied).toEqual(new Set<string>(Object.values(HOSTILE_TEXTS)));
  expect(window.errors).toEqual([]);
});

test('a subject that reads as Latin has the name of its script in its row, and in the dialog that removes it', async () => {
  const id = await create(user, { name: 'Reader', email: 'reader@example.com' });
  const subject = 'аррӏе';
  const data = { subject, issuer: 'https://login.example.com', oidc_profile_id: shop.oidcProfile };
  await create(oidcProfileInfo, data, { ...shop, user: id });
  const window = await openUser(id);
  const { page } = window;
  await page.locator('table.links .mark', { hasText: 'Cyrillic' }).waitFor();
  await page.getByRole('button', { name: `Remove ${subject}`, exact: true }).click();
  await page.getByRole('dialog').locator('.mark', { hasText: 'Cyrillic' }).waitFor();
  await expectNoErrors(window);
});

test('a user without links has no table, and the page says what to add', async () => {
  const window = await openUser(await create(user, { name: 'Nobody', email: 'none@example.com' }));
  await window.page.getByText('No links or usernames yet').waitFor();
  expect(await window.page.getByRole('table').count()).toBe(0);
  await expectNoErrors(window);
});

/** The text of the dialog that a button opens, once the current version of the record is read. */
async function dialogText(id: string, button: string, verb: string) {
  const window = await openUser(id, `${WRITE_SCOPE} admin`);
  await window.page.getByRole('button', { name: button, exact: true }).click();
  const dialog = window.page.getByRole('dialog');
  await dialog.getByRole('button', { name: verb, exact: true }).waitFor();
  await expectNoErrors(window);
  return dialog.innerText();
}

test.each(['Delete', 'Erase permanently'])(
  'the dialog of %s names the providers through which the user can no longer sign in',
  async (verb) => {
    const text = await dialogText(shop.user, verb, verb);
    for (const provider of ['Company login (2 links)', 'Partner portal', 'Passwords']) {
      expect(text).toContain(provider);
    }
  },
);

test('the dialog that removes the only link of a user names its provider, and says that it is the only one', async () => {
  const id = await create(user, { name: 'One', email: 'one@example.com' });
  const data = { subject: 'one', issuer: 'https://login.example.com', oidc_profile_id: shop.oidcProfile };
  await create(oidcProfileInfo, data, { ...shop, user: id });
  const sentence = 'cannot sign in as one through Company login, the only way to sign in that this user has.';
  expect(await dialogText(id, 'Remove one', 'Remove')).toContain(sentence);
  const text = await dialogText(shop.user, 'Remove jdoe@corp.example', 'Remove');
  expect(text).toContain('cannot sign in as jdoe@corp.example through Company login.');
});
