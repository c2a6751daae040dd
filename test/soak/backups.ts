import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { freshSeed, seededRandom } from '../support/random.ts';
import { runBackupRounds } from './backup_rounds.ts';

/**
 * Backups under full write load, each restored and compared with a model. The seed decides the requests; how those of several
 * writers interleave depends on the machine.
 */
const { values: options } = parseArgs({
  options: {
    backups: { type: 'string', default: '20' },
    users: { type: 'string', default: '5000' },
    writers: { type: 'string', default: '16' },
    seed: { type: 'string' },
  },
});
const seed = Number(options.seed ?? freshSeed());
console.log(`seed ${seed}`);
const folder = mkdtempSync(join(tmpdir(), 'authrealm-backups-'));
const backups = Number(options.backups);
const { complaints, acknowledged, erased, rates, backupMs } = await runBackupRounds({
  folder,
  backups,
  users: Number(options.users),
  writers: Number(options.writers),
  chance: seededRandom(seed),
});
for (const complaint of complaints.slice(0, 100)) console.log(complaint);
console.log(
  `${backups} backups during ${acknowledged} acknowledged writes, ${backupMs} ms each, ${rates.duringBackup} writes/s during backups and ` +
    `${rates.withoutBackup} without; ${erased} erasures applied again, ${complaints.length} complaints, seed ${seed}`,
);
if (complaints.length === 0) rmSync(folder, { recursive: true });
else console.log(`the databases are kept in ${folder}`);
process.exitCode = complaints.length === 0 ? 0 : 1;
