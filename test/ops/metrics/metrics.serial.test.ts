import { describe, expect, test } from 'bun:test';
import { LIMITS } from '../../../src/model/limits.ts';
import { exposition } from '../../../src/ops/metrics/exposition.ts';
import { familyOf, mergeSnapshots, type Snapshot, withoutGauges } from '../../../src/ops/metrics/family.ts';
import { openMetrics } from '../../../src/ops/metrics/metrics.ts';
import { freshDatabase, openFreshDatabase } from '../../support/database.ts';
import { AUTHREALM, runCommand } from '../../support/processes.ts';
import { type ParsedFamily, readPrometheus, sumOf } from '../../support/prometheus_text.ts';
import { createFixture, type Fixture, oidcPath, startService } from '../../support/service.ts';
import { type ServiceProcess, startServiceProcess } from '../../support/service_process.ts';

/** Metrics as Prometheus reads them from the real command, with one process and with several. */

const SCOPE = 'oidc-profile-infos:read users:write admin';
const LOOKUP =
  '/v2/authentication-realms/:realm_id/user-authentication-info/:user_id/user-authentication-oidc-profile-info/:id';

interface ScrapedService {
  readonly served: ServiceProcess;
  readonly fixture: Fixture;
  readonly token: string;
  readonly metricsUrl: string;
  scrape(): Promise<ReadonlyMap<string, ParsedFamily>>;
}

async function startScraped(...flags: readonly string[]): Promise<ScrapedService> {
  const { database, db } = await openFreshDatabase();
  const fixture = await createFixture(db);
  await db.engine.close();
  const served = await startServiceProcess({
    database,
    scope: SCOPE,
    flags: ['--metrics', '127.0.0.1:0', ...flags],
  });
  const metricsUrl = (await served.running.line(/^metrics on /)).slice('metrics on '.length);
  return {
    served,
    fixture,
    token: await served.token(),
    metricsUrl,
    async scrape() {
      const answer = await fetch(metricsUrl);
      expect([answer.status, answer.headers.get('content-type')]).toEqual([
        200,
        'text/plain; version=0.0.4; charset=utf-8',
      ]);
      return readPrometheus(await answer.text());
    },
  };
}

const lookups = (families: ReadonlyMap<string, ParsedFamily>, status: string) =>
  sumOf(families, 'authrealm_requests_total', { method: 'GET', route: LOOKUP, status });

