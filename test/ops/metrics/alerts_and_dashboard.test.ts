import { describe, expect, test } from 'bun:test';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { parser } from '@prometheus-io/lezer-promql';
import { YAML } from 'bun';
import { openDatabase } from '../../../src/app/open_database.ts';
import { FAULTS, GRANT_FAULTS } from '../../../src/model/fault.ts';
import { METRICS, type MetricDeclaration } from '../../../src/ops/metrics/declarations.ts';
import { systemClock } from '../../../src/ops/process/clock.ts';
import { freshDatabase } from '../../support/database.ts';
import { atEnd } from '../../support/ending.ts';
import { AUTHREALM, runAuthrealm, startCommand } from '../../support/processes.ts';
import { type ParsedFamily, readPrometheus } from '../../support/prometheus_text.ts';
import { createFixture, freshFolder } from '../../support/service.ts';
import { startServiceProcess } from '../../support/service_process.ts';

/** The alert rules and the dashboard of deploy/: each expression parses, and queries metrics that a running service has. */

const ROOT = fileURLToPath(new URL('../../..', import.meta.url));
const read = (path: string): string => readFileSync(join(ROOT, 'deploy', path), 'utf8');

interface Rule {
  readonly alert: string;
  readonly expr: string;
  readonly for?: string;
  readonly labels: { readonly severity: string };
  readonly annotations: {
    readonly summary: string;
    readonly description: string;
    readonly runbook: string;
  };
}

interface Panel {
  readonly id: number;
  readonly title: string;
  readonly type: string;
  readonly targets?: readonly { readonly expr: string }[];
  readonly gridPos: Readonly<Record<'x' | 'y' | 'w' | 'h', number>>;
}

interface Variable {
  readonly name: string;
  readonly query: string | { readonly query: string };
}

const { groups } = YAML.parse(read('prometheus/alerts.yaml')) as {
  groups: readonly { readonly name: string; readonly rules: readonly Rule[] }[];
};
const rules = groups.flatMap((group) => group.rules);
const dashboard = JSON.parse(read('grafana/authrealm.json')) as {
  readonly panels: readonly Panel[];
  readonly templating: { readonly list: readonly Variable[] };
};
const panels = dashboard.panels.filter(({ type }) => type !== 'row');

/** Every expression, with its alert or panel. */
const EXPRESSIONS: readonly (readonly [where: string, expression: string])[] = [
  ...rules.map(({ alert, expr }) => [alert, expr] as const),
  ...panels.flatMap(({ title, targets = [] }) => targets.map(({ expr }) => [title, expr] as const)),
];

/** Replaces the variables of Grafana, as Grafana does. */
function fillVariables(expression: string): string {
  return expression.replaceAll('$__rate_interval', '1m').replaceAll(/\$(?:job|instance)\b/g, 'authrealm');
}

interface Selector {
  readonly name: string;
  /** Labels that select among its series. */
  readonly labels: readonly string[];
}

interface Query {
  readonly selectors: readonly Selector[];
  /** Labels that it groups by. */
  readonly grouped: readonly string[];
  readonly errors: readonly string[];
}

/** Reads a query by the grammar of Prometheus itself. */
function readQuery(text: string): Query {
  const selectors: { name: string; labels: string[] }[] = [];
  const grouped: string[] = [];
  const errors: string[] = [];
  parser.parse(text).iterate({
    enter({ type, name, from, to, node }) {
      const token = text.slice(from, to);
      if (type.isError) errors.push(`at ${from}: ${text.slice(Math.max(0, from - 20), to + 20)}`);
      if (name === 'VectorSelector') selectors.push({ name: '', labels: [] });
      if (name === 'Identifier' && node.parent?.name === 'VectorSelector')
        Object.assign(selectors.at(-1) ?? {}, { name: token });
      if (name !== 'LabelName') return;
      if (node.parent?.name === 'GroupingLabels') grouped.push(token);
      else selectors.at(-1)?.labels.push(token);
    },
  });
  return { selectors, grouped, errors };
}

