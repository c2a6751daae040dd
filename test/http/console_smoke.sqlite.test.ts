import { describe, expect, setDefaultTimeout, test } from 'bun:test';
import { expectNoErrors, openSignedIn } from '../browser/console_session.ts';
import { BROWSER_TEST_MS, DESKTOP, openWindow, PHONE } from '../browser/console_window.ts';
import { pagePaths } from '../browser/page_paths.ts';
import { createShop } from '../browser/shop_fixture.ts';
import { startService } from '../support/service.ts';

/** A first check of the console in a browser; the complete suites are in test/browser/. */

setDefaultTimeout(BROWSER_TEST_MS);

const service = await startService({ offline: 'true' });
const shop = await createShop(service);

describe.each([
  { viewport: DESKTOP, scheme: 'light' },
  { viewport: PHONE, scheme: 'dark' },
] as const)('$viewport.width wide, $scheme', (view) => {
  test('the console tells a visitor without a session how to sign in', async () => {
    const window = await openWindow(service.url, view);
    await window.goto('');
    await window.page.getByText('authrealm console link').waitFor();
    await expectNoErrors(window);
    await window.close();
  });

  test('the page of a user shows every way to sign in as them', async () => {
    const window = await openSignedIn(service, pagePaths(shop).user, { view });
    const { page } = window;
    await page.getByRole('heading', { name: 'Jane Doe' }).waitFor();
    const links = page.getByRole('region', { name: 'How this user signs in' });
    await links.getByText('Company login').first().waitFor();
    expect(await links.locator('tbody tr').count()).toBe(4);
    await expectNoErrors(window);
    await window.close();
  });
});
