import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { PGBENCH } from '../../bench/pgbench.ts';
import { freshSeed } from '../support/random.ts';

/** A script of this folder. It exits with 0 on success; the last line of its standard output is the result. */
interface Check {
  readonly name: string;
  readonly arguments: readonly string[];
  /** Commands that must be installed. */
  readonly needs: readonly string[];
  readonly minutesMax: number;
}

const CHECKS: readonly Check[] = [
  { name: 'kills', arguments: ['--rounds', '50', '--seed', 'SEED'], needs: [], minutesMax: 15 },
  { name: 'postgres_kills', arguments: ['--rounds', '20', '--seed', 'SEED'], needs: [], minutesMax: 10 },
  { name: 'model', arguments: ['--seed', 'SEED'], needs: [], minutesMax: 10 },
  { name: 'fuzz', arguments: ['--seed', 'SEED'], needs: [], minutesMax: 15 },
  { name: 'fuzz', arguments: ['--engine', 'postgres', '--seed', 'SEED'], needs: [], minutesMax: 30 },
  { name: 'fuzz', arguments: ['--seed', 'SEED', '--minutes', '10'], needs: [], minutesMax: 25 },
  {
    name: 'torture',
    arguments: ['--engine', 'sqlite', '--rounds', '100', '--seed', 'SEED'],
    needs: ['cc', 'mount'],
    minutesMax: 60,
  },
  {
    name: 'torture',
    arguments: ['--engine', 'postgres', '--rounds', '100', '--seed', 'SEED'],
    needs: ['cc'],
    minutesMax: 60,
  },
  {
    name: 'torture',
    arguments: ['--engine', 'citus', '--rounds', '50', '--seed', 'SEED'],
    needs: ['cc'],
    minutesMax: 60,
  },
  { name: 'backups', arguments: ['--seed', 'SEED'], needs: [], minutesMax: 10 },
  { name: 'release', arguments: [], needs: ['apt-get', 'dpkg-deb'], minutesMax: 30 },
  { name: 'mutations', arguments: [], needs: [], minutesMax: 90 },
  { name: 'roundtrip', arguments: [], needs: [], minutesMax: 40 },
  ...['sqlite', 'postgres'].map((engine) => ({
    name: 'csv_import',
    arguments: ['--engine', engine],
    needs: [],
    minutesMax: 40,
  })),
  { name: 'copy', arguments: [], needs: [], minutesMax: 40 },
  { name: 'copy', arguments: ['--engine', 'citus'], needs: [], minutesMax: 60 },
  { name: 'doctor', arguments: [], needs: [], minutesMax: 10 },
  { name: 'overload', arguments: [], needs: [], minutesMax: 25 },
  { name: 'worker_pool', arguments: [], needs: [], minutesMax: 5 },
  { name: 'hash_costs', arguments: [], needs: [], minutesMax: 5 },
  { name: 'webhooks', arguments: [], needs: [], minutesMax: 30 },
  ...['sqlite', 'postgres', 'citus'].flatMap((engine) =>
    ['check', 'tokens', 'oidc', 'self_signup'].map((call) => ({
      name: 'sign_in_times',
      arguments: ['--engine', engine, '--call', call, '--seed', 'SEED'],
      needs: [],
      minutesMax: 60,
    })),
  ),
  ...['sqlite', 'postgres'].map((engine) => ({
    name: 'slow_providers',
    arguments: ['--engine', engine],
    needs: ['wrk', 'taskset'],
    minutesMax: 10,
  })),
  { name: 'first_view', arguments: ['--seed', 'SEED'], needs: [], minutesMax: 15 },
  { name: 'provider_journey', arguments: [], needs: ['java', 'mvn', 'unzip'], minutesMax: 15 },
  { name: 'moving_in', arguments: [], needs: ['java', 'mvn', 'unzip', 'go', 'cc', 'npm'], minutesMax: 20 },
  {
    name: 'generated_clients',
    arguments: [],
    needs: ['npm', 'python3', 'go', 'java', 'mvn'],
    minutesMax: 30,
  },
  { name: 'provider_clients', arguments: [], needs: ['go'], minutesMax: 15 },
  { name: 'bench', arguments: [], needs: ['wrk', 'nginx', 'taskset'], minutesMax: 60 },
  { name: 'metrics_cost', arguments: [], needs: ['wrk', 'taskset'], minutesMax: 10 },
  { name: 'bench_postgres', arguments: [], needs: ['wrk', PGBENCH], minutesMax: 25 },
];

const names = CHECKS.map(({ name }) => name);
const { values: options } = parseArgs({
  options: { only: { type: 'string', multiple: true, default: names }, seed: { type: 'string' } },
});
const unknown = options.only.filter((name) => !names.includes(name));
if (unknown.length > 0) {
  console.error(`unknown check ${unknown.join(', ')}; choose from ${[...new Set(names)].join(', ')}`);
  process.exit(2);
}
const seed = options.seed ?? String(freshSeed());
console.log(`seed ${seed}`);

let failed = 0;
const chosen = CHECKS.filter(({ name }) => options.only.includes(name));
for (const check of chosen) {
  const start = performance.now();
  const { passed, result, output } = await runCheck(check);
  const seconds = Math.round((performance.now() - start) / 1000);
  console.log(`${check.name}: ${result}, ${seconds} s, ${passed ? 'ok' : 'FAILED'}`);
  if (passed) continue;
  failed += 1;
  if (output !== '') console.error(output);
}
console.log(`${chosen.length - failed} passed, ${failed} failed`);
process.exitCode = failed === 0 ? 0 : 1;

interface Outcome {
  readonly passed: boolean;
  readonly result: string;
  /** Standard output and standard error. */
  readonly output: string;
}

async function runCheck({ name, arguments: words, needs, minutesMax }: Check): Promise<Outcome> {
  const missing = needs.filter((command) => !Bun.which(command));
  if (missing.length > 0)
    return failure(`needs ${missing.join(', ')}: apt-get install -y wrk nginx util-linux gcc libc6-dev`);
  const script = join(import.meta.dir, `${name}.ts`);
  if (!existsSync(script)) return failure(`${script} does not exist`);
  const command = [process.execPath, script, ...words.map((word) => (word === 'SEED' ? seed : word))];
  // A process group of its own, so that its children are killed with it.
  const child = Bun.spawn(command, { stdio: ['ignore', 'pipe', 'pipe'], detached: true });
  let isLate = false;
  const timer = setTimeout(() => {
    isLate = true;
    process.kill(-child.pid, 'SIGKILL');
  }, minutesMax * 60_000);
  const streams = [new Response(child.stdout).text(), new Response(child.stderr).text()];
  const [stdout = '', stderr = ''] = await Promise.all(streams);
  const code = await child.exited;
  clearTimeout(timer);
  const result = isLate
    ? `not finished after ${minutesMax} minutes`
    : (stdout.trim().split('\n').at(-1) ?? '');
  return { passed: code === 0, result, output: `${stdout}${stderr}` };
}

function failure(result: string): Outcome {
  return { passed: false, result, output: '' };
}
