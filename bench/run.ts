import { mkdirSync, mkdtempSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { cpus, tmpdir } from 'node:os';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { lookupPaths } from '../test/support/population.ts';
import { fetchToken } from './access_token.ts';
import { fillBare, fillByImport } from './import_rate.ts';
import { assertSpread } from './key_spread.ts';
import {
  type Load,
  type LoadPlan,
  load,
  median,
  medianOf,
  medianRatio,
  readIntoPageCache,
  runInterleaved,
  WARM_UP_SECONDS,
} from './load.ts';
import { measureOperations } from './operations.ts';
import { startConstant, startNginx, toSample } from './reference_servers.ts';
import { type Result, type Run, report } from './report.ts';
import { type BenchServer, startServer, waitForResponse } from './server.ts';

const AUTHREALM = join(import.meta.dir, '../bin/authrealm');
const PATHS = 20_000;
const PORT = 18_080;

const { values: options } = parseArgs({
  options: {
    users: { type: 'string', default: '10000,1000000' },
    seconds: { type: 'string', default: '3' },
    rounds: { type: 'string', default: '6' },
    connections: { type: 'string', default: '64' },
    out: { type: 'string', default: join(import.meta.dir, 'results') },
  },
});

const plan = {
  seconds: Number(options.seconds),
  rounds: Number(options.rounds),
  connections: Number(options.connections),
};

/** Milliseconds from the start of the process to the first 200 response to a lookup; the median of five starts. */
async function measureFirstResponse(serve: readonly string[], path: string, token: string): Promise<number> {
  const headers = { Authorization: `Bearer ${token}` };
  const times: number[] = [];
  for (let round = 0; round < 5; round += 1) {
    const child = Bun.spawn([...serve], { stdio: ['ignore', 'ignore', 'inherit'] });
    const { response, ms } = await waitForResponse(() =>
      fetch(`http://127.0.0.1:${PORT}${path}`, { headers }),
    );
    if (response.status !== 200) throw new Error(`the first response was ${response.status}`);
    times.push(ms);
    child.kill('SIGTERM');
    await child.exited;
  }
  return median(times);
}

/** The loads of the servers under the same requests, interleaved in rounds. */
async function measureInterleaved(
  servers: readonly BenchServer[],
  lookupPlan: LoadPlan,
  file: string,
): Promise<Load[][]> {
  await readIntoPageCache(file);
  for (const server of servers) await load(server.url, { ...lookupPlan, seconds: WARM_UP_SECONDS });
  return runInterleaved(
    { rounds: plan.rounds, file },
    servers.map(
      ({ url }) =>
        () =>
          load(url, lookupPlan),
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
    const lookups = lookupPaths(users, Math.min(PATHS, users * 2));
    const paths = join(folder, 'paths');
    writeFileSync(paths, lookups.join('\n'));
    const databaseMb = statSync(file).size / 1e6;
    const widestGap = assertSpread(file, lookups);
    const headers = { Authorization: `Bearer ${token}` };
    const sample = await toSample(await fetch(`${service.url}${lookups[0]}`, { headers }));
    const nginx = await startNginx(folder, PORT + 1, sample);
    const constant = await startConstant(folder, PORT + 2, sample);
    const lookupPlan = { ...plan, paths, token };
    const loads = await measureInterleaved([service, nginx, constant], lookupPlan, file);
    const [lookup = [], nginxLoad = [], constantLoad = []] = loads;
    const memory = service.memory();
    for (const server of [nginx, constant]) await server.stop();
    const operations = await measureOperations(service.url, {
      ...lookupPlan,
      users,
      folder,
      file,
    });
    await service.stop();
    const firstResponseMs = await measureFirstResponse(serve, lookups[0] ?? '', token);
    return {
      users,
      lookup: medianOf(lookup),
      nginx: medianOf(nginxLoad),
      ratioToNginx: medianRatio(lookup, nginxLoad, 'requestsPerSecond'),
      constant: medianOf(constantLoad),
      ratioToConstant: medianRatio(lookup, constantLoad, 'requestsPerSecond'),
      ...memory,
      firstResponseMs,
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
for (const users of options.users.split(',').map(Number)) results.push(await measure(users));
const run: Run = {
  at: new Date(Date.now()).toISOString(),
  machine: { cpu: cpus()[0]?.model ?? 'unknown', cores: cpus().length },
  ...plan,
  results,
};
mkdirSync(options.out, { recursive: true });
console.log(report(run, options.out));
