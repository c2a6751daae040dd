import { describe, expect, test } from 'bun:test';
import type { Page } from 'playwright-core';
import { openShop } from './open_shop.ts';
import { placesOf } from './places.ts';
import { expectSound, signedIn, WRITING } from './signed_in.ts';

/** Two who work on the same record, and records that go while somebody has them before them. */

const { service, shop } = await openShop();

const press = (page: Page, name: string) => page.getByRole('button', { name, exact: true }).click();
const userPath = () => `/v2/authentication-realms/${shop.realm}/user-authentication-info/${shop.user}`;
const facts = (page: Page) => page.getByRole('region', { name: 'Who this is' });

/** Two windows of one user, both with the form open; the first one has saved another middle name. */
async function contend(words: string) {
  const [first, second] = [
    await signedIn(service, placesOf(shop).user),
    await signedIn(service, placesOf(shop).user),
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
  const dialog = second.page.getByRole('dialog', { name: 'Somebody else was faster' });
  await dialog.waitFor();
  await second.expectTrouble(/status of 412/);
  return { first, second, dialog };
}

describe('who saves second', () => {
  test('sees both before anything is saved, and may save over it', async () => {
    const { first, second, dialog } = await contend('one');
    expect(await dialog.getByText('theirs one').count()).toBe(1);
    expect(await dialog.getByText('mine one').count()).toBe(1);
    expect(await second.hindrances()).toEqual([]);
    await press(second.page, 'Save yours over it');
    await facts(second.page).getByText('mine one').waitFor();
    await expectSound(second);
    await first.close();
    await second.close();
  });

  test('may begin again from what is there', async () => {
    const { first, second } = await contend('two');
    await press(second.page, 'Begin again from theirs');
    expect(await second.page.getByLabel('Middle name').inputValue()).toBe('theirs two');
    await press(second.page, 'Save');
    await second.page.getByText('Nothing was changed.').waitFor();
    await expectSound(second);
    await first.close();
    await second.close();
  });

  test('is told again where a third one is faster still', async () => {
    const { first, second, dialog } = await contend('three');
    const token = await service.token(WRITING);
    const body = { data: { type: 'user_authentication_info', middle_name: 'a third' } };
    await service.put(userPath(), token, body);
    await press(second.page, 'Save yours over it');
    await dialog.getByText('a third').waitFor();
    await second.expectTrouble(/status of 412/);
    await press(second.page, 'Save yours over it');
    await facts(second.page).getByText('mine three').waitFor();
    await expectSound(second);
    await first.close();
    await second.close();
  });

  test('is told so where what is there now cannot be read, and may try it again', async () => {
    const { first, second, dialog } = await contend('four');
    const token = await service.token(WRITING);
    const body = { data: { type: 'user_authentication_info', middle_name: 'a fourth' } };
    await service.put(userPath(), token, body);
    // The network goes between the answer and what is asked then.
    await second.page.route(`**${userPath()}`, (route) =>
      route.request().method() === 'GET' ? route.abort() : route.continue(),
    );
    await press(second.page, 'Save yours over it');
    await dialog.getByText('The service cannot be reached.').waitFor();
    await second.expectTrouble(/status of 412/);
    await second.expectTrouble(/ERR_FAILED/);
    await second.page.unroute(`**${userPath()}`);
    await press(second.page, 'Save yours over it');
    await dialog.getByText('a fourth').waitFor();
    await second.expectTrouble(/status of 412/);
    await expectSound(second);
    await first.close();
    await second.close();
  });
});

test('a link that goes while it is edited is told to be gone, and so it is on the page', async () => {
  const window = await signedIn(service, placesOf(shop).user);
  const { page } = window;
  await press(page, 'Edit jdoe@corp.example');
  await page.getByLabel('Subject', { exact: true }).fill('somebody');
  const token = await service.token(WRITING);
  const collection = `${userPath()}/user-authentication-oidc-profile-info`;
  const { data } = (await (await service.get(collection, token)).json()) as {
    data: { id: string; subject: string }[];
  };
  const gone = data.find(({ subject }) => subject === 'jdoe@corp.example');
  expect((await service.del(`${collection}/${gone?.id}`, token)).status).toBe(204);
  await press(page, 'Save');
  await page.getByText('Nothing is there, or nothing that this session may see.').waitFor();
  await window.expectTrouble(/status of 404/);
  await press(page, 'Cancel');
  await page.getByRole('article', { name: 'OIDC link jdoe@corp.example' }).waitFor({ state: 'detached' });
  await expectSound(window);
  await window.close();
});

test('a user who goes between a conflict and another look is told to be gone', async () => {
  const token = await service.token(WRITING);
  const collection = `/v2/authentication-realms/${shop.realm}/user-authentication-info`;
  const said = { type: 'user_authentication_info', name: 'Going', email: 'going@example.com' };
  const made = await service.post(collection, token, { data: said });
  const { id } = ((await made.json()) as { data: { id: string } }).data;
  const path = `${collection}/${id}`;
  const rename = (name: string) => service.put(path, token, { data: { type: said.type, name } });
  const window = await signedIn(service, `#/realms/${shop.realm}/users/${id}`);
  const { page } = window;
  await press(page, 'Edit');
  await page.getByLabel('Given name').fill('Mine');
  await rename('Going on');
  await press(page, 'Save');
  const dialog = page.getByRole('dialog', { name: 'Somebody else was faster' });
  await dialog.waitFor();
  await window.expectTrouble(/status of 412/);
  await rename('Going further');
  await page.route(`**${path}`, async (route) => {
    if (route.request().method() === 'GET') await service.del(path, token);
    await route.continue();
  });
  await press(page, 'Save yours over it');
  await dialog.getByText('Nothing is there, or nothing that this session may see.').waitFor();
  await window.expectTrouble(/status of 412/);
  await window.expectTrouble(/status of 404/);
  await expectSound(window);
  await window.close();
});

test('where the database takes no writes, what was typed stays, and is saved later', async () => {
  const window = await signedIn(service, placesOf(shop).user);
  const { page } = window;
  await press(page, 'Edit');
  await page.getByLabel('Family name').fill('Roe');
  const release = await service.database.hold();
  await press(page, 'Save');
  await page.getByText('The service is busy.').waitFor();
  expect(await page.getByLabel('Family name').inputValue()).toBe('Roe');
  await window.expectTrouble(/status of 503/);
  await release();
  await press(page, 'Save');
  await facts(page).getByText('Roe').waitFor();
  await expectSound(window);
  await window.close();
});
