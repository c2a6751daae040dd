import { existsSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { createTemplate } from '../../test/support/database.ts';
import { RUN_FOLDER } from '../../test/support/folder.ts';
import { endServers, SHARED, startServer } from '../../test/support/postgres_server.ts';
import { appendResults, errorsOutsideTests, MEASURED, parseReport, readSeconds, SECONDS } from './results.ts';
import { type Engine, type Group, groupOf, ROOT, type Suite } from './suites.ts';

/** Runs suites by `bun test`, one process after the other. */

/** Bounds a hanging test; on a busy machine a healthy one may take minutes. */
export const TEST_MS_MAX = 300_000;

/** The number of suites of a group that run at the same time. */
const PARALLEL: Readonly<Record<Group, number>> = {
  parallel: 3,
  browser: 4,
  serial: 2,
  durability: 1,
  distro: 2,
};
/** Every node of a cluster is a server. */
const PARALLEL_ON_CITUS: Partial<Record<Group, number>> = { parallel: 2, serial: 1 };

const ENGINES: readonly Engine[] = ['sqlite', 'postgres', 'citus'];
const DEBIAN_POSTGRES = '/usr/lib/postgresql/15/bin';

/** `failed`: tests failed, and the results name each. `broken`: `bun test` failed without a failed test, or could not be run. */
export type Outcome = 'passed' | 'failed' | 'broken';

/** Runs suites. Their results, seconds and shared artefacts are in the folder. */
export async function runSuites(suites: readonly Suite[], folder: string): Promise<Outcome> {
  const runAll = async (groups: readonly Group[]) => {
    const outcomes: Outcome[] = [];
    for (const group of groups) outcomes.push(...(await runGroup(group, suites, folder)));
    return outcomes;
  };
  try {
    // They wait for disks and processes most of the time.
    const [waiting, others] = await Promise.all([
      runAll(['durability', 'distro']),
      runAll(['parallel', 'browser']),
    ]);
    const outcomes = [...waiting, ...others, ...(await runAll(['serial']))];
    return (['broken', 'failed'] as const).find((each) => outcomes.includes(each)) ?? 'passed';
  } finally {
    await endPostgres();
  }
}

async function runGroup(group: Group, suites: readonly Suite[], folder: string): Promise<readonly Outcome[]> {
  const members = suites.filter(({ path }) => groupOf(path) === group);
  if (members.length > 0 && !providePackages(group)) return ['broken'];
  const outcomes: Outcome[] = [];
  for (const engine of ENGINES) {
    const paths = members.filter((suite) => suite.engine === engine).map(({ path }) => path);
    if (paths.length > 0) outcomes.push(await runFiles(group, engine, { paths, folder }));
  }
  return outcomes;
}

/** Installs what the suites of a group need from Debian. */
function providePackages(group: Group): boolean {
  if (group !== 'durability' && group !== 'distro') return true;
  return Bun.spawnSync(['bash', join(ROOT, '.ci/packages'), group], { stdout: 'ignore', stderr: 'inherit' })
    .success;
}

/** The port of the server that the suites on PostgreSQL share. */
let port: Promise<number> | undefined;

async function startPostgres(): Promise<number> {
  const server = await startServer(SHARED);
  await createTemplate(server);
  return server.port;
}

async function endPostgres(): Promise<void> {
  port = undefined;
  await endServers();
  // With the key of the template.
  rmSync(RUN_FOLDER, { recursive: true, force: true });
}

/** Runs `bun test` once. */
async function runFiles(
  group: Group,
  engine: Engine,
  { paths, folder }: { readonly paths: readonly string[]; readonly folder: string },
): Promise<Outcome> {
  if (engine === 'postgres') port ??= startPostgres();
  const report = join(folder, `${group}-${engine}.xml`);
  rmSync(report, { force: true });
  // Others print at the same time.
  const isWaiting = group === 'durability' || group === 'distro';
  const parallel = (engine === 'citus' && PARALLEL_ON_CITUS[group]) || PARALLEL[group];
  const timings = join(folder, 'timings.json');
  writeFileSync(timings, JSON.stringify({ version: 1, files: usualMs(engine) }));
  const options = [
    ...[`--timeout=${TEST_MS_MAX}`, '--reporter=junit', `--reporter-outfile=${report}`],
    // The slowest files start first.
    `--timings=${timings}`,
  ];
  const words = ['test', ...options, `--parallel=${parallel}`, ...paths.map((path) => `./${path}`)];
  // Both streams as one, so that a failure is next to its test.
  const child = Bun.spawn(['sh', '-c', 'exec "$@" 2>&1', 'sh', process.execPath, ...words], {
    cwd: ROOT,
    env: {
      ...process.env,
      AUTHREALM_TEST_ENGINE: engine,
      AUTHREALM_TEST_ARTEFACTS: folder,
      AUTHREALM_TEST_FILE_SECONDS: join(folder, SECONDS),
      ...(engine === 'postgres' && { AUTHREALM_TEST_POSTGRES: String(await port) }),
      ...(group === 'distro' && { AUTHREALM_TEST_POSTGRES_BIN: DEBIAN_POSTGRES }),
    },
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  const output = await outputOf(child.stdout, isWaiting);
  const isPassing = (await child.exited) === 0;
  const results = parseReport(existsSync(report) ? readFileSync(report, 'utf8') : '', engine);
  const missing = paths.filter((path) => !results.some((result) => result.path === path));
  const errors = errorsOutsideTests(output);
  const all = [...results, ...missing.map((path) => ({ path, engine, passed: 0, failed: [] }))].map(
    (result) => {
      const reason = errors.get(result.path) ?? (missing.includes(result.path) ? '' : undefined);
      if (reason === undefined) return result;
      return { ...result, failed: [...result.failed, { title: '(outside of a test)', reason }] };
    },
  );
  appendResults(folder, all);
  if (all.some((result) => result.failed.length > 0)) return 'failed';
  return isPassing ? 'passed' : 'broken';
}

/** The milliseconds that each file takes on an engine, as it was measured. */
function usualMs(engine: Engine): Readonly<Record<string, number>> {
  const rows = readSeconds(join(ROOT, MEASURED)).filter((row) => row.engine === engine);
  return Object.fromEntries(rows.map(({ path, wall }) => [path, Math.round(wall * 1_000)]));
}

/** Reads what a run prints, and prints it: at once, or when the run has ended. */
async function outputOf(stream: ReadableStream<Uint8Array>, isWaiting: boolean): Promise<string> {
  const decoder = new TextDecoder();
  let text = '';
  for await (const chunk of stream) {
    const piece = decoder.decode(chunk, { stream: true });
    text += piece;
    if (!isWaiting) await print(piece);
  }
  if (isWaiting) await print(text);
  return text;
}

/** Prints a text to the end: `console.log` does not wait for a slow reader. */
function print(text: string): Promise<void> {
  return new Promise((done) => process.stdout.write(text, () => done()));
}
