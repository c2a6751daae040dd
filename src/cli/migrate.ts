import { type Command, Option } from 'commander';
import { DATABASE_SETTINGS } from '../app/config/parse.ts';
import { missingDatabaseOf, openEngineFor } from '../app/open_database.ts';
import { Refusal } from '../model/fault.ts';
import { VERSION } from '../model/version.ts';
import { systemClock } from '../ops/process/clock.ts';
import { printLine, standardStreams } from '../ops/process/standard_streams.ts';
import { fileOf, isInMemory } from '../ops/store/open.ts';
import { pendingMigrations } from '../ops/store/pending_migrations.ts';
import { addSettings, type CliContext } from './context.ts';

/** `migrate`: applies pending migrations, so that serving processes need no rights to do so. It ignores --migrate. */
export function addMigrate(program: Command, context: CliContext): void {
  const names = DATABASE_SETTINGS.filter((name) => name !== 'migrate');
  addSettings(program.command('migrate'), names)
    .description('apply pending schema migrations, and list them')
    .addOption(new Option('--print <WHAT>', 'only print the SQL of pending migrations').choices(['pending']))
    .action(async ({ print }: { print?: string }, command: Command) => {
      const given = context.settingsOf(command);
      // On a server the owner creates the tables of an empty database; a missing file may be that of another folder.
      const createsDatabase = fileOf(given.database) === undefined;
      const settings = { ...given, migrate: 'auto', createsDatabase } as const;
      const { database, migrateDatabase } = settings;
      if (isInMemory(database))
        throw new Refusal('an in-memory database cannot be migrated: it ends with its process');
      const release = { version: VERSION, clock: systemClock, missingDatabase: missingDatabaseOf(settings) };
      // By the role that will migrate: the serving role may not see the tables yet.
      const { newest, migrations } = await pendingMigrations(migrateDatabase ?? database, release);
      const isNewest = `database has schema ${newest}, the newest: nothing`;
      if (print !== undefined) {
        const sql = migrations.map(({ version, name, sql }) => `\n-- ${version} ${name}\n\n${sql}`);
        const text =
          migrations.length === 0 ? `-- The ${isNewest} is pending.\n` : [HEADING, ...sql].join('');
        standardStreams().stdout.write(text);
        return;
      }
      await (await openEngineFor(settings, systemClock)).close();
      const applied = migrations.map(({ version, name }) => `${version} ${name}`).join(', ');
      const done = `the database now has schema ${newest}; applied: ${applied}`;
      printLine(migrations.length === 0 ? `the ${isNewest} was pending` : done);
    });
}

const HEADING =
  '-- For review only. Apply it with "authrealm migrate", which records applied migrations in the database.\n';