describe('metrics of one process', async () => {
  const scraped = await startScraped();

  test('metrics count the files of the console under one route', async () => {
    const { served, scrape } = scraped;
    const page = await (await served.get('/console', '')).text();
    const names = [...page.matchAll(/(?:src|href)="(console\/[\w.-]+)"/g)].map(([, name]) => `/${name}`);
    expect(names.length).toBeGreaterThan(1);
    for (const name of names) expect((await served.get(name, '')).status).toBe(200);
    const families = await scrape();
    const counted = { method: 'GET', route: '/console/:name', status: '2xx' };
    expect(sumOf(families, 'authrealm_requests_total', counted)).toBe(names.length);
  });

  test('metrics count every request by operation, status and fault', async () => {
    const { served, fixture, token, scrape } = scraped;
    const before = await scrape();
    for (let n = 0; n < 3; n += 1) expect((await served.get(oidcPath(fixture), token)).status).toBe(200);
    expect((await served.get(oidcPath({ ...fixture, oidcLink: fixture.user }), token)).status).toBe(404);
    expect((await served.get(oidcPath(fixture), 'none')).status).toBe(401);
    expect((await served.get(`/nowhere/${fixture.subject}`, token)).status).toBe(404);
    expect((await served.put('/healthz', token, {})).status).toBe(405);
    const after = await scrape();
    const rise = (name: string, labels: Record<string, string>) =>
      sumOf(after, name, labels) - sumOf(before, name, labels);
    expect(rise('authrealm_requests_total', { method: 'GET', route: LOOKUP, status: '2xx' })).toBe(3);
    expect(rise('authrealm_requests_total', { method: 'GET', route: LOOKUP, status: '4xx' })).toBe(2);
    expect(rise('authrealm_faults_total', { route: LOOKUP, code: 'not_found' })).toBe(1);
    expect(rise('authrealm_faults_total', { route: LOOKUP, code: 'unauthenticated' })).toBe(1);
    expect(rise('authrealm_faults_total', { method: 'other', route: '*', code: 'unknown_route' })).toBe(1);
    expect(
      rise('authrealm_faults_total', { method: 'other', route: '/healthz', code: 'method_not_allowed' }),
    ).toBe(1);
    expect(rise('authrealm_request_duration_seconds_count', { route: LOOKUP })).toBe(5);
  });

  test('metrics count commits, and waiting jobs by queue', async () => {
    const { served, fixture, token, scrape } = scraped;
    const before = await scrape();
    const users = `/v2/authentication-realms/${fixture.realm}/user-authentication-info`;
    const data = { type: 'user_authentication_info', name: 'Jane', email: 'jane@example.com' };
    expect((await served.post(users, token, { data })).status).toBe(201);
    const after = await scrape();
    const commits = (families: typeof after) => sumOf(families, 'authrealm_commits_total');
    expect(commits(after) - commits(before)).toBeGreaterThanOrEqual(1);
    const queues = after
      .get('authrealm_queue_length')
      ?.samples.map(({ labels, value }) => [labels.queue, value]);
    expect(queues).toEqual([
      ['writes', 0],
      ['lists', 0],
      ['hashes', 0],
      ['checks', 0],
    ]);
    expect(sumOf(after, 'authrealm_queue_capacity', { queue: 'writes' })).toBe(LIMITS.writesQueuedMax);
  });

  test('the buckets of each histogram rise to its count', async () => {
    const families = await scraped.scrape();
    const histograms = [...families].filter(([, { kind }]) => kind === 'histogram');
    expect(histograms.map(([name]) => name).sort()).toEqual([
      'authrealm_event_loop_delay_seconds',
      'authrealm_password_check_duration_seconds',
      'authrealm_request_duration_seconds',
      'authrealm_sign_in_duration_seconds',
    ]);
    for (const [name, { samples }] of histograms) {
      const rows = Map.groupBy(samples, ({ labels: { le: _, ...own } }) => JSON.stringify(own));
      for (const row of rows.values()) {
        const buckets = row.filter((sample) => sample.name === `${name}_bucket`);
        const values = buckets.map(({ value }) => value);
        expect(values).toEqual(values.toSorted((left, right) => left - right));
        expect(buckets.at(-1)?.labels.le).toBe('+Inf');
        const count = row.find((sample) => sample.name === `${name}_count`);
        expect(values.at(-1)).toBe(count?.value ?? Number.NaN);
      }
    }
  });

  test('metrics contain no value of a caller', async () => {
    const { fixture, token, metricsUrl } = scraped;
    const text = await (await fetch(metricsUrl)).text();
    for (const value of [...Object.values(fixture), token]) expect(text).not.toContain(value);
    const families = readPrometheus(text);
    const names = new Set(
      [...families.values()].flatMap(({ samples }) => samples.flatMap(({ labels }) => Object.keys(labels))),
    );
    const known = [
      'cause',
      'code',
      'engine',
      'le',
      'mechanism',
      'method',
      'outcome',
      'queue',
      'route',
      'runtime',
      'status',
      'version',
    ];
    expect([...names].filter((name) => !known.includes(name))).toEqual([]);
  });

  test('the metrics listener serves /metrics only, and the API does not serve it', async () => {
    const { metricsUrl, served, token } = scraped;
    expect((await fetch(new URL('/healthz', metricsUrl))).status).toBe(404);
    expect((await served.get('/metrics', token)).status).toBe(404);
  });
});

/** The default `scrape_timeout` of Prometheus. */
const SCRAPE_MS_MAX = 10_000;