test('the PromQL parser of this suite finds mistakes', () => {
  for (const wrong of ['sum(rate(a[5m])', 'a b', 'a{b=c}', 'a > > b', '']) {
    expect([wrong, readQuery(wrong).errors.length > 0]).toEqual([wrong, true]);
  }
  const { selectors, grouped } = readQuery('sum by (le) (rate(a_bucket{b="c", d!="e"}[5m])) / b');
  expect([selectors, grouped]).toEqual([
    [
      { name: 'a_bucket', labels: ['b', 'd'] },
      { name: 'b', labels: [] },
    ],
    ['le'],
  ]);
});

describe('queries of alert rules and dashboard', async () => {
  let families: ReadonlyMap<string, ParsedFamily>;

  const database = await freshDatabase();
  const checkpoints = join(freshFolder(), 'checkpoints');
  const flags = [
    ...['--metrics', '127.0.0.1:0', '--processes', '2', '--allow-private', 'localhost 127.0.0.0/8'],
    ...['--checkpoint-file', checkpoints],
  ];
  // No server listens there, and every change is still to be delivered.
  const hook = ['--name', 'test', '--url', 'http://127.0.0.1:9/', '--from', 'oldest'];
  const db = await openDatabase(database.settings(), systemClock);
  await createFixture(db);
  await db.engine.close();
  const words = ['webhook', 'create', ...hook, '--allow-private', 'localhost 127.0.0.0/8', ...database.args];
  expect((await runAuthrealm([...words])).code).toBe(0);
  const served = await startServiceProcess({ database, scope: 'oidc-profile-infos:read', flags });
  const address = (await served.running.line(/^metrics on /)).slice('metrics on '.length);
  const token = await served.token();
  expect((await served.get('/nowhere', token)).status).toBe(404);
  const readMetrics = async () => readPrometheus(await (await fetch(address)).text());
  // A real error of the engine, so that the errors have a cause. A process that is overloaded is not ready without one.
  await database.query('alter table instance rename to elsewhere');
  do expect((await served.get('/readyz', token)).status).toBe(503);
  while (!(await readMetrics()).has('authrealm_errors_total'));
  await database.query('alter table elsewhere rename to instance');
  // A lag that was read before the first delivery is repeated for a second.
  const names = ['authrealm_webhook_delivery_duration_seconds', 'authrealm_webhook_lag_seconds'];
  do families = await readMetrics();
  while (!names.every((name) => families.has(name)));
  const withoutBackup = families;

  // A SQLite file of which there is a backup, served with a certificate: the listener of the metrics has none.
  const file = await freshDatabase('sqlite');
  const folder = freshFolder();
  const [cert, key] = ['cert', 'key'].map((name) => join(ROOT, `test/fixtures/localhost.${name}.pem`));
  await (await openDatabase(file.settings(), systemClock)).engine.close();
  expect((await runAuthrealm(['backup', '--into', folder, ...file.args])).code).toBe(0);
  const tls = ['--port', '0', '--metrics', '127.0.0.1:0', '--tls-cert', `${cert}`, '--tls-key', `${key}`];
  const secure = startCommand([AUTHREALM, 'serve', ...tls, ...file.args]);
  atEnd(() => secure.stop());
  const secureMetrics = (await secure.line(/^metrics on /)).slice('metrics on '.length);
  const upkeep = readPrometheus(await (await fetch(secureMetrics)).text());
  for (const { name } of [METRICS.backupAge, METRICS.certificateExpiry])
    families = new Map([...families, [name, upkeep.get(name) as ParsedFamily]]);

  /** Labels that Prometheus adds to each series. */
  const ADDED = ['instance', 'job'];

  function labelsOf(name: string): readonly string[] | undefined {
    const family = families.get(name) ?? families.get(name.replace(/_(?:bucket|sum|count)$/, ''));
    const samples = (family?.samples ?? []).filter((sample) => sample.name === name);
    if (samples.length === 0) return name === 'up' ? ADDED : undefined;
    return [...new Set(samples.flatMap(({ labels }) => Object.keys(labels))), ...ADDED];
  }

  test.each(EXPRESSIONS)('the query of %s uses metrics and labels that exist', (_, expression) => {
    const { selectors, grouped, errors } = readQuery(fillVariables(expression));
    expect(errors).toEqual([]);
    expect(selectors.length).toBeGreaterThan(0);
    for (const { name, labels } of selectors) {
      const existing = labelsOf(name);
      expect([name, existing]).toEqual([name, expect.anything()]);
      expect([name, [...labels, ...grouped].filter((label) => !existing?.includes(label))]).toEqual([
        name,
        [],
      ]);
    }
  });

  test('each route, status and code in a query exists', async () => {
    const document = (await (await fetch(`${served.url}/openapi.json`)).json()) as { paths: object };
    const routes = Object.keys(document.paths).map((path) => path.replaceAll(/\{(\w+)\}/g, ':$1'));
    const known: Readonly<Record<string, readonly string[]>> = {
      route: routes,
      status: ['2xx', '3xx', '4xx', '5xx'],
      code: [...Object.keys(FAULTS), ...Object.keys(GRANT_FAULTS)],
    };
    for (const [where, expression] of EXPRESSIONS) {
      for (const [, label = '', pattern = ''] of expression.matchAll(/\b(route|status|code)=~?"([^"]+)"/g)) {
        const chosen = known[label]?.filter((value) => new RegExp(`^(?:${pattern})$`).test(value));
        expect([where, pattern, (chosen?.length ?? 0) > 0]).toEqual([where, pattern, true]);
        if (label === 'code') expect([where, chosen?.length]).toEqual([where, pattern.split('|').length]);
      }
    }
  });

  test('the alert rule AuthrealmBackupMissing compares an existing metric with one that begins with a backup', () => {
    const { expr = '' } = rules.find(({ alert }) => alert === 'AuthrealmBackupMissing') ?? {};
    expect(readQuery(expr).selectors.map(({ name }) => withoutBackup.has(name))).toEqual([true, false]);
  });

  test('the variables of the dashboard use metrics that exist', () => {
    for (const { query } of dashboard.templating.list.slice(1)) {
      const [, name = ''] =
        /^label_values\((\w+)/.exec(typeof query === 'string' ? query : query.query) ?? [];
      expect([name, labelsOf(name)]).toEqual([name, expect.anything()]);
    }
  });

  test('the service reports exactly the metrics that are declared, with their kinds', () => {
    // PostgreSQL has its own.
    const absent: readonly string[] =
      database.address.engine === 'sqlite' ? [] : [METRICS.writeAheadLog.name];
    const declared = Object.values<MetricDeclaration>(METRICS).filter(({ name }) => !absent.includes(name));
    const reported = [...families].map(([name, { kind }]) => [name, kind]);
    expect(declared.map(({ name, kind }) => [name, kind]).sort()).toEqual(reported.sort());
  });
});

