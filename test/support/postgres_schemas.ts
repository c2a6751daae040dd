import { afterAll } from 'bun:test';
import { SQL } from 'bun';
import { systemClock } from '../../src/ops/process/clock.ts';
import { openEngine } from '../../src/ops/store/open.ts';
import { type MigrateMode, type Migration, migrationsOf } from '../../src/sql/migrations.ts';
import { type PostgresAddress, parsePostgres } from '../../src/sql/postgres/address.ts';
import { migratePostgres } from '../../src/sql/postgres/migrate.ts';
import { connectToPrimary } from '../../src/sql/postgres/primary.ts';
import { sharedServer } from './postgres_server.ts';

export const program = { version: '0.1.0', clock: systemClock };
export const knownMigrations = migrationsOf('postgres');
/** The migration of a later release. */
export const futureMigration: Migration = {
  version: knownMigrations.length + 1,
  name: 'next',
  sql: 'alter table realm add column motto text; create table later (id text);',
};
const clients = new Map<string, SQL>();

/** A superuser's connection to this database. */
export function superuserClient(url: string): SQL {
  let client = clients.get(url);
  if (!client) {
    client = new SQL(url, { max: 1 });
    clients.set(url, client);
  }
  return client;
}

afterAll(() => Promise.all([...clients.values()].map((client) => client.close())));

export function addressOf(url: string): PostgresAddress {
  const address = parsePostgres(url);
  if (!address) throw new Error(`${url} is not a PostgreSQL URL`);
  return address;
}

/** Opens the engine on a database, and migrates its schema as `mode` requires, with the owner role if there is one. */
export async function openPostgres(url: string, mode: MigrateMode = 'auto', ownerUrl?: string) {
  return openEngine(addressOf(url), mode, program, ownerUrl === undefined ? undefined : addressOf(ownerUrl));
}

/** A fresh database with the schema of this release. */
export async function migratedDatabase(): Promise<string> {
  const url = await (await sharedServer()).freshDatabase();
  await (await openPostgres(url)).close();
  return url;
}

/** Runs migrations as the program of this version. */
export async function migrateTo(
  url: string,
  migrations: readonly Migration[],
  version = '0.2.0',
): Promise<void> {
  const client = await connectToPrimary(addressOf(url));
  await migratePostgres(client, migrations, { ...program, version }).finally(() => client.close());
}

export async function tableNames(url: string, schema = 'public'): Promise<readonly string[]> {
  const rows = await superuserClient(url).unsafe(
    'select tablename from pg_tables where schemaname = $1 order by tablename collate "C"',
    [schema],
  );
  return rows.map(({ tablename }: { tablename: string }) => tablename);
}

export async function migrationVersions(url: string): Promise<readonly number[]> {
  const rows = await superuserClient(url).unsafe('select version from migration order by version');
  return rows.map(({ version }: { version: number }) => version);
}

/** The message of a rejected promise; `none` where it resolves. */
export const rejectionMessage = (promise: Promise<unknown>) =>
  promise.then(
    () => 'none',
    (error: Error) => error.message,
  );

/** Creates a role with a password, and returns its URL of the database. */
export async function createLoginRole(url: string, name: string): Promise<string> {
  const { pathname } = new URL(url);
  await superuserClient(url).unsafe(`create role ${name} login password '${name}-secret'`).simple();
  return (await sharedServer()).url(pathname.slice(1), name, `${name}-secret`);
}

let roles = 0;
/** A role name that no other test uses. */
export const uniqueRoleName = (what: string) => `${what}_${process.pid}_${++roles}`;