describe('metrics of several processes', async () => {
  const scraped = await startScraped('--processes', '3');

  /** Concurrent lookups over separate connections, so that every process gets some. */
  async function lookUp(times: number): Promise<void> {
    const { served, fixture, token } = scraped;
    await Promise.all(Array.from({ length: times }, () => served.get(oidcPath(fixture), token)));
  }

  const workers = () =>
    [...scraped.served.running.output().matchAll(/"event":"process_started","pid":(\d+)/g)].map(([, pid]) =>
      Number(pid),
    );

  /** Resolves once a condition holds: every process reports its metrics at least every second. */
  async function until(condition: () => Promise<boolean>): Promise<void> {
    while (!(await condition())) await Bun.sleep(50);
  }

  /** Metrics that count these lookups and all before them. */
  async function afterLookups(times: number) {
    const { scrape } = scraped;
    const before = lookups(await scrape(), '2xx');
    await lookUp(times);
    await until(async () => lookups(await scrape(), '2xx') - before >= times);
    const families = await scrape();
    expect(lookups(families, '2xx') - before).toBe(times);
    return families;
  }

  test('metrics of several processes are summed', async () => {
    const families = await afterLookups(60);
    expect(sumOf(families, 'authrealm_processes', { state: 'responding' })).toBe(3);
    expect(sumOf(families, 'authrealm_build_info')).toBe(1);
    expect(sumOf(families, 'authrealm_queue_capacity', { queue: 'writes' })).toBe(3 * LIMITS.writesQueuedMax);
  });

  test('an unresponsive process does not delay metrics, and its counters stay', async () => {
    const { scrape } = scraped;
    const before = await afterLookups(30);
    const [pid = 0] = workers();
    process.kill(pid, 'SIGSTOP');
    try {
      const start = performance.now();
      const families = await scrape();
      const ms = performance.now() - start;
      expect(ms).toBeLessThan(SCRAPE_MS_MAX);
      expect(sumOf(families, 'authrealm_processes', { state: 'unresponsive' })).toBe(1);
      expect(lookups(families, '2xx')).toBe(lookups(before, '2xx'));
    } finally {
      process.kill(pid, 'SIGCONT');
    }
    await until(async () => sumOf(await scrape(), 'authrealm_processes', { state: 'unresponsive' }) === 0);
  }, 300_000);

  test('the counters of a killed process stay in the metrics', async () => {
    const { scrape } = scraped;
    const before = await afterLookups(30);
    const ends = sumOf(before, 'authrealm_process_exits_total');
    process.kill(workers()[1] ?? 0, 'SIGKILL');
    await until(async () => sumOf(await scrape(), 'authrealm_process_exits_total') === ends + 1);
    await until(async () => sumOf(await scrape(), 'authrealm_processes', { state: 'responding' }) === 3);
    const after = await scrape();
    expect(lookups(after, '2xx')).toBe(lookups(before, '2xx'));
    expect(sumOf(after, 'process_start_time_seconds')).toBe(sumOf(before, 'process_start_time_seconds'));
  }, 300_000);

  test('the last counters of a process that exits are in the metrics', async () => {
    const { scrape } = scraped;
    const before = lookups(await scrape(), '2xx');
    await lookUp(30);
    process.kill(workers().at(-1) ?? 0, 'SIGTERM');
    await until(async () => sumOf(await scrape(), 'authrealm_process_exits_total') === 2);
    await until(async () => lookups(await scrape(), '2xx') - before >= 30);
    expect(lookups(await scrape(), '2xx') - before).toBe(30);
  }, 300_000);
});

test('without --metrics requests are not counted, and other metrics can be read', async () => {
  const service = await startService();
  expect((await service.get('/healthz')).status).toBe(200);
  const names = (await service.server.metrics.readAll()).map(({ name }) => name);
  expect(names).not.toContain('authrealm_requests_total');
  expect(names).toContain('authrealm_commits_total');
});

test('a service whose metrics port is taken does not start', async () => {
  const listener = Bun.listen({ hostname: '127.0.0.1', port: 0, socket: { data() {} } });
  const { args } = await freshDatabase();
  for (const processes of ['1', '2']) {
    const flags = ['--port', '0', '--metrics', `127.0.0.1:${listener.port}`, '--processes', processes];
    const { code, stderr } = await runCommand([AUTHREALM, 'serve', ...flags, ...args]);
    const why = 'EADDRINUSE. Pass an address of this machine and a free port with --metrics';
    // Nothing has started before.
    expect([code, stderr]).toEqual([
      1,
      `authrealm: cannot listen on 127.0.0.1 port ${listener.port}: ${why}\n`,
    ]);
  }
  listener.stop(true);
}, 300_000);