describe('the alert rules', () => {
  test.each(rules.map((rule) => [rule.alert, rule] as const))(
    'the alert rule %s is complete, and its texts use labels that its query keeps',
    (name, rule) => {
      expect(name).toMatch(/^Authrealm[A-Z]\w+$/);
      expect(['warning', 'critical']).toContain(rule.labels.severity);
      expect(rule.for ?? '0m').toMatch(/^\d+[sm]$/);
      const { runbook, ...texts } = rule.annotations;
      for (const text of Object.values(texts)) expect(text).toMatch(/\S{2}.*\.$/s);
      expect(runbook).toMatch(/^docs\/\S+\.md#[a-z-]+$/);
      // A label that the expression drops would be empty.
      const { selectors, grouped } = readQuery(rule.expr);
      const dropped = grouped.length > 0;
      for (const [, label = ''] of JSON.stringify(rule.annotations).matchAll(/\$labels\.(\w+)/g)) {
        if (dropped) expect(grouped).toContain(label);
      }
      expect(selectors.length).toBeGreaterThan(0);
    },
  );

  test('no alert rule has the name of another one', () => {
    const names = rules.map(({ alert }) => alert);
    expect(names).toEqual([...new Set(names)]);
  });
});

test('panels of the dashboard do not overlap, and have unique identifiers', () => {
  const cells = dashboard.panels.flatMap(({ gridPos: { x, y, w, h } }) =>
    Array.from({ length: w * h }, (_, at) => `${x + (at % w)} ${y + Math.floor(at / w)}`),
  );
  expect(new Set(cells).size).toBe(cells.length);
  for (const { gridPos } of dashboard.panels) expect(gridPos.x + gridPos.w).toBeLessThanOrEqual(24);
  const ids = dashboard.panels.map(({ id }) => id);
  expect(ids).toEqual([...new Set(ids)]);
});
