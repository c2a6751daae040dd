import { expect, test } from 'bun:test';
import { startFaultyProxy } from '../support/faulty_proxy.ts';
import { startTcpProxy } from '../support/tcp_proxy.ts';
import { expectNoErrors, openSignedIn, READ_SCOPE, WRITE_SCOPE } from './console_session.ts';
import { openShop } from './open_console.ts';
import { pagePaths } from './page_paths.ts';

/** Responses that are missing, cut off, or sent by an intermediary. */

const { service, shop } = await openShop();

const proxy = await startFaultyProxy(service.url);
const through = { url: proxy.url, token: service.token };
const USER = /^GET \/v2\/authentication-realms\/[^/]+\/user-authentication-info\/[^/?]+(\?include=[^&]+)?$/;

const HTML = {
  status: 200,
  headers: { 'content-type': 'text/html' },
  body: '<h1>Sign in to this network</h1>',
};

test.each([
  ['is cut off in its body', { cut: 'inside' } as const, /ERR_/],
  ['is an HTML page of a proxy', HTML, undefined],
])('a response that %s counts as no response, and the request is retried', async (_, fault, error) => {
  const window = await openSignedIn(through, '#/realms', { scope: READ_SCOPE });
  const { page } = window;
  await page.getByText('Buyer Organization').waitFor();
  proxy.injectFaults(USER, fault);
  await page.evaluate(`location.hash = '${pagePaths(shop).user}'`);
  // Both are shown for two seconds.
  await Promise.all([
    page.getByText('The service is unreachable. Check your network connection.').waitFor(),
    page.getByText(/Retrying in \d s/).waitFor(),
  ]);
  await page.getByRole('heading', { name: 'Jane Doe' }).waitFor();
  expect(await page.getByText('The service is unreachable').count()).toBe(0);
  if (error) await window.expectError(error);
  await expectNoErrors(window);
});

test('a write whose response is cut off is reported as possibly saved, and not sent again', async () => {
  const window = await openSignedIn(through, '#/clients', { scope: `${WRITE_SCOPE} admin` });
  const { page } = window;
  proxy.injectFaults(/^POST \/admin\/v1\/clients$/, { cut: 'inside' });
  await page.getByRole('button', { name: 'New client' }).click();
  await page.getByLabel('Name', { exact: true }).fill('Made unheard');
  await page.getByLabel('users:read').check();
  await page.getByRole('button', { name: 'Create' }).click();
  await page.getByText('Your change may have been saved').waitFor();
  expect(
    proxy.requests.filter(({ method, path }) => `${method} ${path}` === 'POST /admin/v1/clients'),
  ).toHaveLength(1);
  await page.reload();
  await page.getByText('Made unheard').waitFor();
  await window.expectError(/ERR_/);
  await expectNoErrors(window);
});

test('a request without a response is abandoned after 15 seconds, and retried', async () => {
  const window = await openSignedIn(through, '#/realms', { scope: READ_SCOPE });
  const { page } = window;
  await page.clock.install();
  await page.reload();
  await page.getByText('Buyer Organization').waitFor();
  proxy.injectFaults(USER, 'hang');
  const request = page.waitForRequest((request) => USER.test(`GET ${new URL(request.url()).pathname}`));
  await page.evaluate(`location.hash = '${pagePaths(shop).user}'`);
  await request;
  await page.clock.fastForward(12_000);
  expect(await page.getByText('The service is unreachable').count()).toBe(0);
  await page.clock.fastForward(4_000);
  await page.getByText('The service is unreachable. Check your network connection.').first().waitFor();
  await page.getByRole('heading', { name: 'Jane Doe' }).waitFor();
  await expectNoErrors(window);
});

test('a stalled list of changes is no longer shown as live, and goes on', async () => {
  const network = await startTcpProxy(Number(new URL(service.url).port));
  const far = { url: `http://127.0.0.1:${network.port}`, token: service.token };
  const window = await openSignedIn(far, '#/realms', { scope: READ_SCOPE });
  const { page } = window;
  await page.clock.install();
  await window.goto('#/changes');
  await page.reload();
  const live = page.getByText('Live', { exact: true });
  await live.waitFor();
  network.stall();
  await page.clock.fastForward(9_000);
  expect(await live.count()).toBe(1);
  await page.clock.fastForward(15_000);
  await page.getByText('The service is unreachable. Check your network connection.').waitFor();
  expect(await live.count()).toBe(0);
  network.resume();
  await live.waitFor();
  await expectNoErrors(window);
});
