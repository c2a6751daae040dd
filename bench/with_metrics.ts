import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { lookupPaths } from '../test/support/population.ts';
import { fetchToken } from './access_token.ts';
import { fillByImport } from './import_rate.ts';
import { figures, load, median, medianRatio, restarting, runInterleaved, WARM_UP_SECONDS } from './load.ts';
import { startServer } from './server.ts';

/**
 * Compares the lookup rate of a service with metrics and rate limits per client and per address to that of a service without
 * them, on the same database file.
 */

const AUTHREALM = join(import.meta.dir, '../bin/authrealm');
const PORT = 18_083;
const PATHS = 20_000;
/** Above any load, so that every request is checked and none is rejected. */
const RATE = '1000000/1';

const { values: options } = parseArgs({
  options: {
    users: { type: 'string', default: '10000' },
    seconds: { type: 'string', default: '3' },
    rounds: { type: 'string', default: '10' },
    connections: { type: 'string', default: '64' },
  },
});

const folder = mkdtempSync(join(tmpdir(), 'authrealm-bench-'));
try {
  const users = Number(options.users);
  const file = join(folder, 'bench.db');
  const flags = ['--database', `sqlite:${file}`];
  await fillByImport(AUTHREALM, flags, users);
  const serve = [AUTHREALM, 'serve', '--base-url', 'http://127.0.0.1', ...flags];
  const metricsFlags = ['--metrics', '127.0.0.1:0', '--client-rate', RATE, '--address-rate', RATE];
  const withoutMetrics = await startServer([...serve, '--port', String(PORT)], PORT);
  const withMetrics = await startServer([...serve, '--port', String(PORT + 1), ...metricsFlags], PORT + 1);
  const token = await fetchToken(AUTHREALM, flags, withoutMetrics.url);
  const paths = join(folder, 'paths');
  writeFileSync(paths, lookupPaths(users, Math.min(PATHS, users * 2)).join('\n'));
  const plan = { connections: Number(options.connections), seconds: Number(options.seconds), paths, token };
  const prepare = restarting([withoutMetrics, withMetrics], { ...plan, seconds: WARM_UP_SECONDS });
  const loads = await runInterleaved(
    { rounds: Number(options.rounds), file, prepare },
    { without: () => load(withoutMetrics, plan), with: () => load(withMetrics, plan) },
  );
  await Promise.all([withoutMetrics.stop(), withMetrics.stop()]);
  console.log(
    JSON.stringify({
      users,
      ratio: medianRatio(loads.with, loads.without, 'requestsPerSecond'),
      cpuRatio: medianRatio(loads.with, loads.without, 'cpuMicros'),
      requestsPerSecond: median(figures(loads.without, 'requestsPerSecond')),
    }),
  );
} finally {
  rmSync(folder, { recursive: true, force: true });
}
