import { mkdirSync, mkdtempSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { cpus, tmpdir } from 'node:os';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { lookupPaths } from '../test/support/population.ts';
import { fetchToken } from './clients.ts';
import { fillBare, fillByImport } from './import_rate.ts';
import { assertSpread } from './key_spread.ts';
import {
  inTurn,
  type Load,
  type LoadPlan,
  load,
  median,
  medianOf,
  medianRatio,
  readThrough,
  WARM_UP_SECONDS,
} from './load.ts';
import { measureOperations } from './operations.ts';
import { sampleOf, startConstant, startNginx } from './references.ts';
import { type Result, type Run, report } from './report.ts';
import { answered, type BenchServer, startServer } from './server.ts';

const AUTHREALM = join(import.meta.dir, '../bin/authrealm');
const PATHS = 20_000;
const PORT = 18_080;

const { values: given } = parseArgs({
  options: {
    users: { type: 'string', default: '10000,1000000' },
    seconds: { type: 'string', default: '3' },
    rounds: { type: 'string', default: '6' },
    connections: { type: 'string', default: '64' },
    out: { type: 'string', default: join(import.meta.dir, 'results') },
  },
});

const plan = {
  seconds: Number(given.seconds),
  rounds: Number(given.rounds),
  connections: Number(given.connections),
};

/** Milliseconds from the start of the process to the first lookup that is answered with 200, the median of five. */
async function firstAnswerMs(serve: readonly string[], path: string, token: string): Promise<number> {
  const headers = { Authorization: `Bearer ${token}` };
  const times: number[] = [];
  for (let round = 0; round < 5; round += 1) {
    const child = Bun.spawn([...serve], { stdio: ['ignore', 'ignore', 'inherit'] });
    const { answer, ms } = await answered(() => fetch(`http://127.0.0.1:${PORT}${path}`, { headers }));
    if (answer.status !== 200) throw new Error(`the first answer was ${answer.status}`);
    times.push(ms);
    child.kill('SIGTERM');
    await child.exited;
  }
  return median(times);
}

/** The three servers, each under the same load, round by round in turn. */
async function interleaved(
  servers: readonly BenchServer[],
  asked: LoadPlan,
  file: string,
): Promise<Load[][]> {
  await readThrough(file);
  for (const server of servers) await load(server.url, { ...asked, seconds: WARM_UP_SECONDS });
  return inTurn(
    { rounds: plan.rounds, file },
    servers.map(
      ({ url }) =>
        () =>
          load(url, asked),
    ),
  );
}

async function measure(users: number): Promise<Result> {
  const folder = mkdtempSync(join(tmpdir(), 'authrealm-bench-'));
  try {
    const file = join(folder, 'bench.db');
    const flags = ['--database', `sqlite:${file}`];
    const imported = await fillByImport(AUTHREALM, flags, users);
    const bare = fillBare(join(folder, 'bare.db'), users);
    const serve = [AUTHREALM, 'serve', '--port', String(PORT), ...flags];
    const service = await startServer(serve, PORT);
    const token = await fetchToken(AUTHREALM, flags, service.url);
    const all = lookupPaths(users, Math.min(PATHS, users * 2));
    const paths = join(folder, 'paths');
    writeFileSync(paths, all.join('\n'));
    const databaseMb = statSync(file).size / 1e6;
    const widestGap = assertSpread(file, all);
    const headers = { Authorization: `Bearer ${token}` };
    const sample = await sampleOf(await fetch(`${service.url}${all[0]}`, { headers }));
    const nginx = await startNginx(folder, PORT + 1, sample);
    const constant = await startConstant(folder, PORT + 2, sample);
    const asked = { ...plan, paths, token };
    const loads = await interleaved([service, nginx, constant], asked, file);
    const [lookup = [], nginxLoad = [], constantLoad = []] = loads;
    const memory = service.memory();
    for (const server of [nginx, constant]) await server.stop();
    const operations = await measureOperations(service.url, {
      ...asked,
      users,
      folder,
      file,
    });
    await service.stop();
    const firstMs = await firstAnswerMs(serve, all[0] ?? '', token);
    return {
      users,
      lookup: medianOf(lookup),
      nginx: medianOf(nginxLoad),
      ofNginx: medianRatio(lookup, nginxLoad, 'requestsPerSecond'),
      constant: medianOf(constantLoad),
      ofConstant: medianRatio(lookup, constantLoad, 'requestsPerSecond'),
      ...memory,
      firstAnswerMs: firstMs,
      databaseMb,
      widestGap,
      importedPerSecond: imported.recordsPerSecond,
      importAnonymousMb: imported.anonymousMb,
      bareInsertsPerSecond: bare,
      operations,
    };
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

const results: Result[] = [];
for (const users of given.users.split(',').map(Number)) results.push(await measure(users));
const run: Run = {
  at: new Date(Date.now()).toISOString(),
  machine: { cpu: cpus()[0]?.model ?? 'unknown', cores: cpus().length },
  ...plan,
  results,
};
mkdirSync(given.out, { recursive: true });
console.log(report(run, given.out));
