import { existsSync } from 'node:fs';
import { type Command, Option } from 'commander';
import type { Settings } from '../app/config/parse.ts';
import { missingDatabaseOf } from '../app/open_database.ts';
import { Refusal } from '../model/fault.ts';
import { VERSION } from '../model/version.ts';
import { systemClock } from '../ops/process/clock.ts';
import { printLine } from '../ops/process/standard_streams.ts';
import type { BackupTarget } from '../ops/store/backups/backup.ts';
import { fileOf, isInMemory } from '../ops/store/open.ts';
import { addDatabaseSettings, type CliContext } from './context.ts';
import { parseWholeNumber } from './option_values.ts';
import { printResult } from './table.ts';

interface BackupOptions {
  readonly to?: string;
  readonly into?: string;
  readonly keep?: number;
  readonly json?: true;
}

/** Advice for PostgreSQL, which has its own backup tools. */
export const POSTGRES_TOOLS =
  'the database is PostgreSQL: use pg_dump --format=custom with pg_restore, or pg_basebackup with an archive of the ' +
  'write-ahead log';

/** `backup`: a complete copy of the database while the service runs. */
export function addBackup(program: Command, context: CliContext): void {
  addDatabaseSettings(program.command('backup'))
    .description('back up a SQLite database while the service runs, and verify the copy')
    .addOption(
      new Option('--to <FILE>', 'file to create; an existing file is never overwritten').conflicts([
        'into',
        'keep',
      ]),
    )
    .option('--into <FOLDER>', 'folder to create the backup in, named after the database and the time')
    .option(
      '--keep <DAYS>',
      'then remove backups of this database older than this number of days from the folder',
      parseWholeNumber(99_999),
    )
    .option('--json', 'write JSON')
    .action(async (options: BackupOptions, command: Command) => {
      const target = targetOf(options);
      const database = existingDatabaseFile(context.settingsOf(command), 'backed up', POSTGRES_TOOLS);
      const { backUp } = await import('../ops/store/backups/backup.ts');
      const { manifest, summary, ...made } = await backUp(database, target, {
        version: VERSION,
        clock: systemClock,
      });
      printResult({ ...made, ...manifest, rows: summary.rows }, options.json);
      if (!options.json)
        printLine(
          `keep ${made.path} together with its manifest ${made.path}.json; the backup does not contain the master key: ` +
            'store the key separately, for as long as the backup',
        );
    });
}

function targetOf({ to, into, keep }: BackupOptions): BackupTarget {
  if (to !== undefined) return { file: to };
  if (into !== undefined) return { folder: into, keepDays: keep };
  throw new Refusal('a backup needs a target: pass either --to FILE or --into FOLDER', { isUsage: true });
}

/**
 * The file of a SQLite database, which may be missing. Throws Refusal for other databases: `advice` is for PostgreSQL, `done`
 * is what cannot be done with a database in memory.
 */
export function databaseFileOf({ database }: Settings, done: string, advice: string): string {
  if (database.engine === 'postgres') throw new Refusal(advice);
  if (isInMemory(database))
    throw new Refusal(`an in-memory database cannot be ${done}: pass a file with --database`);
  return fileOf(database) as string;
}

/** The same for a file that must exist. */
export function existingDatabaseFile(settings: Settings, done: string, advice: string): string {
  const path = databaseFileOf(settings, done, advice);
  if (!existsSync(path)) throw missingDatabaseOf(settings);
  return path;
}
