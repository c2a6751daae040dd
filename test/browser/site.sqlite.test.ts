import { afterAll, describe, expect, setDefaultTimeout, test } from 'bun:test';
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { sharedSite } from '../support/shared_artefacts.ts';
import { sharedBrowser } from './browser.ts';
import { expectNoErrors } from './console_session.ts';
import { BROWSER_TEST_MS, openWindow, PHONE, VIEWS } from './console_window.ts';

/** The documentation as a static site, in a browser. */

setDefaultTimeout(BROWSER_TEST_MS);

const PAGES = [
  'index.html',
  'guides/five-minutes.html',
  'wire.html',
  'benchmarks.html',
  'reference/settings.html',
  'api/index.html',
  'api/create-user-authentication-info.html',
];

const folder = await sharedSite();
const server = serveFolder(folder);
const url = `http://127.0.0.1:${server.port}`;
afterAll(() => server.stop(true));

function serveFolder(root: string) {
  return Bun.serve({
    hostname: '127.0.0.1',
    port: 0,
    fetch(request) {
      const path = join(root, new URL(request.url).pathname);
      return existsSync(path) ? new Response(Bun.file(path)) : new Response(undefined, { status: 404 });
    },
  });
}

describe.each(VIEWS)('$viewport.width wide, $scheme', (view) => {
  test.each(PAGES)(
    '%s fits the width, has no accessibility violation and requests nothing from another origin',
    async (path) => {
      const window = await openWindow(url, view);
      await window.page.goto(`${url}/${path}`);
      const [ground] = /\d+/.exec(
        String(await window.page.evaluate('getComputedStyle(document.body).backgroundColor')),
      ) ?? ['none'];
      expect(Number(ground) > 128).toBe(view.scheme === 'light');
      await expectNoErrors(window);
    },
  );
});

describe('without JavaScript', () => {
  test('a phone opens the menu, follows it to a page, and chooses the language of an example', async () => {
    const context = await (await sharedBrowser()).newContext({ viewport: PHONE, javaScriptEnabled: false });
    const page = await context.newPage();
    await page.goto(`${url}/index.html`);
    expect(await page.getByRole('searchbox').count()).toBe(0);
    await page.getByRole('button', { name: 'Menu' }).click();
    const menu = page.getByRole('navigation', { name: 'Pages' });
    await menu.getByText('API', { exact: true }).click();
    await menu.getByRole('link', { name: 'HTTP API' }).click();
    await page.locator('main a[href="create-authentication-realm.html"]').click();
    // Its style hides the other languages.
    await page.waitForURL('**/create-authentication-realm.html');
    const go = page.getByText('http.NewRequest');
    expect(await go.isVisible()).toBe(false);
    await page.getByRole('radio', { name: 'Go' }).check();
    expect(await go.isVisible()).toBe(true);
    await context.close();
  });
});

test('the search finds a guide by words of its text, by keyboard alone', async () => {
  const window = await openWindow(url);
  const { page } = window;
  await page.goto(`${url}/guides/five-minutes.html`);
  await page.keyboard.press('/');
  await page.keyboard.type('change master key');
  await page.locator('#results a').first().waitFor();
  await page.keyboard.press('Tab');
  await page.keyboard.press('Enter');
  await page.waitForURL(/guides\/keys\.html/);
  await expectNoErrors(window);
});

test('the search loads its index again after a failure', async () => {
  const window = await openWindow(url);
  const { page } = window;
  await page.goto(`${url}/index.html`);
  await page.route('**/search.js', (route) => route.abort(), { times: 1 });
  const failure = page.waitForEvent('requestfailed');
  await page.keyboard.press('/');
  await failure;
  await page.keyboard.type('change master key');
  await page.locator('#results a').first().waitFor();
});

