import type { Command } from 'commander';
import { openLogReading } from '../audit/reading.ts';
import { subjectAccess } from '../audit/subject_access.ts';
import { systemClock } from '../platform/clock.ts';
import { openDatabase } from '../service/open_database.ts';
import { addDatabaseSettings, type CliContext } from './context.ts';
import { personIn } from './erase.ts';
import { proveKept } from './kept.ts';
import { newFile, standardOutput } from './output.ts';
import { printableJson } from './table.ts';

/** `subject-access`: everything held about one user, for that person. */
export function addSubjectAccess(program: Command, context: CliContext): void {
  addDatabaseSettings(program.command('subject-access'))
    .argument('<realm>', 'the realm of the user')
    .argument('<user>', 'the identifier of the user')
    .option('--to <FILE>', 'a file to make; standard output unless given')
    .description('write everything held about a user, one JSON object a line')
    .action(async (realm: string, id: string, { to }: { to?: string }, command: Command) => {
      const settings = context.settingsOf(command);
      proveKept(settings);
      const db = await openDatabase(settings, systemClock);
      const output = to === undefined ? standardOutput() : newFile(to, systemClock);
      try {
        const { records, log } = db.engine;
        const rooms = { records, log, reading: openLogReading(log, db.logKeys) };
        for await (const held of subjectAccess(rooms, personIn(realm, id), systemClock)) {
          await output.write(`${printableJson(held)}\n`);
        }
        output.finish();
      } finally {
        output.abandon();
        await db.engine.close();
      }
    });
}
