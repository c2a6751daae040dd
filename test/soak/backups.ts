import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { freshSeed, seededRandom } from '../support/random.ts';
import { runBackupRounds } from './backup_rounds.ts';

/**
 * Backups under full write load, each restored and held against a model. The seed decides what is asked for; how the
 * requests of several writers meet is the machine's doing.
 */
const { values: given } = parseArgs({
  options: {
    backups: { type: 'string', default: '20' },
    users: { type: 'string', default: '5000' },
    writers: { type: 'string', default: '16' },
    seed: { type: 'string' },
  },
});
const seed = Number(given.seed ?? freshSeed());
console.log(`seed ${seed}`);
const folder = mkdtempSync(join(tmpdir(), 'authrealm-backups-'));
const backups = Number(given.backups);
const { complaints, acknowledged, erased, rates, backupMs } = await runBackupRounds({
  folder,
  backups,
  users: Number(given.users),
  writers: Number(given.writers),
  chance: seededRandom(seed),
});
for (const complaint of complaints.slice(0, 100)) console.log(complaint);
console.log(
  `${backups} backups beside ${acknowledged} acknowledged writes, ${backupMs} ms each, ${rates.beside} writes/s meanwhile and ` +
    `${rates.alone} without; ${erased} erasures applied again, ${complaints.length} complaints, seed ${seed}`,
);
if (complaints.length === 0) rmSync(folder, { recursive: true });
else console.log(`what they left is in ${folder}`);
process.exitCode = complaints.length === 0 ? 0 : 1;
