import { expect, test } from 'bun:test';
import { openShop } from './open_shop.ts';
import { placesOf } from './places.ts';
import { expectSound, signedIn, WRITING } from './signed_in.ts';

/** What was done with a user and each link of theirs, from the change feed. */

const { service, shop } = await openShop();

test('a link has its history, a removed one too, and others have no part in it', async () => {
  const window = await signedIn(service, placesOf(shop).user);
  const { page } = window;
  const told = () => page.getByRole('region', { name: 'History' }).getByRole('listitem').allTextContents();
  await page.getByRole('region', { name: 'History' }).getByText('User created').waitFor();
  // The user and four links; that each of them touched the user is not told beside it.
  const before = await told();
  expect(before.map((line) => /(User|OIDC link|Password link) (created|updated)/.exec(line)?.[0])).toEqual([
    'Password link created',
    'OIDC link created',
    'OIDC link created',
    'OIDC link created',
    'User created',
  ]);
  await page.getByRole('button', { name: 'Edit jdoe@corp.example' }).click();
  await page.getByLabel('Subject', { exact: true }).fill('jane@corp.example');
  await page.getByRole('button', { name: 'Save', exact: true }).click();
  await page.getByRole('button', { name: 'History of jane@corp.example' }).click();
  const dialog = page.getByRole('dialog', { name: 'History of this link' });
  await dialog.getByText('OIDC link updated').waitFor();
  const lines = await dialog.getByRole('listitem').allTextContents();
  expect(lines).toHaveLength(2);
  expect(lines[0]).toMatch(/OIDC link updated.*Subject/);
  expect(lines[1]).toMatch(/OIDC link created/);
  await expectSound(window);
  await page.keyboard.press('Escape');
  await page.getByRole('button', { name: 'Remove jane@corp.example' }).click();
  await page.getByRole('button', { name: 'Remove', exact: true }).click();
  await page.getByRole('region', { name: 'History' }).getByText('OIDC link deleted').waitFor();
  expect(await told()).toHaveLength(before.length + 2);
  expect(await page.getByText('Realm created').count()).toBe(0);
  await expectSound(window);
  await window.close();
});

test('the instant of a change is in the zone of the reader, and in UTC for who points at it', async () => {
  const window = await signedIn(service, placesOf(shop).user, { scope: WRITING });
  const time = window.page.locator('ol.history time').first();
  await time.waitFor();
  const at = new Date((await time.getAttribute('datetime')) ?? '');
  const here = new Intl.DateTimeFormat('en-GB', { timeStyle: 'medium', timeZone: 'Europe/Berlin' }).format(
    at,
  );
  expect(await time.textContent()).toContain(here);
  expect(await time.getAttribute('title')).toBe(`${at.toISOString().replace('T', ' ').replace('Z', '')} UTC`);
  await window.close();
});
