import type { Command } from 'commander';
import { withDatabase } from '../app/open_database.ts';
import { openLogReading } from '../log/reading.ts';
import { subjectAccess } from '../log/subject_access.ts';
import type { Uuid } from '../model/id.ts';
import { systemClock } from '../ops/process/clock.ts';
import { addDatabaseSettings, type CliContext } from './context.ts';
import { parseId } from './identifiers.ts';
import { type WriteText, writeNewFile, writeOut } from './output.ts';
import { printableJson } from './table.ts';

/** `subject-access`: all data about one user, for that person (GDPR, Article 15). */
export function addSubjectAccess(program: Command, context: CliContext): void {
  addDatabaseSettings(program.command('subject-access'))
    .argument('<realm>', 'realm ID of the user', parseId)
    .argument('<user>', 'ID of the user', parseId)
    .option('--to <FILE>', 'file to create (default: standard output)')
    .description('write all data about a user as JSON lines')
    .action((realm: Uuid, user: Uuid, { to }: { to?: string }, command: Command) =>
      withDatabase(context.settingsOf(command), systemClock, ({ engine: { records, log }, logKeys }) => {
        const deps = { records, log, reading: openLogReading(log, logKeys) };
        const writeItems = async (write: WriteText) => {
          for await (const item of subjectAccess(deps, { realm, user }, systemClock))
            await write(`${printableJson(item)}\n`);
        };
        return to === undefined ? writeItems(writeOut) : writeNewFile(to, systemClock, writeItems);
      }),
    );
}
