import { describe, expect, test } from 'bun:test';
import { expectNoErrors, openSignedIn, WRITE_SCOPE } from './console_session.ts';
import { openShop } from './open_console.ts';

/** Addresses that an open tab follows, and the place in a list to which Back returns. */

const { service, shop } = await openShop();

test('Find searches for the query of an address that is opened while Find is open', async () => {
  const window = await openSignedIn(service, '#/?q=jane');
  const { page } = window;
  await page.getByRole('link', { name: /Jane Doe/ }).waitFor();
  await page.evaluate(`location.hash = '#/?q=turing'`);
  await page.getByRole('link', { name: /Alan Turing/ }).waitFor();
  expect(await page.getByRole('searchbox').inputValue()).toBe('turing');
  await page.getByRole('searchbox').fill('hopper');
  await page.getByRole('link', { name: /Grace Hopper/ }).waitFor();
  await window.until(`location.hash === '#/?q=hopper'`);
  await page.getByRole('link', { name: 'Find', exact: true }).click();
  await page.getByText('Type or paste anything you know about a user:').waitFor();
  expect(await page.getByRole('searchbox').inputValue()).toBe('');
  await expectNoErrors(window);
});

test('the page for exports chooses the realm of an address that is opened while it is open', async () => {
  const window = await openSignedIn(service, '#/transfer', { scope: `${WRITE_SCOPE} transfer` });
  const { page } = window;
  const realm = page.getByRole('main').getByLabel('Realm');
  await realm.locator('option').nth(1).waitFor({ state: 'attached' });
  await page.evaluate(`location.hash = '#/transfer?realm=${shop.realm}'`);
  await realm.locator(`option:checked[value="${shop.realm}"]`).waitFor({ state: 'attached' });
  await expectNoErrors(window);
});

test('Try it shows the parameters of an address that is opened while it is open, and never sends them', async () => {
  const operation = '#/try/delete-user-authentication-info';
  const window = await openSignedIn(service, operation);
  const { page } = window;
  const methods: string[] = [];
  page.on('request', (request) => methods.push(request.method()));
  const user = page.getByLabel('id', { exact: true });
  await user.locator('option').filter({ hasText: 'Jane Doe' }).waitFor({ state: 'attached' });
  for (const id of [shop.user, shop.strange]) {
    await page.evaluate(`location.hash = '${operation}?path.realm_id=${shop.realm}&path.id=${id}'`);
    await user.locator(`option:checked[value="${id}"]`).waitFor({ state: 'attached' });
    await window.settled();
  }
  expect(new Set(methods)).toEqual(new Set(['GET']));
  expect(await page.getByRole('button', { name: 'Send DELETE' }).isEnabled()).toBe(true);
  await expectNoErrors(window);
});

describe('Back', () => {
  test('Back returns to the person that was opened from the results of Find', async () => {
    const window = await openSignedIn(service, '#/?q=person');
    const { page } = window;
    const row = page.getByRole('link', { name: /Grace Hopper/ });
    await row.click();
    await page.getByRole('heading', { name: 'Grace Hopper' }).waitFor();
    await page.goBack();
    await page.locator('a.row:focus').filter({ hasText: 'Grace Hopper' }).waitFor();
    expect(await page.getByRole('searchbox').inputValue()).toBe('person');
    await expectNoErrors(window);
  });

  test('Back returns to the profile that was opened from one of the two lists of a realm', async () => {
    const window = await openSignedIn(service, `#/realms/${shop.realm}`);
    const { page } = window;
    await page.getByRole('link', { name: /Partner portal/ }).press('Enter');
    await page.getByRole('heading', { name: 'Partner portal' }).waitFor();
    await page.goBack();
    await page.locator('a.row:focus').filter({ hasText: 'Partner portal' }).waitFor();
    await page.getByRole('button', { name: 'Newest first' }).first().click();
    await page.getByRole('button', { name: 'Oldest first' }).waitFor();
    await page.getByRole('link', { name: /Partner portal/ }).waitFor();
    expect(await page.locator('a.row:focus').count()).toBe(0);
    await expectNoErrors(window);
  });
});
