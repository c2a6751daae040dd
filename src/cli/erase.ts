import { readdirSync } from 'node:fs';
import { basename, dirname, join } from 'node:path';
import type { Command } from 'commander';
import { erasureLine } from '../audit/checkpoint.ts';
import type { Person } from '../audit/log_keys.ts';
import { eraseUser } from '../audit/person_erasure.ts';
import type { ScrubResult } from '../audit/port.ts';
import { openLogReading } from '../audit/reading.ts';
import { removeBuckets, type SignInName } from '../auth/sign_in/budgets.ts';
import { checkpointFileOf, type Settings } from '../config/parse.ts';
import { Refusal } from '../domain/fault.ts';
import { parseUuid } from '../domain/id.ts';
import { user } from '../domain/resources.ts';
import { systemClock } from '../platform/clock.ts';
import { appendLines } from '../platform/fsync.ts';
import { printLine } from '../platform/standard_streams.ts';
import { type OpenDatabase, openDatabase } from '../service/open_database.ts';
import { fileOf } from '../store/open.ts';
import { openSearcher } from '../workers/searcher.ts';
import { addConfirmation, assertConfirmed, type ConfirmationOptions } from './confirmation.ts';
import { addDatabaseSettings, addSettings, type CliContext } from './context.ts';

/** `erase`: permanently removes the data of a person (GDPR, Article 17). */
export function addErase(program: Command, context: CliContext): void {
  const erase = program.command('erase').description('permanently erase the data of a person');
  const command = addSettings(addDatabaseSettings(erase.command('user')), ['checkpointFile']);
  addConfirmation(command, 'show how many records would be erased')
    .argument('<realm>', 'realm ID of the user')
    .argument('<user>', 'ID of the user')
    .description(
      'erase a user and all personal data, including audit log and database file; if interrupted, run it again',
    )
    .action(async (realm: string, id: string, options: ConfirmationOptions, command: Command) => {
      const settings = context.settingsOf(command);
      const person = parsePerson(realm, id);
      const db = await openDatabase(settings, systemClock);
      try {
        if (options.dryRun) return await showErasure(person, db);
        await assertConfirmed(options, `permanently erases user ${person.user}`, person.user);
        await erasePerson(person, db, settings);
      } finally {
        await db.engine.close();
      }
    });
}

/** The user with this realm ID and user ID. Throws Refusal for an invalid ID. */
export function parsePerson(realm: string, id: string): Person {
  const [inRealm, of] = [realm, id].map(parseUuid);
  if (inRealm && of) return { realm: inRealm, user: of };
  throw new Refusal(
    'REALM and USER must be IDs, each 8-4-4-4-12 in hex: "authrealm export" writes them as realm_id and id',
    { isUsage: true },
  );
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
    scrub: engine.scrub,
    removeBuckets: (name: SignInName) => removeBuckets(engine.budgets, logKeys, name),
    report: async (erasure: Parameters<typeof erasureLine>[0]) => {
      const line = erasureLine(erasure, logKeys);
      if (checkpointFile !== undefined) appendLines(checkpointFile, [line]);
      else printLine(`no checkpoint file is configured: keep this line with your backups\n${line}`);
    },
  };
  const erasure = await eraseUser(deps, person, systemClock);
  if (!erasure) throw new Refusal(`no user ${person.user} in realm ${person.realm}`);
  printLine(`user ${person.user} is erased`);
  const { search, close } = openSearcher();
  const scrubbed = await erasure.scrub({ search, mayRewrite: true }).finally(close);
  printScrubbed(scrubbed);
  for (const copy of olderCopies(settings)) {
    printLine(
      `${copy} is an older copy of the database that still contains the data: delete it when you can`,
    );
  }
  const recordingError = await erasure.reportError;
  if (recordingError !== undefined) throw unrecordedErasure(person, recordingError as NodeJS.ErrnoException);
  if (scrubbed.kind === 'left') {
    throw new Refusal(
      'some erased data is still in the database file: stop other programs that write to the file, and run this command again',
    );
  }
}

function unrecordedErasure({ user: id }: Person, { code = 'unknown' }: NodeJS.ErrnoException): Refusal {
  return new Refusal(
    `user ${id} is erased, but the erasure could not be recorded outside the database (${code}): until it is, restoring ` +
      'an older backup may bring the user back. Run the same command again, or wait for the next checkpoint of the service',
  );
}

function printScrubbed(scrubbed: ScrubResult): void {
  if (scrubbed.kind === 'clean') {
    const how = scrubbed.isRewritten ? ' after it was rewritten' : '';
    printLine(`no erased data is left in the database file${how}; its write-ahead log is empty`);
  }
  if (scrubbed.kind === 'archived') {
    if (!scrubbed.isVacuumed) printLine('another role owns the tables: run VACUUM as that role');
    printLine(
      `archived write-ahead logs contain the data up to position ${scrubbed.position}, and data files until their pages are ` +
        'reused: a dump taken from now on is clean; a base backup is clean after VACUUM FULL',
    );
    printLine(
      'the indexes of words keep the words of the user until you run, as the owner of the tables: ' +
        'reindex index concurrently user_info_words; reindex index concurrently password_profile_info_words',
    );
  }
}

const COPY_SUFFIXES = ['schema-', 'replaced-', 'rescued'];

/** Older copies of the database file that this program made. */
function olderCopies({ database }: Settings): readonly string[] {
  const file = fileOf(database);
  if (file === undefined) return [];
  const folder = dirname(file);
  return readdirSync(folder)
    .filter((name) => COPY_SUFFIXES.some((word) => name.startsWith(`${basename(file)}.${word}`)))
    .map((name) => join(folder, name));
}
