import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { importTarget } from '../support/killed_import.ts';
import type { KillTarget } from '../support/killed_process.ts';
import { writersTarget } from '../support/killed_writers.ts';
import { freshSeed, seededRandom } from '../support/random.ts';

const USERS = 20_000;

const { values: given } = parseArgs({
  options: { rounds: { type: 'string', default: '50' }, seed: { type: 'string' } },
});
const rounds = Number(given.rounds);
const seed = Number(given.seed ?? freshSeed());
const chance = seededRandom(seed);
console.log(`seed ${seed}`);

const folder = mkdtempSync(join(tmpdir(), 'authrealm-kills-'));
const victims = [await importTarget(folder, USERS), await writersTarget(folder)];
const acknowledged = new Map<KillTarget, number>();
let ill = 0;
for (let round = 1; round <= rounds; round += 1) {
  for (const victim of victims) {
    const aftermath = await victim.round(chance);
    acknowledged.set(victim, (acknowledged.get(victim) ?? 0) + aftermath.acknowledged);
    if (aftermath.problems.length > 0) ill += 1;
    for (const complaint of aftermath.problems) console.log(`round ${round}, ${victim.name}: ${complaint}`);
  }
}
const counts = victims.map((victim) => `${victim.name} ${rounds} (${acknowledged.get(victim)} acknowledged)`);
console.log(`kill -9: ${counts.join(', ')}, ${ill} with complaints, seed ${seed}`);
if (ill === 0) rmSync(folder, { recursive: true });
else console.log(`what they left is in ${folder}`);
process.exitCode = ill === 0 ? 0 : 1;
