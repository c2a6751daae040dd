import type { Command } from 'commander';
import { VERSION } from '../model/version.ts';
import { systemClock } from '../ops/process/clock.ts';
import { printLine } from '../ops/process/standard_streams.ts';
import { existingDatabaseFile } from './backup.ts';
import { addDatabaseSettings, type CliContext } from './context.ts';
import { printResult } from './table.ts';

/** `compact`: rewrites the file of a database. */
export function addCompact(program: Command, context: CliContext): void {
  addDatabaseSettings(program.command('compact'))
    .description(
      'rewrite a SQLite file that no process has open: without free pages, and with what lookups read at its beginning',
    )
    .action(async (_options: unknown, command: Command) => {
      const advice =
        'compact rewrites a SQLite file, but --database names PostgreSQL, which reuses its space by itself';
      const path = existingDatabaseFile(context.settingsOf(command), 'compacted', advice);
      const { compact } = await import('../ops/store/backups/compaction.ts');
      const release = { version: VERSION, clock: systemClock };
      const done = await compact(path, release, printLine);
      const { schema, rows } = done.summary;
      printResult({ path, bytes: done.bytesAfter, bytes_before: done.bytesBefore, schema, rows });
    });
}
