import type { Command } from 'commander';
import { openLogReading } from '../audit/reading.ts';
import { subjectAccess } from '../audit/subject_access.ts';
import { systemClock } from '../platform/clock.ts';
import { withDatabase } from '../service/open_database.ts';
import { addDatabaseSettings, type CliContext } from './context.ts';
import { parsePerson } from './erase.ts';
import { type WriteText, writeNewFile, writeOut } from './output.ts';
import { printableJson } from './table.ts';

/** `subject-access`: all data about one user, for that person (GDPR, Article 15). */
export function addSubjectAccess(program: Command, context: CliContext): void {
  addDatabaseSettings(program.command('subject-access'))
    .argument('<realm>', 'realm ID of the user')
    .argument('<user>', 'ID of the user')
    .option('--to <FILE>', 'file to create (default: standard output)')
    .description('write all data about a user as JSON lines')
    .action((realm: string, id: string, { to }: { to?: string }, command: Command) => {
      const person = parsePerson(realm, id);
      return withDatabase(
        context.settingsOf(command),
        systemClock,
        ({ engine: { records, log }, logKeys }) => {
          const deps = { records, log, reading: openLogReading(log, logKeys) };
          const writeItems = async (write: WriteText) => {
            for await (const item of subjectAccess(deps, person, systemClock))
              await write(`${printableJson(item)}\n`);
          };
          return to === undefined ? writeItems(writeOut) : writeNewFile(to, systemClock, writeItems);
        },
      );
    });
}
