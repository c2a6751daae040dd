import { existsSync, statSync } from 'node:fs';
import { type Command, InvalidArgumentError, Option } from 'commander';
import type { Settings } from '../config/parse.ts';
import { Refusal } from '../domain/fault.ts';
import { systemClock } from '../platform/clock.ts';
import { VERSION } from '../platform/version.ts';
import type { BackedUp, Target } from '../store/backups/backup.ts';
import { fileOf, isInMemory } from '../store/open.ts';
import { openArchiver } from './archiver.ts';
import { addDatabaseSettings, type CliContext as Desk } from './context.ts';
import { openProgress } from './progress.ts';

interface BackupOptions {
  readonly to?: string;
  readonly into?: string;
  readonly keep?: number;
  readonly json?: true;
}

/** What a database that others run is copied by. */
export const POSTGRES_TOOLS =
  'it is a database of PostgreSQL, whose own tools do it: pg_dump, or pg_basebackup with an archive of its log. ' +
  'docs/operating.md (Backups) has the commands';

/** `backup`: a complete copy of the database while the service goes on. */
export function addBackup(program: Command, desk: Desk): void {
  addDatabaseSettings(program.command('backup'))
    .description('copy the database while the service runs, look the copy through, and say what it holds')
    .option('--to <FILE>', 'the file to make; nothing is overwritten')
    .option('--into <FOLDER>', 'the folder to make it in, named after the instant')
    .addOption(
      new Option('--keep <DAYS>', 'then remove older backups of this database from that folder').argParser(
        days,
      ),
    )
    .option('--json', 'write JSON')
    .action(async (options: BackupOptions, command: Command) => {
      const target = targetOf(options);
      const database = databaseOf(desk.settingsOf(command));
      const { backUp } = await import('../store/backups/backup.ts');
      const progress = openProgress(statSync(database).size, systemClock, process.stderr, 'bytes');
      const archiver = openArchiver((done) => progress.show(done, done));
      const release = { version: VERSION, clock: systemClock };
      const made = await backUp(database, target, release, archiver).finally(progress.stop);
      if (options.json) console.log(JSON.stringify(asJson(made), null, 2));
      else tell(made);
    });
}

function days(raw: string): number {
  const count = Number(raw);
  if (/^\d{1,5}$/.test(raw) && count > 0) return count;
  throw new InvalidArgumentError('It must be a number of days, 1 to 99999.');
}

function targetOf({ to, into, keep }: BackupOptions): Target {
  if ((to === undefined) === (into === undefined))
    throw new Refusal('give either --to FILE or --into FOLDER', { isUsage: true });
  if (into !== undefined) return { folder: into, keepDays: keep };
  if (keep !== undefined) {
    throw new Refusal('--keep goes with --into: of a file that you name, nobody knows which is older', {
      isUsage: true,
    });
  }
  return { file: to as string };
}

function databaseOf({ database }: Settings): string {
  if (database.engine === 'postgres') throw new Refusal(POSTGRES_TOOLS);
  if (isInMemory(database))
    throw new Refusal('a database in memory ends with its process: nothing to back up');
  const path = fileOf(database) as string;
  if (!existsSync(path)) throw new Refusal(`there is no database ${path} to back up`);
  return path;
}

const asJson = ({ path, manifest, removed }: BackedUp) => ({ path, ...manifest, removed });

function tell({ path, manifest, removed }: BackedUp): void {
  const { bytes, taken_at, schema, sha256, rows } = manifest;
  console.log(`${path}: ${bytes} bytes, schema ${schema}, as of ${taken_at}, looked through`);
  console.log(`sha256 ${sha256}; ${totalOf(rows)} rows. What it must hold is in ${path}.json: keep both`);
  for (const name of removed) console.log(`removed ${name}`);
  console.log('the master key is not in it: keep that apart, and as long as the backup');
}

export function totalOf(rows: Readonly<Record<string, number>>): number {
  return Object.values(rows).reduce((sum, count) => sum + count, 0);
}
