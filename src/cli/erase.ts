import { readdirSync } from 'node:fs';
import { basename, dirname, join } from 'node:path';
import type { Command } from 'commander';
import { erasureLine } from '../audit/checkpoint.ts';
import { writeToAll } from '../audit/checkpoint_sink.ts';
import type { Person } from '../audit/log_keys.ts';
import { eraseUser } from '../audit/person_erasure.ts';
import type { ScrubResult } from '../audit/port.ts';
import { openLogReading } from '../audit/reading.ts';
import { CHECKPOINT_SINK_SETTINGS, type Settings } from '../config/parse.ts';
import { Refusal } from '../domain/fault.ts';
import { user } from '../domain/resources.ts';
import { systemClock } from '../platform/clock.ts';
import { checkpointSinksOf } from '../service/checkpoint_sinks.ts';
import { type OpenDatabase, openDatabase } from '../service/open_database.ts';
import { fileOf } from '../store/open.ts';
import { openSearcher } from '../workers/searcher.ts';
import { addDatabaseSettings, addSettings, type CliContext } from './context.ts';
import { identifiersIn } from './identifiers.ts';
import { proveKept } from './kept.ts';

/** `erase`: what a person may ask of who holds something about it. */
export function addErase(program: Command, context: CliContext): void {
  const erase = program.command('erase').description('remove what is held about a person, for good');
  addSettings(addDatabaseSettings(erase.command('user')), [...CHECKPOINT_SINK_SETTINGS])
    .argument('<realm>', 'the realm of the user')
    .argument('<user>', 'the identifier of the user')
    .description(
      'remove a user and all that tells about the person, log and files included; run again if interrupted',
    )
    .action(async (realm: string, id: string, _options, command: Command) => {
      const settings = context.settingsOf(command);
      proveKept(settings);
      const db = await openDatabase(settings, systemClock);
      try {
        await erasePerson(personIn(realm, id), db, settings);
      } finally {
        await db.engine.close();
      }
    });
}

/** Who is named by a realm and an identifier. Throws Refusal for what is none. */
export function personIn(realm: string, id: string): Person {
  const [inRealm, of] = identifiersIn(user, [realm, id], 2);
  return { realm: inRealm, user: of } as Person;
}

async function erasePerson(
  person: Person,
  { engine, logKeys }: OpenDatabase,
  settings: Settings,
): Promise<void> {
  const sinks = checkpointSinksOf(settings, logKeys, systemClock);
  const rooms = {
    records: engine.records,
    reading: openLogReading(engine.log, logKeys),
    scrub: engine.scrub,
    report: async (erasure: Parameters<typeof erasureLine>[0]) => {
      const line = erasureLine(erasure, logKeys);
      if (sinks.length === 0)
        console.log(`no checkpoint file is named: keep this line with your backups\n${line}`);
      await writeToAll(sinks, [line]);
    },
  };
  const erasing = await eraseUser(rooms, person, systemClock);
  if (!erasing) throw new Refusal(`nothing tells of a user ${person.user} in realm ${person.realm}`);
  console.log(`user ${person.user} is erased`);
  const { search, close } = openSearcher();
  try {
    tellScrubbed(await erasing.scrub({ search, mayRewrite: true }));
  } finally {
    await close();
  }
  for (const copy of copiesBeside(settings)) {
    console.log(`${copy} is a copy from before: it holds what it held, so remove it when you can`);
  }
  const trouble = await erasing.reportError;
  if (trouble !== undefined) throw untold(person, trouble as NodeJS.ErrnoException);
}

function untold({ user: id }: Person, { code = 'unknown' }: NodeJS.ErrnoException): Refusal {
  return new Refusal(
    `user ${id} is erased, and that could not be told outside of the database (${code}): until it is, a restore of an ` +
      'older backup may bring it back. Run the same command again; the next checkpoint of the service tells it, too',
  );
}

function tellScrubbed(scrubbed: ScrubResult): void {
  if (scrubbed.kind === 'clean') {
    const how = scrubbed.isRewritten ? ', which was written anew' : '';
    console.log(`no byte of it is left in the database file${how}, and its write-ahead log is empty`);
  }
  if (scrubbed.kind === 'left') {
    console.log(
      'some of it is still in the database file: stop what else writes the file, and run this again',
    );
  }
  if (scrubbed.kind === 'archived') {
    if (!scrubbed.isVacuumed) console.log('its tables belong to another role: have that one vacuum them');
    console.log(
      `archives of the write-ahead log hold it up to position ${scrubbed.position}, and data files until their pages are ` +
        'used again: a dump made from now on is clean, a base backup once the tables were written anew (vacuum full)',
    );
  }
}

const KEPT = ['schema-', 'replaced-', 'rescued'];

/** Copies of a database file that this program kept. */
function copiesBeside({ database }: Settings): readonly string[] {
  const file = fileOf(database);
  if (file === undefined) return [];
  const folder = dirname(file);
  return readdirSync(folder)
    .filter((name) => KEPT.some((word) => name.startsWith(`${basename(file)}.${word}`)))
    .map((name) => join(folder, name));
}
