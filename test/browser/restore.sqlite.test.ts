import { expect, test } from 'bun:test';
import type { Page } from 'playwright-core';
import { oidcProfileInfo, user } from '../../src/model/resources.ts';
import { createRecord, kindOf, userPath } from '../support/resource_cases.ts';
import {
  expectNoErrors,
  expectNoErrorsInAnyView,
  openSignedIn,
  READ_SCOPE,
  WRITE_SCOPE,
} from './console_session.ts';
import { openShop } from './open_console.ts';

/** The values before and after a change in the history of a user, and their restoration. */

const { service, shop } = await openShop();
const token = await service.token(`${WRITE_SCOPE} admin`);
const ISSUER = 'https://login.example.com';

let people = 0;

/** A person with a link of this subject. */
async function createPerson(subject: string) {
  people += 1;
  const data = { name: `Person ${people}`, given_name: 'Before', email: `restored${people}@example.com` };
  const { id } = await createRecord(service, token, { kind: kindOf(user), home: shop, data });
  const home = { ...shop, user: id };
  const values = { subject, issuer: ISSUER };
  const link = (await createRecord(service, token, { kind: kindOf(oidcProfileInfo), home, data: values })).id;
  const path = userPath({ ...shop, user: id });
  const links = `${path}/${oidcProfileInfo.collection}`;
  return { id, link, links, path, place: `#/realms/${shop.realm}/users/${id}` };
}

async function change(path: string, data: object): Promise<void> {
  expect((await service.put(path, token, { data })).status).toBe(200);
}

/** The newest change in the history. */
const newest = (page: Page) => page.getByRole('region', { name: 'History' }).getByRole('listitem').first();
const restores = (page: Page) => page.getByRole('button', { name: 'Restore', exact: true });
const press = (page: Page, name: string) => page.getByRole('button', { name, exact: true }).click();

const HISTORY = `${WRITE_SCOPE} history:read`;

async function openNewest(page: Page): Promise<void> {
  await newest(page).getByText('Before and after').click();
}

test('a changed member of a user is shown before and after, and restored by the form', async () => {
  const { path, place } = await createPerson('restored|1');
  await change(path, { type: user.type, given_name: 'After' });
  const window = await openSignedIn(service, place, { scope: HISTORY });
  const { page } = window;
  await openNewest(page);
  await newest(page).getByRole('row', { name: 'Given name Before After' }).waitFor();
  await expectNoErrorsInAnyView(window);
  await press(page, 'Restore');
  expect(await page.getByLabel('Given name').inputValue()).toBe('Before');
  await expectNoErrors(window);
  // Another member that changes meanwhile stays.
  await change(path, { type: user.type, family_name: 'Meanwhile' });
  await press(page, 'Save');
  await page.getByRole('region', { name: 'Profile' }).getByText('Meanwhile').waitFor();
  const { data } = (await (await service.get(path, token)).json()) as { data: Record<string, string> };
  expect(data).toMatchObject({ given_name: 'Before', family_name: 'Meanwhile' });
});

test('a deleted link is created again with its values, and with a new ID', async () => {
  const { link, links, place } = await createPerson('restored|2');
  expect((await service.del(`${links}/${link}`, token)).status).toBe(204);
  const window = await openSignedIn(service, place, { scope: HISTORY });
  const { page } = window;
  await openNewest(page);
  await press(page, 'Restore');
  await press(page, 'Create');
  await page.getByRole('row', { name: 'link restored|2' }).waitFor();
  await expectNoErrors(window);
  const { data } = (await (await service.get(links, token)).json()) as {
    data: { id: string; subject: string }[];
  };
  expect(data.map(({ subject }) => subject)).toEqual(['restored|2']);
  expect(data[0]?.id).not.toBe(link);
});

for (const [event, button] of [
  ['changed', 'Save'],
  ['deleted', 'Create'],
] as const)
  test(`a ${event} link that another user has now is not restored, and the form leads to that user`, async () => {
    const subject = `restored|${event}`;
    const { link, links, place } = await createPerson(subject);
    const path = `${links}/${link}`;
    if (event === 'deleted') expect((await service.del(path, token)).status).toBe(204);
    else await change(path, { type: oidcProfileInfo.type, subject: 'restored|another' });
    const other = await createPerson(subject);
    const window = await openSignedIn(service, place, { scope: HISTORY });
    const { page } = window;
    await openNewest(page);
    await press(page, 'Restore');
    await press(page, button);
    await page.getByRole('dialog').locator(`a[href="${other.place}"]`).waitFor();
    expect(await page.getByRole('textbox', { name: 'Subject' }).inputValue()).toBe(subject);
    await window.expectError(/status of 422/);
    await expectNoErrors(window);
    const { data } = (await (await service.get(other.links, token)).json()) as { data: { id: string }[] };
    expect(data.map(({ id }) => id)).toEqual([other.link]);
  });

test('a session without history:read opens no values, and one without write scopes restores nothing', async () => {
  const { path, place } = await createPerson('restored|5');
  await change(path, { type: user.type, given_name: 'After' });
  const writer = await openSignedIn(service, place, { scope: WRITE_SCOPE });
  await newest(writer.page).waitFor();
  expect(await writer.page.getByText('Before and after').count()).toBe(0);
  const reader = await openSignedIn(service, place, { scope: `${READ_SCOPE} history:read` });
  await openNewest(reader.page);
  await newest(reader.page).getByRole('row', { name: 'Given name Before After' }).waitFor();
  expect(await restores(reader.page).count()).toBe(0);
  await expectNoErrors(reader);
});

test('a username, a creation and a time are not restored', async () => {
  const window = await openSignedIn(service, `#/realms/${shop.realm}/users/${shop.user}`, { scope: HISTORY });
  const { page } = window;
  await newest(page).waitFor();
  for (const summary of await page.locator('.history summary').all()) await summary.click();
  await page.getByRole('row', { name: /^Username/ }).waitFor();
  expect(await restores(page).count()).toBe(0);
  await expectNoErrorsInAnyView(window);
});

test('nothing of an erased user is restored', async () => {
  const { id, path, place } = await createPerson('restored|6');
  await change(path, { type: user.type, given_name: 'After' });
  const data = { realm_id: shop.realm, user_id: id };
  expect((await service.post('/admin/v1/erasures', token, { data })).status).toBe(201);
  const window = await openSignedIn(service, place, { scope: HISTORY });
  const { page } = window;
  await window.expectError(/status of 404/);
  await newest(page).waitFor();
  for (const summary of await page.locator('.history summary').all()) await summary.click();
  await page.getByText('Its personal data was erased with the user.').first().waitFor();
  expect(await restores(page).count()).toBe(0);
  await expectNoErrors(window);
});
