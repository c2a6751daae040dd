import { describe, expect, test } from 'bun:test';
import { expectNoErrors, openSignedIn, READ_SCOPE } from './console_session.ts';
import { PHONE, VIEWS } from './console_window.ts';
import { openShop } from './open_console.ts';
import { pagePaths } from './page_paths.ts';

/** Keyboard operation, and the theme. */

const { service, shop } = await openShop();

test('keyboard shortcuts open pages, and ? lists them', async () => {
  const window = await openSignedIn(service, '#/nowhere', { scope: READ_SCOPE });
  const { page } = window;
  await page.keyboard.press('g');
  await page.keyboard.press('r');
  await page.getByRole('heading', { name: 'Realms' }).waitFor();
  await page.keyboard.press('?');
  const list = page.getByRole('dialog', { name: 'Keyboard shortcuts' });
  await list.getByText('Go to Find').waitFor();
  // Pages that the session may not read have no shortcut.
  expect(await list.getByText('Go to Clients and keys').count()).toBe(0);
  await expectNoErrors(window);
  await page.keyboard.press('Escape');
  await list.waitFor({ state: 'detached' });
  await page.keyboard.press('g');
  await page.keyboard.press('f');
  await page.getByRole('searchbox').waitFor();
  // In a text field, shortcut keys are text.
  await page.keyboard.type('gr?');
  expect(await page.getByRole('searchbox').inputValue()).toBe('gr?');
});

test.each(['users', 'realm', 'user', 'changes', 'tryOne', 'nowhere'] as const)(
  'the key / searches from the page %s, and selects the text of an earlier search',
  async (place) => {
    const window = await openSignedIn(service, pagePaths(shop)[place], { scope: READ_SCOPE });
    const { page } = window;
    await page.locator('h1:focus').waitFor();
    await page.keyboard.press('/');
    await page.locator('.find input:focus').waitFor();
    await page.keyboard.type('jane');
    await page.locator('a.row', { hasText: 'Jane' }).first().focus();
    await page.keyboard.press('/');
    await page.keyboard.type('ada');
    expect(await page.getByRole('searchbox').inputValue()).toBe('ada');
  },
);

test('keyboard shortcuts stay off after a reload once turned off', async () => {
  const window = await openSignedIn(service, '#/realms', { scope: READ_SCOPE });
  const { page } = window;
  await page.getByRole('heading', { name: 'Realms' }).waitFor();
  await page.getByRole('button', { name: 'Shortcuts' }).click();
  await page.getByLabel('Enable single-key shortcuts').uncheck();
  await page.keyboard.press('Escape');
  await page.reload();
  await page.getByRole('heading', { name: 'Realms' }).waitFor();
  await page.keyboard.press('?');
  expect(await page.getByRole('dialog').count()).toBe(0);
});

test('the first tab stop skips the navigation, and a dialog traps the focus and returns it', async () => {
  const window = await openSignedIn(service, pagePaths(shop).user);
  const { page } = window;
  await page.getByRole('heading', { name: 'Jane Doe' }).waitFor();
  // The initial focus is on the heading; the skip button is before it.
  await page.locator('button.skip').focus();
  expect((await page.locator('button.skip').boundingBox())?.y).toBeGreaterThanOrEqual(0);
  await page.keyboard.press('Enter');
  await page.locator('main:focus').waitFor();
  await page.getByRole('button', { name: 'Edit', exact: true }).focus();
  await page.keyboard.press('Enter');
  await page.getByRole('dialog').getByLabel('Name', { exact: true }).waitFor();
  for (let stop = 0; stop < 12; stop += 1) {
    await page.keyboard.press('Tab');
    const at = (await page.evaluate(
      `document.activeElement === document.body || document.activeElement.closest('dialog') !== null`,
    )) as boolean;
    expect(at).toBe(true);
  }
  await page.keyboard.press('Escape');
  await page.locator('button:focus', { hasText: 'Edit' }).waitFor();
});

describe.each(VIEWS)('$viewport.width wide, $scheme', (view) => {
  test('the chosen theme stays after a reload', async () => {
    const window = await openSignedIn(service, '#/realms', { scope: READ_SCOPE, view });
    const { page } = window;
    const ground = () => page.evaluate('getComputedStyle(document.body).backgroundColor');
    const before = await ground();
    if (view.viewport === PHONE) await page.getByRole('button', { name: 'Menu' }).click();
    await page.getByRole('button', { name: view.scheme === 'light' ? 'Dark' : 'Light' }).click();
    const after = await ground();
    expect(after).not.toBe(before);
    await expectNoErrors(window);
    await page.reload();
    await page.getByRole('heading', { name: 'Realms' }).waitFor();
    expect(await ground()).toBe(after);
  });
});
