import { type Command, Option } from 'commander';
import { DATABASE_SETTINGS, type Settings } from '../config/parse.ts';
import { Refusal } from '../domain/fault.ts';
import { systemClock } from '../platform/clock.ts';
import { VERSION } from '../platform/version.ts';
import { openEngineFor } from '../service/open_database.ts';
import { isInMemory } from '../store/open.ts';
import { citusSql } from '../store/postgres/citus.ts';
import { pendingMigrations } from '../store/webhooks/pending.ts';
import { addSettings, type CliContext } from './context.ts';

/** SQL that is printed instead of being run. */
const PRINTS: Readonly<Record<string, (settings: Settings) => string | Promise<string>>> = {
  pending: pendingSql,
  citus: citusSql,
};

/** `migrate`: brings the schema up, whatever --migrate says elsewhere, so that serving processes need not. */
export function addMigrate(program: Command, context: CliContext): void {
  const names = DATABASE_SETTINGS.filter((name) => name !== 'migrate');
  addSettings(program.command('migrate'), names)
    .description('bring the schema of the database up, and say what was done')
    .addOption(
      new Option(
        '--print <WHAT>',
        'print SQL and do nothing: what is pending, or what distributes the schema',
      ).choices(Object.keys(PRINTS)),
    )
    .action(async ({ print }: { print?: string }, command: Command) => {
      const settings = context.settingsOf(command);
      const printed = await PRINTS[print ?? '']?.(settings);
      if (printed === undefined) console.log(await bringUp(settings));
      else process.stdout.write(printed);
    });
}

/** Answers what was done, in a sentence. */
async function bringUp(settings: Settings): Promise<string> {
  const { newest, migrations } = await pendingIn(settings);
  const engine = await openEngineFor({ ...settings, migrate: 'auto' }, systemClock);
  await engine.close();
  if (migrations.length === 0)
    return `the database has schema ${newest}, which is the newest: nothing was pending`;
  const applied = migrations.map(({ version, name }) => `${version} ${name}`).join(', ');
  return `the database has schema ${newest} now; applied: ${applied}`;
}

const HEADING =
  '-- To be read. It is run by authrealm migrate, which writes down in the database what was applied.\n';

async function pendingSql(settings: Settings): Promise<string> {
  const { newest, migrations } = await pendingIn(settings);
  if (migrations.length === 0)
    return `-- The database has schema ${newest}, which is the newest: nothing is pending.\n`;
  return [HEADING, ...migrations.map(({ version, name, sql }) => `-- ${version} ${name}\n\n${sql}`)].join(
    '\n',
  );
}

/** Asked as whoever will bring the schema up: the role that serves may not see it yet. */
function pendingIn({ database, migrateDatabase }: Settings): ReturnType<typeof pendingMigrations> {
  if (isInMemory(database))
    throw new Refusal('a database in memory ends with its process: there is none to migrate');
  return pendingMigrations(migrateDatabase ?? database, { version: VERSION, clock: systemClock });
}
