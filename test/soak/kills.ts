import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { importTarget } from '../support/killed_import.ts';
import type { KillTarget } from '../support/killed_process.ts';
import { writersTarget } from '../support/killed_writers.ts';
import { freshSeed, seededRandom } from '../support/random.ts';

const USERS = 20_000;

const { values: options } = parseArgs({
  options: { rounds: { type: 'string', default: '50' }, seed: { type: 'string' } },
});
const rounds = Number(options.rounds);
const seed = Number(options.seed ?? freshSeed());
const chance = seededRandom(seed);
console.log(`seed ${seed}`);

const folder = mkdtempSync(join(tmpdir(), 'authrealm-kills-'));
const targets = [await importTarget(folder, USERS), await writersTarget(folder)];
const acknowledged = new Map<KillTarget, number>();
let failedRounds = 0;
for (let round = 1; round <= rounds; round += 1) {
  for (const target of targets) {
    const outcome = await target.round(chance);
    acknowledged.set(target, (acknowledged.get(target) ?? 0) + outcome.acknowledged);
    if (outcome.problems.length > 0) failedRounds += 1;
    for (const complaint of outcome.problems) console.log(`round ${round}, ${target.name}: ${complaint}`);
  }
  if (round % 10 === 0) console.log(`${round} of ${rounds} rounds`);
}
const counts = targets.map((target) => `${target.name} ${rounds} (${acknowledged.get(target)} acknowledged)`);
console.log(`kill -9: ${counts.join(', ')}, ${failedRounds} rounds with complaints, seed ${seed}`);
if (failedRounds === 0) rmSync(folder, { recursive: true });
else console.log(`the databases are kept in ${folder}`);
process.exitCode = failedRounds === 0 ? 0 : 1;
