import { describe, expect, setDefaultTimeout, test } from 'bun:test';
import { startService } from '../support/service.ts';
import { expectNoErrors, openSignedIn } from './console_session.ts';
import { BROWSER_TEST_MS, type ConsoleWindow, openWindow, VIEWS, type View, WIDE } from './console_window.ts';

/** The rendered OpenAPI document, which needs no session. */

setDefaultTimeout(BROWSER_TEST_MS);

const service = await startService({ offline: 'true' });

async function reading(fragment: string, view: View = WIDE): Promise<ConsoleWindow> {
  const window = await openWindow(service.url, view);
  await window.page.goto(`${service.url}/docs${fragment}`);
  await window.page.locator('h1').waitFor();
  return window;
}

describe.each(VIEWS)('$viewport.width wide, $scheme', (view) => {
  test('/docs lists all operations of the API by group', async () => {
    const window = await reading('', view);
    const main = window.page.getByRole('main');
    await main.getByRole('heading', { name: 'Realms', exact: true }).waitFor();
    await main.getByRole('link', { name: /admin\/v1\/clients\/\{client_id\}\/rotate/ }).waitFor();
    await window.until(`document.title === 'authrealm API · authrealm'`);
    await expectNoErrors(window);
  });

  test('/docs shows the parameters, expandable schema, examples and responses of an operation', async () => {
    const window = await reading('#/create-user-authentication-info', view);
    const { page } = window;
    await page.getByRole('radio', { name: 'Python' }).check();
    await page.getByText('urllib.request.Request(').waitFor();
    const body = page.getByRole('region', { name: 'Body' });
    await page.getByRole('region', { name: 'Answer' }).getByText('"creation_status"').waitFor();
    await body.getByText('Schema of application/json').click();
    await body.getByText('given_name').first().waitFor();
    expect(await body.getByText('"jane@example.com"').count()).toBe(1);
    const answers = page.getByRole('region', { name: 'Responses' });
    await answers.locator('summary', { hasText: '201' }).click();
    await answers.getByText('Schema of application/json').filter({ visible: true }).click();
    // That of the user; its links have one too.
    const meta = answers.getByText('Members of meta', { exact: true }).first();
    const shown = answers.getByText('created_at', { exact: true }).filter({ visible: true });
    expect(await shown.count()).toBe(1);
    await meta.press('Enter');
    await shown.nth(1).waitFor();
    expect(await shown.count()).toBe(2);
    await answers.locator('summary', { hasText: '429' }).click();
    await answers.getByText('Retry-After says in how many seconds to ask again', { exact: true }).waitFor();
    await expectNoErrors(window);
  });
});

test('/docs filters its operations by a search, by keyboard alone', async () => {
  const window = await reading('');
  const { page } = window;
  const links = page.getByRole('navigation', { name: 'Operations' }).getByRole('link');
  const all = await links.count();
  await page.keyboard.press('/');
  await page.keyboard.type('rotate client');
  expect(await links.count()).toBeLessThan(all);
  await page.keyboard.press('Tab');
  await page.keyboard.press('Enter');
  await page.getByText('/admin/v1/clients/{client_id}/rotate').first().waitFor();
  expect(page.url()).toEndWith('/docs#/rotate-client');
  await page.keyboard.press('?');
  await page.getByRole('dialog', { name: 'Keyboard shortcuts' }).getByText('Find an operation').waitFor();
  await page.keyboard.press('Escape');
  await page.getByRole('searchbox').fill('no such thing at all');
  await page.getByText('No matching operations.').waitFor();
  await expectNoErrors(window);
});

test('/docs links an operation to Try it, which links back', async () => {
  const window = await openSignedIn(service, '#/');
  const { page } = window;
  await page.goto(`${service.url}/docs#/list-authentication-realm`);
  await page.getByRole('link', { name: 'Try it' }).click();
  await page.getByRole('button', { name: 'Send GET' }).waitFor();
  await page.getByRole('link', { name: 'Reference' }).click();
  await page.getByRole('region', { name: 'Responses' }).waitFor();
  expect(page.url()).toEndWith('/docs#/list-authentication-realm');
  await expectNoErrors(window);
});

test('/docs has a page for every operation of /openapi.json', async () => {
  const window = await reading('');
  const links = window.page.getByRole('main').getByRole('link', { name: /^(GET|POST|PUT|DELETE)/ });
  const fragments = await links.evaluateAll((all) => all.map((each) => String(each.getAttribute('href'))));
  expect(fragments.length).toBeGreaterThan(60);
  for (const fragment of fragments) {
    await window.page.evaluate(`location.hash = '${fragment}'`);
    await window.page.locator(`a[href="console#/try/${fragment.slice(2)}"]`).waitFor();
  }
  await expectNoErrors(window);
  await window.page.goto(`${service.url}/docs#/nothing`);
  await window.page.getByText('This release has no such operation').waitFor();
  await expectNoErrors(window);
}, 300_000);

test('/docs loads its files under a base URL with a path', async () => {
  const prefixed = await startService({ offline: 'true', baseUrl: 'http://127.0.0.1:1/sso/auth' });
  const window = await openWindow(prefixed.url);
  await window.page.goto(`${prefixed.url}/sso/auth/docs`);
  await window.page.getByRole('main').getByRole('heading', { name: 'Realms', exact: true }).waitFor();
  await expectNoErrors(window);
});
