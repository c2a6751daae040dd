import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { sqliteAt } from '../support/database.ts';
import { freshSeed, seededRandom } from '../support/random.ts';
import { runAtRandom } from './random_service.ts';

/**
 * Random writes with random crashes, held against a model. The seed decides what is asked for and when a process dies;
 * how the requests of several clients meet is the machine's doing, so that a seed leads close to a finding, not onto it.
 */
const { values: given } = parseArgs({
  options: {
    operations: { type: 'string', default: '10000' },
    kills: { type: 'string', default: '40' },
    seed: { type: 'string' },
  },
});
const seed = Number(given.seed ?? freshSeed());
console.log(`seed ${seed}`);
const folder = mkdtempSync(join(tmpdir(), 'authrealm-model-'));
const operations = Number(given.operations);
const kills = Number(given.kills);
const { complaints, count } = await runAtRandom({
  database: sqliteAt(join(folder, 'model.db')),
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
else console.log(`what they left is in ${folder}`);
process.exitCode = complaints.length === 0 ? 0 : 1;
