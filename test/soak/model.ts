import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { createSqlite } from '../support/database.ts';
import { freshSeed, seededRandom } from '../support/random.ts';
import { runRandomWrites } from './random_service.ts';

/**
 * Random writes with random crashes, checked against a model. The seed decides the requests and when processes are killed; how
 * the requests of several clients interleave depends on the machine, so a seed does not reproduce a run exactly.
 */
const { values: options } = parseArgs({
  options: {
    operations: { type: 'string', default: '10000' },
    kills: { type: 'string', default: '40' },
    seed: { type: 'string' },
  },
});
const seed = Number(options.seed ?? freshSeed());
console.log(`seed ${seed}`);
const folder = mkdtempSync(join(tmpdir(), 'authrealm-model-'));
const operations = Number(options.operations);
const kills = Number(options.kills);
const { complaints, count } = await runRandomWrites({
  database: await createSqlite(join(folder, 'model.db')),
  logFile: join(folder, 'model.log'),
  operations,
  kills,
  clients: 6,
  processes: 2,
  chance: seededRandom(seed),
});
for (const complaint of complaints) console.log(complaint);
console.log(
  `${operations} operations, ${kills} kill -9: ${count.acknowledged} writes acknowledged, ${count.refused} refused, ${count.unknown} unknown, ` +
    `${complaints.length} complaints, seed ${seed}`,
);
if (complaints.length === 0) rmSync(folder, { recursive: true });
else console.log(`the database is kept in ${folder}`);
process.exitCode = complaints.length === 0 ? 0 : 1;
