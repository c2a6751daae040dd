import { afterEach, expect, setDefaultTimeout, test } from 'bun:test';
import { findPort } from '../support/daemons.ts';
import { createFixture, oidcPath, startService } from '../support/service.ts';
import { addTarget, startReceiver } from '../support/webhook_receivers.ts';
import { expectNoErrors, openSignedIn, READ_SCOPE } from './console_session.ts';
import { BROWSER_TEST_MS, type ConsoleWindow, VIEWS } from './console_window.ts';

setDefaultTimeout(BROWSER_TEST_MS);

/** The Health page. */

const ADMIN = `${READ_SCOPE} admin`;
const FLAGS = { offline: 'true', metricsPort: '0', allowPrivate: 'localhost 127.0.0.0/8' } as const;

const service = await startService(FLAGS);
const fixture = await createFixture(service.db);
const reader = await service.token('profile-infos:read changes:read');

const ends: (() => void)[] = [];
afterEach(() => {
  for (const end of ends.splice(0)) end();
});

/** Sends lookups until stopped or the test ends. */
function load(): () => Promise<void> {
  let isOver = false;
  ends.push(() => {
    isOver = true;
  });
  const run = async () => {
    while (!isOver) {
      await service.get(oidcPath(fixture), reader);
      await service.get('/v2/authentication-realms', reader);
      await Bun.sleep(5);
    }
  };
  const running = run();
  return () => {
    isOver = true;
    return running;
  };
}

/** The pixels of a canvas, or of a part at its top. Chromium warns of a second reading of a canvas, so this reads a copy. */
const PIXELS_OF = `((canvas, left = 0, width = canvas.width, height = canvas.height) => {
  const copy = new OffscreenCanvas(canvas.width, canvas.height).getContext('2d', { willReadFrequently: true });
  copy.drawImage(canvas, 0, 0);
  return copy.getImageData(left, 0, width, height).data;
})`;

const row = ({ page }: ConsoleWindow, name: string) =>
  page.getByRole('row').filter({ has: page.getByRole('rowheader', { name, exact: true }) });

test.each(VIEWS)(
  'the Health page draws metrics and lists their values, $viewport.width wide, $scheme',
  async (view) => {
    const receiver = startReceiver();
    receiver.respond(() => new Response(null, { status: 500 }));
    const { webhook } = await addTarget(service, receiver.url);
    await createFixture(service.db, { realm: fixture.realm });
    const end = load();
    const window = await openSignedIn(service, '#/health', { scope: ADMIN, view });
    const { page } = window;
    await page.getByText(service.database.address.engine === 'sqlite' ? 'SQLite' : 'PostgreSQL').waitFor();
    // More than none.
    await row(window, 'Lookups')
      .getByText(/[1-9][\d.,]*\/s/)
      .waitFor();
    await row(window, 'Lookup latency, 99th percentile').getByText('ms').waitFor();
    // The background load lists realms without the scope for it.
    await row(window, 'Client errors (4xx)').getByText('/s').waitFor();
    const figure = page.getByRole('figure').filter({ hasText: 'Webhook lag' });
    await figure.getByText(/\d s/).waitFor();
    await page.locator('.chart-plot canvas').nth(3).waitFor();
    expect(await page.locator('.chart-plot canvas').count()).toBe(4);
    // The canvases are not blank.
    const drawn = `[...document.querySelectorAll('.chart-plot canvas')]
      .every((canvas) => ${PIXELS_OF}(canvas).some((part) => part > 0))`;
    await window.until(drawn);
    await expectNoErrors(window);
    await page.setViewportSize({ width: 700, height: 900 });
    await expectNoErrors(window);
    await end();
    await window.close();
    const admin = await service.token('admin');
    await service.del(`/admin/v1/webhooks/${webhook.webhookId}`, admin);
  },
);

test('the Health page shows what happened before it was opened', async () => {
  const admin = await service.token('admin');
  const history = async () => {
    const answer = await service.get('/admin/v1/metrics/history', admin);
    return ((await answer.json()) as { data: { points: readonly Record<string, unknown>[] } }).data.points;
  };
  const end = load();
  const hasLookups = ({ lookups_per_second: rate }: Readonly<Record<string, unknown>>) => Number(rate) > 0;
  // The two newest steps: a line needs two points, and the tests before have lookups that are further left.
  const isDrawable = (newest: readonly Record<string, unknown>[]) => newest.filter(hasLookups).length === 2;
  while (!isDrawable((await history()).slice(-2))) await Bun.sleep(500);
  await end();
  const window = await openSignedIn(service, '#/health', { scope: ADMIN });
  await row(window, 'All requests').getByText('/s').waitFor();
  // Drawn where this page, which has polled for a few seconds only and without lookups, has no values of its own.
  const drawn = `(() => { const canvas = document.querySelector('.chart-plot canvas');
    if (!canvas?.width) return false;
    const data = ${PIXELS_OF}(canvas, canvas.width * 0.5, canvas.width * 0.2, canvas.height * 0.8);
    return data.some((part, index) => index % 4 === 2 && data[index + 1] > 0 && part > data[index - 2] + 60); })()`;
  await window.until(drawn);
  await expectNoErrors(window);
});

