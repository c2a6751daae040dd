import { expect, test } from 'bun:test';
import { METRICS } from '../../src/metrics/declarations.ts';
import { counter, gauge, histogram, type Snapshot } from '../../src/metrics/family.ts';
import { figuresBetween, quantile, readingOf } from '../../src/metrics/figures.ts';
import { openMetricsHistory } from '../../src/metrics/history.ts';

/** The rates and quantiles of two readings of the metrics, and their history. */

const ROUTE = '/v2/authentication-realms/:realm_id/user-authentication-info/:user_id/user-authentication-';
const LOOKUP = { method: 'GET', route: `${ROUTE}oidc-profile-info/:id` };
const LIST = { method: 'GET', route: `${ROUTE}oidc-profile-info` };
const snapshot = (at: number, [lookups = 0, lists = 0, slow = 0] = [0], startedAt = 1) => {
  const requests = [
    { labels: { ...LOOKUP, status: '2xx' }, value: lookups },
    { labels: { ...LIST, status: '5xx' }, value: lists },
  ];
  const families: Snapshot = [
    gauge(METRICS.startTime, startedAt),
    counter(METRICS.requests, requests),
    histogram(
      METRICS.requestDuration,
      [0.001, 0.01],
      [
        { labels: LOOKUP, counts: [lookups - slow, slow, 0], sum: 1 },
        { labels: LIST, counts: [0, 0, lists], sum: 1 },
      ],
    ),
  ];
  return readingOf(families, at);
};

test('rates and quantiles cover the growth between two snapshots', () => {
  const figures = figuresBetween(snapshot(0, [100]), snapshot(2_000, [300, 10, 20]));
  expect(figures).toMatchObject({
    lookups_per_second: 100,
    requests_per_second: 105,
    server_errors_per_second: 5,
    client_errors_per_second: 0,
  });
  expect(figures?.lookup_ms_p50).toBeCloseTo(100 / 180, 6);
  expect(figures?.lookup_ms_p95).toBeCloseTo(1 + (9 * (190 - 180)) / 20, 6);
  expect(figures?.request_ms_p99).toBe(10);
});

test('rates are undefined when a counter decreased or the service restarted', () => {
  expect(figuresBetween(snapshot(0, [100]), snapshot(2_000, [99]))).toBeUndefined();
  expect(figuresBetween(snapshot(0, [100]), snapshot(2_000, [200], 2))).toBeUndefined();
});

test('quantiles without requests are undefined', () => {
  const figures = figuresBetween(snapshot(0, [100]), snapshot(2_000, [100]));
  expect([figures?.lookups_per_second, figures?.lookup_ms_p50, figures?.lookup_ms_p99]).toEqual([
    0,
    undefined,
    undefined,
  ]);
  expect(figuresBetween(readingOf([], 0), readingOf([], 2_000))?.lookups_per_second).toBeUndefined();
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

test('the metrics history has the figures of each step, a gap where the metrics could not be read, and a bound', async () => {
  let reads = 0;
  const read = async (): Promise<Snapshot> => {
    reads += 1;
    if (reads === 3) throw new Error('not collected in time');
    return [counter(METRICS.requests, 10 * reads), gauge(METRICS.webhookLag, reads)];
  };
  const clock = { now: () => 1_000 + reads, monotonic: () => 1_000 * reads };
  const history = openMetricsHistory(read, clock, { stepMs: 2, pointsMax: 5 });
  while (reads < 7) await Bun.sleep(1);
  const points = await history.readHistory();
  history.stop();
  expect(points.map(({ at }) => at)).toEqual([1_003, 1_004, 1_005, 1_006, 1_007]);
  expect(points.map(({ requests_per_second: rate }) => rate)).toEqual([undefined, undefined, 10, 10, 10]);
  expect(points.map(({ webhook_lag_seconds: lag }) => lag)).toEqual([undefined, 4, 5, 6, 7]);
});