/** What newcomers look for, and a page that does it. */
const QUESTIONS = {
  'get a token': 'guides/clients-and-tokens.html',
  'create a user': 'guides/five-minutes.html',
  'link a google account': 'guides/five-minutes.html',
  'find user by email': 'tasks/find-a-user.html',
  'who is this subject': 'tasks/find-a-user.html',
  'change the port': 'guides/network.html',
  AUTHREALM_PORT: 'guides/network.html',
  https: 'guides/network.html',
  'reverse proxy': 'guides/network.html',
  nginx: 'guides/network.html',
  docker: 'deploy/index.html',
  kubernetes: 'deploy/index.html',
  systemd: 'deploy/index.html',
  backup: 'guides/backup-and-restore.html',
  restore: 'guides/backup-and-restore.html',
  upgrade: 'upgrading.html',
  postgresql: 'guides/postgresql.html',
  'lost master key': 'guides/keys.html',
  'moving from keycloak': 'guides/moving-in.html',
  auth0: 'guides/moving-in.html',
  'import csv': 'guides/import-and-export.html',
  'export users': 'guides/import-and-export.html',
  gdpr: 'guides/retention-and-deletion.html',
  'delete a person': 'audit.html',
  'verify webhook signature': 'feed.html',
  '429': 'reference/faults.html',
  '401': 'reference/faults.html',
  'login page': 'guides/login-page.html',
  'sign in with google': 'guides/provider-sign-in.html',
  'disable a user': 'wire.html',
  'open the console': 'console.html',
  grafana: 'deploy/index.html',
  'mock for tests': 'guides/test-suite.html',
  windows: 'concepts.html',
  'move to postgresql': 'guides/copy-a-database.html',
  'rotate the master key': 'guides/keys.html',
  'who changed a record': 'audit.html',
  'limit a client to one realm': 'guides/clients-and-tokens.html',
  'python client': 'client.html',
  'rate limit': 'guides/rates-and-overload.html',
  // What a reader asked who saw the pages for the first time.
  'nginx reverse proxy': 'guides/network.html',
  'nightly backup cron': 'guides/production.html',
  'zero downtime restart': 'guides/production.html',
  'downgrade package': 'guides/production.html',
  'prometheus alert rules': 'deploy/index.html',
  'docker volume backup': 'deploy/index.html',
  'restore other machine': 'guides/backup-and-restore.html',
  '413 upload proxy': 'guides/production.html',
  'systemd unit file': 'deploy/index.html',
};

test('the first three results of the search answer what newcomers look for', async () => {
  const window = await openWindow(url);
  const { page } = window;
  await page.goto(`${url}/index.html`);
  const found: [string, string][] = [];
  for (const [question, answer] of Object.entries(QUESTIONS)) {
    await page.getByRole('searchbox').fill('');
    await page.locator('#results a').first().waitFor({ state: 'detached' });
    await page.getByRole('searchbox').fill(question);
    await page.locator('#results a').first().waitFor();
    const links = await page
      .locator('#results a')
      .evaluateAll((all) => all.slice(0, 3).map((each) => String(each.getAttribute('href'))));
    const paths = links.map((link) => link.slice(url.length + 1));
    found.push([
      question,
      paths.find((path) => path.startsWith(answer)) === undefined ? paths.join(' ') : answer,
    ]);
  }
  expect(found).toEqual(Object.entries(QUESTIONS));
});

test('the search works in a site that is opened from a folder', async () => {
  const context = await (await sharedBrowser()).newContext();
  const page = await context.newPage();
  await page.goto(`file://${folder}/reference/faults.html`);
  await page.getByRole('searchbox').fill('Litestream');
  await page.locator('#results a', { hasText: 'Litestream' }).first().click();
  await page.waitForURL(/backup-and-restore\.html/);
  await context.close();
});

test('a copy button copies the text of its block', async () => {
  const window = await openWindow(url);
  const { page } = window;
  await page.goto(`${url}/guides/five-minutes.html`);
  await page.getByRole('button', { name: 'Copy the code' }).first().click();
  await page.locator('[data-copied="Copied"]').waitFor();
  const text = await page.locator('pre').first().textContent();
  expect(text).toContain('authrealm');
  expect(await page.evaluate('navigator.clipboard.readText()')).toBe(text);
});
