import { afterAll, afterEach, beforeAll, describe, expect, setDefaultTimeout, test } from 'bun:test';
import { type Family, figuresBetween, quantile, snapshotOf } from '../../console/pages/health/metrics.ts';
import {
  createFixture,
  type Fixture,
  freePort,
  oidcPath,
  type Service,
  startService,
} from '../support/service.ts';
import { addTarget, startReceiver } from '../support/webhook_receivers.ts';
import { expectNoErrors, openSignedIn, READ_SCOPE } from './console_session.ts';
import { BROWSER_TEST_MS, type ConsoleWindow, VIEWS } from './console_window.ts';

setDefaultTimeout(BROWSER_TEST_MS);

/** The Health page, and the rates and quantiles that it derives from metrics. */

const ADMIN = `${READ_SCOPE} admin`;
const FLAGS = { offline: 'true', metricsPort: '0', allowLoopbackWebhooks: 'true' } as const;

describe('rates and quantiles', () => {
  const ROUTE = '/v2/authentication-realms/:realm_id/user-authentication-info/:user_id/user-authentication-';
  const LOOKUP = { method: 'GET', route: `${ROUTE}oidc-profile-info/:id` };
  const LIST = { method: 'GET', route: `${ROUTE}oidc-profile-info` };
  const snapshot = (at: number, [lookups = 0, lists = 0, slow = 0] = [0], startedAt = 1) => {
    const requests = [
      { labels: { ...LOOKUP, status: '2xx' }, value: lookups },
      { labels: { ...LIST, status: '5xx' }, value: lists },
    ];
    const families: readonly Family[] = [
      { name: 'process_start_time_seconds', kind: 'gauge', samples: [{ labels: {}, value: startedAt }] },
      { name: 'authrealm_requests_total', kind: 'counter', samples: requests },
      {
        name: 'authrealm_request_duration_seconds',
        kind: 'histogram',
        bounds: [0.001, 0.01],
        distributions: [
          { labels: LOOKUP, counts: [lookups - slow, slow, 0], sum: 1 },
          { labels: LIST, counts: [0, 0, lists], sum: 1 },
        ],
      },
    ];
    return snapshotOf(families, at);
  };

  test('rates and quantiles cover the growth between two snapshots', () => {
    const figures = figuresBetween(snapshot(0, [100]), snapshot(2_000, [300, 10, 20]));
    expect(figures).toMatchObject({ lookups: 100, requests: 105, failed: 5, refused: 0 });
    expect(figures?.median).toBeCloseTo(100 / 180, 6);
    expect(figures?.p95).toBeCloseTo(1 + (9 * (190 - 180)) / 20, 6);
    expect(figures?.allP99).toBe(10);
  });

  test('rates are undefined when a counter decreased or the service restarted', () => {
    expect(figuresBetween(snapshot(0, [100]), snapshot(2_000, [99]))).toBeUndefined();
    expect(figuresBetween(snapshot(0, [100]), snapshot(2_000, [200], 2))).toBeUndefined();
  });

  test('quantiles without requests are undefined', () => {
    const figures = figuresBetween(snapshot(0, [100]), snapshot(2_000, [100]));
    expect([figures?.lookups, figures?.median, figures?.p99]).toEqual([0, undefined, undefined]);
    expect(figuresBetween(snapshotOf([], 0), snapshotOf([], 2_000))?.lookups).toBeUndefined();
  });

  test.each([
    [[0, 0, 0], undefined],
    [[4, 0, 0], 0.5],
    [[0, 4, 0], 5.5],
    [[0, 0, 4], 10],
  ])('the median of a histogram with the counts %p is %p ms', (counts, median) => {
    const found = quantile({ bounds: [0.001, 0.01], counts }, 0.5);
    if (median === undefined) expect(found).toBeUndefined();
    else expect(found).toBeCloseTo(median, 9);
  });
});

let service: Service;
let fixture: Fixture;
let reader: string;

beforeAll(async () => {
  service = await startService(FLAGS);
  fixture = await createFixture(service.db);
  reader = await service.token('profile-infos:read changes:read');
});
afterAll(() => service.stop());

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
    await row(window, 'Lookups').getByText('/s').waitFor();
    const lookups = await row(window, 'Lookups').getByRole('cell').innerText();
    expect(Number.parseFloat(lookups)).toBeGreaterThan(0);
    await row(window, 'Lookup latency, 99th percentile').getByText('ms').waitFor();
    // The background load lists realms without the scope for it.
    expect(await row(window, 'Client errors (4xx)').innerText()).not.toContain('none');
    const figure = page.getByRole('figure').filter({ hasText: 'Webhook lag' });
    await figure.getByText(/\d s/).waitFor();
    expect(await page.locator('.chart-plot canvas').count()).toBe(4);
    // Checks that the canvases are not blank.
    const drawn = `[...document.querySelectorAll('.chart-plot canvas')].map((canvas) => canvas.getContext('2d')
    .getImageData(0, 0, canvas.width, canvas.height).data.some((part) => part > 0))`;
    expect(await page.evaluate(drawn)).toEqual([true, true, true, true]);
    await expectNoErrors(window);
    await page.setViewportSize({ width: 700, height: 900 });
    await expectNoErrors(window);
    await end();
    await window.close();
    const admin = await service.token('admin');
    await service.del(`/admin/v1/webhooks/${webhook.webhookId}`, admin);
    receiver.stop();
  },
);

test('the Health page sends no requests while it is hidden', async () => {
  const window = await openSignedIn(service, '#/health', { scope: ADMIN });
  const { page } = window;
  await row(window, 'All requests').getByText('/s').waitFor();
  let requestCount = 0;
  page.on('request', (request) => {
    if (request.url().endsWith('/admin/v1/metrics')) requestCount += 1;
  });
  const turn = (isHidden: boolean) =>
    page.evaluate(
      `Object.defineProperty(document, 'hidden', { value: ${isHidden}, configurable: true });
       document.dispatchEvent(new Event('visibilitychange'))`,
    );
  await turn(true);
  await Bun.sleep(300);
  requestCount = 0;
  await Bun.sleep(4_500);
  expect(requestCount).toBe(0);
  await turn(false);
  await row(window, 'All requests').getByText('/s').waitFor();
  expect(requestCount).toBeGreaterThan(0);
  await expectNoErrors(window);
  await window.close();
});

test('the Health page reports a restart of the service as a gap', async () => {
  const port = String(await freePort());
  const one = await startService({ ...FLAGS, port });
  const token = await one.token('admin');
  const window = await openSignedIn(one, '#/health', { scope: 'admin', token });
  const { page } = window;
  await row(window, 'All requests').getByText('/s').waitFor();
  await one.stop();
  await page.getByText('The service is unreachable.').waitFor();
  const other = await startService({ ...FLAGS, ...one.database.flags, port });
  await page.getByText('The service restarted while this page was open').waitFor();
  await row(window, 'All requests').getByText('/s').waitFor();
  expect(await page.getByText('The service is unreachable.').count()).toBe(0);
  await window.expectError(/ERR_|503/);
  await expectNoErrors(window);
  await window.close();
  await other.stop();
});

test('the Health page says so when the service records no request metrics', async () => {
  const quiet = await startService({ offline: 'true' });
  const window = await openSignedIn(quiet, '#/health', { scope: ADMIN });
  await window.page.getByText('This service does not record request metrics.').waitFor();
  await window.page.getByText('no webhook').waitFor();
  await expectNoErrors(window);
  await window.close();
  await quiet.stop();
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
  await window.close();
});