describe('a metrics registry', () => {
  const named = (snapshot: Snapshot, name: string) => snapshot.find((family) => family.name === name);

  test('a collector that fails or is late is left out of the metrics, and the others are reported', async () => {
    const metrics = openMetrics(true);
    metrics.add(
      () => new Promise(() => undefined),
      () => Promise.reject(new Error('no')),
      () => {
        throw new Error('no');
      },
      () => [familyOf({ kind: 'gauge', name: 'well', help: 'h' }, [{ labels: { target: 'a' }, value: 7 }])],
    );
    const start = performance.now();
    const snapshot = await metrics.snapshot();
    expect(performance.now() - start).toBeWithin(LIMITS.collectorMsMax - 50, LIMITS.answerMsMax);
    expect(named(snapshot, 'well')).toMatchObject({ samples: [{ labels: { target: 'a' }, value: 7 }] });
    metrics.close();
  });

  test('error causes above the limit are counted as other', () => {
    const metrics = openMetrics(true);
    for (let n = 0; n < LIMITS.errorCausesMax + 5; n += 1) metrics.meter?.countError(`C${n}`);
    const family = named(metrics.meter?.collect() ?? [], 'authrealm_errors_total');
    const samples = family && 'samples' in family ? family.samples : [];
    expect(samples).toHaveLength(LIMITS.errorCausesMax + 1);
    expect(samples.at(-1)).toEqual({ labels: { cause: 'other' }, value: 5 });
    metrics.close();
  });

  test('the Prometheus text format escapes help and labels, and omits a metric without values', () => {
    const text = exposition([
      familyOf({ kind: 'gauge', name: 'authrealm_x', help: 'a\\b\nc' }, [
        { labels: { path: 'C:\\"x"\n' }, value: 0.25 },
      ]),
      familyOf({ kind: 'gauge', name: 'authrealm_y', help: 'h' }, undefined),
    ]);
    expect(text).toBe(
      '# HELP authrealm_x a\\\\b\\nc\n# TYPE authrealm_x gauge\nauthrealm_x{path="C:\\\\\\"x\\"\\n"} 0.25\n\n',
    );
    const [sample] = readPrometheus(text).get('authrealm_x')?.samples ?? [];
    expect(sample?.value).toBe(0.25);
  });

  test('the event loop delay of a busy process is measured', async () => {
    const metrics = openMetrics(true);
    await Bun.sleep(20);
    const end = performance.now() + 400;
    while (performance.now() < end);
    await Bun.sleep(20);
    const family = named(await metrics.snapshot(), 'authrealm_event_loop_delay_seconds');
    const [distribution] = family?.kind === 'histogram' ? family.distributions : [];
    expect(distribution?.sum).toBeGreaterThan(0.2);
    metrics.close();
  });

  test('metrics of processes merge as sum, maximum or minimum, and keep the counters of one that exited', () => {
    const snapshotOf = (value: number): Snapshot => [
      { kind: 'counter', name: 'c', help: 'h', samples: [{ labels: { a: '1' }, value }] },
      { kind: 'gauge', across: 'max', name: 'max', help: 'h', samples: [{ labels: {}, value }] },
      { kind: 'gauge', across: 'min', name: 'min', help: 'h', samples: [{ labels: {}, value }] },
      {
        kind: 'histogram',
        name: 'h',
        help: 'h',
        bounds: [1],
        distributions: [{ labels: {}, counts: [value, 1], sum: value }],
      },
    ];
    const other: Snapshot = [
      { kind: 'counter', name: 'c', help: 'h', samples: [{ labels: { a: '2' }, value: 1 }] },
    ];
    const joined = mergeSnapshots([snapshotOf(2), snapshotOf(3), other]);
    const value = (name: string) => {
      const family = named(joined, name);
      return family && 'samples' in family ? family.samples.map((sample) => sample.value) : [];
    };
    expect([value('c'), value('max'), value('min')]).toEqual([[5, 1], [3], [2]]);
    expect(named(joined, 'h')).toMatchObject({ distributions: [{ counts: [5, 2], sum: 5 }] });
    expect(withoutGauges(joined).map(({ name }) => name)).toEqual(['c', 'h']);
  });
});
