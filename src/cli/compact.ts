import { existsSync } from 'node:fs';
import type { Command } from 'commander';
import type { Settings } from '../config/parse.ts';
import { Refusal } from '../domain/fault.ts';
import { systemClock } from '../platform/clock.ts';
import { printLine } from '../platform/standard_streams.ts';
import { VERSION } from '../platform/version.ts';
import { missingDatabaseOf } from '../service/open_database.ts';
import type { CompactionObserver, CompactionResult } from '../store/backups/compaction.ts';
import { fileOf, isInMemory } from '../store/open.ts';
import { openArchiver } from './archiver.ts';
import { totalOf } from './backup.ts';
import { addDatabaseSettings, type CliContext } from './context.ts';

/** `compact`: rewrites the file of a database. */
export function addCompact(program: Command, context: CliContext): void {
  addDatabaseSettings(program.command('compact'))
    .description(
      'rewrite a SQLite file that no process has open: without free pages, and with what lookups read at its beginning',
    )
    .action(async (_options: unknown, command: Command) => {
      const path = databaseOf(context.settingsOf(command));
      const { compact } = await import('../store/backups/compaction.ts');
      const release = { version: VERSION, clock: systemClock };
      printResult(path, await compact(path, release, openArchiver(), OBSERVER));
    });
}

function databaseOf(settings: Settings): string {
  const { database } = settings;
  if (database.engine === 'postgres')
    throw new Refusal(
      'compact rewrites a SQLite file, but --database names PostgreSQL, which reuses its space by itself',
    );
  if (isInMemory(database))
    throw new Refusal('an in-memory database cannot be compacted: pass a file with --database');
  const path = fileOf(database) as string;
  if (!existsSync(path)) throw missingDatabaseOf(settings);
  return path;
}

const STEPS: Readonly<Record<Parameters<CompactionObserver['onStep']>[0], string>> = {
  verify: 'verifying the database',
  write: 'writing the new file',
  'verify copy': 'verifying the new file',
};

const OBSERVER: CompactionObserver = {
  onLocked: ({ folder, neededBytes, freeBytes }) =>
    printLine(`up to ${neededBytes} bytes are needed in ${folder}, where ${freeBytes} are free`),
  onStep: (step) => printLine(STEPS[step]),
};

function printResult(path: string, { summary, bytesBefore, bytesAfter }: CompactionResult): void {
  printLine(
    `${path}: ${bytesAfter} bytes, ${bytesBefore} before; ${totalOf(summary.rows)} rows, schema ${summary.schema}, verified`,
  );
}
