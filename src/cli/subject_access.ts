import type { Command } from 'commander';
import { openLogReading } from '../audit/reading.ts';
import { subjectAccess } from '../audit/subject_access.ts';
import { systemClock } from '../platform/clock.ts';
import { openDatabase } from '../service/open_database.ts';
import { addDatabaseSettings, type CliContext } from './context.ts';
import { parsePerson } from './erase.ts';
import { newFile, standardOutput } from './output.ts';
import { printableJson } from './table.ts';

/** `subject-access`: all data about one user, for that person (GDPR, Article 15). */
export function addSubjectAccess(program: Command, context: CliContext): void {
  addDatabaseSettings(program.command('subject-access'))
    .argument('<realm>', 'realm ID of the user')
    .argument('<user>', 'ID of the user')
    .option('--to <FILE>', 'file to create (default: standard output)')
    .description('write all data about a user as JSON lines')
    .action(async (realm: string, id: string, { to }: { to?: string }, command: Command) => {
      const db = await openDatabase(context.settingsOf(command), systemClock);
      const output = to === undefined ? standardOutput() : newFile(to, systemClock);
      try {
        const { records, log } = db.engine;
        const deps = { records, log, reading: openLogReading(log, db.logKeys) };
        for await (const item of subjectAccess(deps, parsePerson(realm, id), systemClock)) {
          await output.write(`${printableJson(item)}\n`);
        }
        output.finish();
      } finally {
        output.abandon();
        await db.engine.close();
      }
    });
}
