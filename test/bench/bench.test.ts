import { expect, setDefaultTimeout, test } from 'bun:test';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { type CitusRun, citusMarkdown } from '../../bench/citus_report.ts';
import { type MixedRun, mixedMarkdown } from '../../bench/mixed_report.ts';
import { summary, withBlocks } from '../../bench/pages.ts';
import { type PostgresRun, postgresMarkdown } from '../../bench/postgres_report.ts';
import { markdown, type Run } from '../../bench/report.ts';
import {
  CITUS_OPERATIONS,
  CITUS_SOURCES,
  type CitusOperation,
  citusRow,
  LOOKUP_ROWS,
  OPERATION_ROWS,
  POSTGRES_ROWS,
} from '../../bench/rows.ts';
import { type SignInRun, signInMarkdown } from '../../bench/sign_in_report.ts';
import { runCommand } from '../support/processes.ts';
import { freshFolder } from '../support/service.ts';

/** Every measurement of the benchmarks, once and at 1,000 users, with the load generators of Debian. No figure is compared. */

setDefaultTimeout(600_000);

const BENCH = fileURLToPath(new URL('../../bench/', import.meta.url));

/** No package has Citus: the folder with a build of it. */
const CITUS = process.env.AUTHREALM_TEST_CITUS;

async function runQuickly<T>(script: string, result: string, environment = {}): Promise<T> {
  const folder = freshFolder();
  const command = [process.execPath, join(BENCH, script), '--quick', '--out', folder];
  const { code, stderr } = await runCommand(command, environment);
  expect([stderr.split('\n').filter((line) => line.startsWith('error')), code]).toEqual([[], 0]);
  return JSON.parse(readFileSync(join(folder, result), 'utf8')) as T;
}

test('the benchmark on SQLite measures rate, processor time and reads of each row', async () => {
  const run = await runQuickly<Run>('run.ts', 'lookups.json');
  const [result] = run.results;
  if (!result) throw new Error('the run has no result');
  const rows = Object.keys({ ...LOOKUP_ROWS, ...OPERATION_ROWS });
  expect(Object.keys(result.loads)).toEqual(expect.arrayContaining(rows));
  for (const [row, loads] of Object.entries(result.loads)) {
    expect([row, loads.length]).toEqual([row, run.rounds]);
    for (const load of loads) {
      expect([row, load.requestsPerSecond > 0, (load.cpuMicros ?? 0) > 0]).toEqual([row, true, true]);
      expect([row, load.readCalls !== undefined]).toEqual([row, true]);
    }
  }
  expect(result.mappedShare).toBe(1);
  expect(markdown(run)).toContain('| lookups by ID |');
  const page = 'before\n<!-- bench: summary -->\nold\n<!-- end -->\nafter';
  const written = withBlocks(page, { summary: summary(run, undefined) });
  expect(written).toMatch(
    /^before\n<!-- bench: summary -->\n\n\| {2}\| 1,000 users \|\n[\s\S]*<!-- end -->\nafter$/,
  );
  expect(written.split('\n').filter((line) => line.startsWith('|'))).toHaveLength(2 + 6);
  expect(withBlocks(page, { summary: undefined })).toBe(page);
});

test('the benchmark on PostgreSQL measures the processor time of both processes', async () => {
  const run = await runQuickly<PostgresRun>('postgres.ts', 'postgres.json');
  const rows = Object.keys(POSTGRES_ROWS);
  expect(Object.keys(run.loads)).toEqual(expect.arrayContaining(rows));
  for (const [row, loads] of Object.entries(run.loads)) {
    expect([row, loads.length]).toEqual([row, run.rounds]);
    for (const load of loads) {
      expect([row, load.requestsPerSecond > 0, (load.databaseCpuMicros ?? 0) > 0]).toEqual([row, true, true]);
      expect([row, load.cpuMicros !== undefined]).toEqual([row, !/pgbench|driver/.test(row)]);
    }
  }
  expect(postgresMarkdown(run)).toContain('| lookups by ID, 64 callers |');
});

test.skipIf(CITUS === undefined)(
  'the benchmark on Citus measures the processor time of the service and of all nodes',
  async () => {
    const run = await runQuickly<CitusRun>('citus.ts', 'citus.json', { AUTHREALM_TEST_CITUS: CITUS });
    const operations = Object.keys(CITUS_OPERATIONS) as CitusOperation[];
    for (const row of CITUS_SOURCES.flatMap((source) => operations.map((name) => citusRow(source, name)))) {
      const [load] = run.loads[row] ?? [];
      expect([row, (load?.cpuMicros ?? 0) > 0, (load?.databaseCpuMicros ?? 0) > 0]).toEqual([
        row,
        true,
        true,
      ]);
    }
    expect(citusMarkdown(run)).toContain('| lookups by ID, 64 callers |');
  },
);

test('the benchmark of lookups concurrently with other operations measures each of the chosen ones', async () => {
  const folder = freshFolder();
  const command = [
    process.execPath,
    join(BENCH, 'mixed.ts'),
    '--quick',
    '--only',
    'list-changes,stream-changes',
    '--out',
    folder,
  ];
  const { code } = await runCommand(command, {});
  expect(code).toBe(0);
  const run = JSON.parse(readFileSync(join(folder, 'mixed-sqlite.json'), 'utf8')) as MixedRun;
  const names = ['list-changes', 'stream-changes'];
  expect(run.rows.map(({ name }) => name).sort()).toEqual(names);
  for (const { name, ratios, failedShare } of run.rows)
    expect([name, (ratios[0] ?? 0) > 0, failedShare]).toEqual([name, true, 0]);
  expect(mixedMarkdown(run)).toContain('| stream-changes |');
});

test('the benchmark of sign-in measures checks of each hash, and lookups concurrently with checks', async () => {
  const run = await runQuickly<SignInRun>('sign_in.ts', 'sign-in-sqlite.json');
  const checked = ['own', 'ownAlone', 'bcrypt10', 'bcrypt12'];
  const mixed = ['quiet', 'fullQueue', 'quietAgain', 'half', 'halfFullQueue', 'halfHalfChecks', 'halfChecks'];
  expect(Object.keys(run.loads)).toEqual([...checked, ...mixed]);
  for (const [row, [load]] of Object.entries(run.loads))
    expect([row, (load?.requestsPerSecond ?? 0) > 0]).toEqual([row, true]);
  for (const row of checked)
    expect(run.loads[row as keyof typeof run.loads]?.[0]?.cpuMicros).toBeGreaterThan(0);
  expect(run.checks.fullQueue?.[0]?.refused).toBeGreaterThan(0);
  expect(signInMarkdown(run)).toContain('| 64 callers / full queue |');
});
