import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { lookupPaths } from '../test/support/population.ts';
import { fetchToken } from './clients.ts';
import { fillByImport } from './import_rate.ts';
import { inTurn, load, medianOf, medianRatio, readThrough, WARM_UP_SECONDS } from './load.ts';
import { startServer } from './server.ts';

/**
 * Lookups of a service that counts them, and judges each by the rates of its client and its address, beside those of one
 * that does neither, over the same file.
 */

const AUTHREALM = join(import.meta.dir, '../bin/authrealm');
const PORT = 18_083;
const PATHS = 20_000;
/** More than any load comes to, so that every request is judged and none is refused. */
const RATE = '1000000/1';

const { values: given } = parseArgs({
  options: {
    users: { type: 'string', default: '10000' },
    seconds: { type: 'string', default: '3' },
    rounds: { type: 'string', default: '10' },
    connections: { type: 'string', default: '64' },
  },
});

const folder = mkdtempSync(join(tmpdir(), 'authrealm-bench-'));
try {
  const users = Number(given.users);
  const file = join(folder, 'bench.db');
  const flags = ['--database', `sqlite:${file}`];
  await fillByImport(AUTHREALM, flags, users);
  const serve = [AUTHREALM, 'serve', '--base-url', 'http://127.0.0.1', ...flags];
  const watching = ['--metrics-port', '0', '--client-rate', RATE, '--address-rate', RATE];
  const plain = await startServer([...serve, '--port', String(PORT)], PORT);
  const watched = await startServer([...serve, '--port', String(PORT + 1), ...watching], PORT + 1);
  const token = await fetchToken(AUTHREALM, flags, plain.url);
  const paths = join(folder, 'paths');
  writeFileSync(paths, lookupPaths(users, Math.min(PATHS, users * 2)).join('\n'));
  const asked = { connections: Number(given.connections), seconds: Number(given.seconds), paths, token };
  await readThrough(file);
  for (const { url } of [plain, watched]) await load(url, { ...asked, seconds: WARM_UP_SECONDS });
  const [without = [], within = []] = await inTurn(
    { rounds: Number(given.rounds), file },
    [plain, watched].map(
      ({ url }) =>
        () =>
          load(url, asked),
    ),
  );
  await Promise.all([plain.stop(), watched.stop()]);
  console.log(
    JSON.stringify({
      users,
      kept: medianRatio(within, without, 'requestsPerSecond'),
      plain: medianOf(without),
      watched: medianOf(within),
    }),
  );
} finally {
  rmSync(folder, { recursive: true, force: true });
}
