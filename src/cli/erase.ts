import type { Command } from 'commander';
import { checkpointFileOf, type Settings } from '../app/config/parse.ts';
import { type OpenDatabase, withDatabase } from '../app/open_database.ts';
import { erasureLine } from '../log/checkpoint.ts';
import type { Person } from '../log/keys.ts';
import { eraseUser } from '../log/person_erasure.ts';
import { openLogReading } from '../log/reading.ts';
import { Refusal } from '../model/fault.ts';
import type { Uuid } from '../model/id.ts';
import type { ErasedBytes } from '../model/log/erasure.ts';
import { user } from '../model/resources.ts';
import { systemClock } from '../ops/process/clock.ts';
import { printLine } from '../ops/process/standard_streams.ts';
import { fileOf } from '../ops/store/open.ts';
import { openSignInBudgets } from '../sign_in/budgets.ts';
import { appendLines } from '../sql/fsync.ts';
import { addConfirmation, assertConfirmed, type ConfirmationOptions } from './confirmation.ts';
import { addDatabaseSettings, addSettings, type CliContext } from './context.ts';
import { filesNamedAfter } from './doctor.ts';
import { parseId } from './identifiers.ts';

/** `erase`: permanently removes the data of a person (GDPR, Article 17). */
export function addErase(program: Command, context: CliContext): void {
  const erase = program.command('erase').description('permanently erase the data of a person');
  const command = addSettings(addDatabaseSettings(erase.command('user')), ['checkpointFile']);
  addConfirmation(command, 'show how many records would be erased')
    .argument('<realm>', 'realm ID of the user', parseId)
    .argument('<user>', 'ID of the user', parseId)
    .description(
      'erase a user and all personal data, including audit log and database file; if interrupted, run it again',
    )
    .action(async (realm: Uuid, id: Uuid, options: ConfirmationOptions, command: Command) => {
      const settings = context.settingsOf(command);
      const person = { realm, user: id };
      await withDatabase(settings, systemClock, async (db) => {
        if (options.dryRun) return await showErasure(person, db);
        await assertConfirmed(options, `permanently erases user ${person.user}`, person.user);
        await erasePerson(person, db, settings);
      });
    });
}

/** Prints what `erase` would remove. The log of a user who is deleted may still have personal values. */
async function showErasure(person: Person, { engine }: OpenDatabase): Promise<void> {
  const key = [person.realm, person.user] as const;
  const [found, below] = [await engine.records.get(user, key), await engine.records.countBelow(user, key)];
  printLine(
    found
      ? `would erase user ${person.user} with ${below} links, and its values in the audit log`
      : `no user ${person.user} in realm ${person.realm}; would erase values of a deleted one in the audit log`,
  );
}

async function erasePerson(
  person: Person,
  { engine, logKeys }: OpenDatabase,
  settings: Settings,
): Promise<void> {
  const checkpointFile = checkpointFileOf(settings);
  const deps = {
    records: engine.records,
    reading: openLogReading(engine.log, logKeys),
    removeBuckets: openSignInBudgets(engine.budgets, logKeys, systemClock).refill,
    report: async (erasure: Parameters<typeof erasureLine>[0]) => {
      const line = erasureLine(erasure, logKeys);
      if (checkpointFile !== undefined) appendLines(checkpointFile, [line]);
      else printLine(`no checkpoint file is configured: keep this line with your backups\n${line}`);
    },
  };
  const erasure = await eraseUser(deps, person, systemClock);
  if (!erasure) throw new Refusal(`no user ${person.user} in realm ${person.realm}`);
  printLine(`user ${person.user} is erased`);
  printLine(ERASED_BYTES[await engine.removeErasedBytes()]);
  for (const copy of filesNamedAfter(fileOf(settings.database), OLDER_COPY)) {
    printLine(
      `${copy} is an older copy of the database that still contains the data: delete it when you can`,
    );
  }
  const recordingError = (await erasure.reportError) as NodeJS.ErrnoException | undefined;
  if (recordingError === undefined) return;
  throw new Refusal(
    `user ${person.user} is erased, but the erasure could not be recorded outside the database (${recordingError.code ?? 'unknown'}): ` +
      'until it is, restoring an older backup may bring the user back. Run the same command again, or wait for the next checkpoint ' +
      'of the service',
  );
}

/** The ending of a copy of the database file that this program made. */
const OLDER_COPY = /^\.(schema-|replaced-|rescued)/;

const ERASED_BYTES: Readonly<Record<ErasedBytes, string>> = {
  overwritten:
    'the data is overwritten in the database file, and the write-ahead log is empty; unused parts of pages may hold ' +
    'copies until "authrealm compact"; text that other programs wrote to the file is not searched for',
  archived:
    'PostgreSQL holds the data in archived write-ahead logs, and in data files until vacuum has run and their pages are ' +
    'reused: a dump taken from now on is clean; a base backup is clean after VACUUM FULL. The indexes of words keep the ' +
    'words of the user until you run, as the owner of the tables: reindex index concurrently user_info_words; ' +
    'reindex index concurrently password_profile_info_words',
};