test('the Health page draws its charts in a browser whose locale Intl does not know', async () => {
  const window = await openSignedIn(service, '#/health', { scope: ADMIN });
  const { page } = window;
  // As Chromium names it under LANG=C.
  await page.addInitScript(`Object.defineProperty(Navigator.prototype, 'language', {
    get: () => 'en-US@posix', configurable: true })`);
  await page.reload();
  await row(window, 'All requests').getByText('/s').waitFor();
  await page.locator('.chart-plot canvas').nth(3).waitFor();
  await expectNoErrors(window);
});

const turnVisibility = ({ page }: ConsoleWindow, isHidden: boolean) =>
  page.evaluate(
    `Object.defineProperty(document, 'hidden', { value: ${isHidden}, configurable: true });
     document.dispatchEvent(new Event('visibilitychange'))`,
  );

test('the Health page sends no requests while it is hidden', async () => {
  const window = await openSignedIn(service, '#/health', { scope: ADMIN });
  const { page } = window;
  await row(window, 'All requests').getByText('/s').waitFor();
  let requestCount = 0;
  page.on('request', (request) => {
    if (request.url().endsWith('/admin/v1/metrics')) requestCount += 1;
  });
  await turnVisibility(window, true);
  await Bun.sleep(300);
  requestCount = 0;
  await Bun.sleep(4_500);
  expect(requestCount).toBe(0);
  const polled = page.waitForRequest('**/admin/v1/metrics');
  await turnVisibility(window, false);
  await polled;
  await row(window, 'All requests').getByText('/s').waitFor();
  await expectNoErrors(window);
});

test('the Health page polls at its normal rate when it is hidden and shown while it reads the history', async () => {
  const window = await openSignedIn(service, '#/', { scope: ADMIN });
  const { page } = window;
  const { promise: shown, resolve: release } = Promise.withResolvers<void>();
  await page.route('**/admin/v1/metrics/history', async (route) => {
    await shown;
    await route.fallback();
  });
  let requestCount = 0;
  page.on('request', (request) => {
    if (request.url().endsWith('/admin/v1/metrics')) requestCount += 1;
  });
  const requested = page.waitForRequest('**/admin/v1/metrics/history');
  await page.evaluate(`location.hash = '#/health'`);
  await requested;
  await turnVisibility(window, true);
  await turnVisibility(window, false);
  await Bun.sleep(500);
  release();
  await row(window, 'All requests').getByText('/s').waitFor();
  requestCount = 0;
  const began = performance.now();
  await Bun.sleep(6_500);
  // One every two seconds.
  expect(requestCount).toBeLessThanOrEqual(1 + Math.floor((performance.now() - began) / 2_000));
  await expectNoErrors(window);
});

test('the Health page reports a restart of the service as a gap', async () => {
  const port = String(findPort());
  const one = await startService({ ...FLAGS, port });
  const token = await one.token('admin');
  const window = await openSignedIn(one, '#/health', { scope: 'admin', token });
  const { page } = window;
  await row(window, 'All requests').getByText('/s').waitFor();
  await one.stop();
  await page.getByText('The service is unreachable.').waitFor();
  await startService({ ...FLAGS, ...one.database.flags, port });
  await page.getByText('The service restarted while this page was open').waitFor();
  await row(window, 'All requests').getByText('/s').waitFor();
  expect(await page.getByText('The service is unreachable.').count()).toBe(0);
  await window.expectError(/ERR_|503/);
  await expectNoErrors(window);
});

test('the Health page says so when the service records no request metrics', async () => {
  const quiet = await startService({ offline: 'true' });
  const window = await openSignedIn(quiet, '#/health', { scope: ADMIN });
  await window.page.getByText('This service does not record request metrics.').waitFor();
  await window.page.getByText('no webhook').waitFor();
  await expectNoErrors(window);
});

test('the Health page without the scope admin says so, and stops polling', async () => {
  const window = await openSignedIn(service, '#/health', { scope: READ_SCOPE });
  const { page } = window;
  await page.getByText('This session does not have permission to do that.').waitFor();
  let requestCount = 0;
  page.on('request', () => {
    requestCount += 1;
  });
  await Bun.sleep(3_000);
  expect(requestCount).toBe(0);
  await window.expectError(/403/);
  await expectNoErrors(window);
});
