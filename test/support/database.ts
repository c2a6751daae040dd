import { Database } from 'bun:sqlite';
import { copyFileSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { SQL } from 'bun';
import { type Flags, readSettings, SETTINGS, type Settings } from '../../src/app/config/parse.ts';
import { type OpenDatabase, openDatabase, openEngineFor } from '../../src/app/open_database.ts';
import { systemClock } from '../../src/ops/process/clock.ts';
import { type DatabaseAddress, type Engine, parseDatabase } from '../../src/ops/store/open.ts';
import { numberParameters } from '../../src/sql/postgres/parameters.ts';
import { isCitusEngine, sharedCluster } from './citus_cluster.ts';
import { CONSISTENCY_CHECKS, type ConsistencyCheck, findInconsistencies } from './consistency.ts';
import { freshFolder } from './folder.ts';
import { withChanges } from './log_rows.ts';
import { ROLES, runOn, type SharedServer, sharedServer } from './postgres_server.ts';
import { runCommand } from './processes.ts';

/** A database of a test, with access that bypasses the service. SQL parameters are `?`. */
export interface TestDatabase {
  readonly url: string;
  readonly address: DatabaseAddress;
  readonly masterKeyFile: string;
  /** Settings and command-line arguments that select it. */
  readonly flags: Flags;
  readonly args: readonly string[];
  /** Opens it and migrates its schema. */
  open(): Promise<Engine>;
  settings(environment?: Readonly<Record<string, string>>): Settings;
  /** The rows of a statement. Big integers are numbers. */
  query: Query;
  /** The rows of a statement about `change`, the log with texts (`withChanges`). */
  queryChanges: Query;
  /** One connection for repeated queries. */
  connect(): { readonly ask: Query; close(): Promise<void> };
  /** Runs a statement without foreign key checks. Returns the number of rows written. */
  tamper(sql: string, ...values: readonly string[]): Promise<number>;
  /** A copy in a new database. No other connection may be open. */
  copy(): Promise<TestDatabase>;
  /** Sentences about inconsistencies between records and changes. */
  findInconsistencies(checks?: readonly ConsistencyCheck[]): Promise<readonly string[]>;
  /** Those of these texts that a file of the engine contains in plain text. */
  findPlaintext(texts: readonly string[]): Promise<readonly string[]>;
  /** Blocks every writer. Returns the function that releases the lock. */
  lockWriters(): Promise<() => Promise<void>>;
}

type Query = <R>(sql: string, ...values: readonly string[]) => Promise<R[]>;

/** What creates an empty database of each engine. */
const ENGINES: Readonly<Record<string, () => Promise<TestDatabase>>> = {
  sqlite: () => createSqlite(join(freshFolder(), 'test.db')),
  postgres: async () => postgresAt(await migratedDatabase(), freshMasterKey()),
  citus: async () => postgresAt(await (await sharedCluster()).freshDatabase(), freshMasterKey()),
};

/**
 * A new database of an engine, by default that in AUTHREALM_TEST_ENGINE, else SQLite. Where AUTHREALM_TEST_UPGRADE names a program, its
 * schema is created and then migrated by that program.
 */
export async function freshDatabase(
  engine = process.env.AUTHREALM_TEST_ENGINE ?? 'sqlite',
): Promise<TestDatabase> {
  const create = ENGINES[engine];
  if (!create) throw new Error(`the engine must be one of ${Object.keys(ENGINES).join(', ')}`);
  const database = await create();
  const upgrade = process.env.AUTHREALM_TEST_UPGRADE;
  if (upgrade !== undefined) await upgradeBy(upgrade, database);
  return database;
}

/** A new database that is open as a service opens it. */
export async function openFreshDatabase(): Promise<{
  readonly database: TestDatabase;
  readonly db: OpenDatabase;
}> {
  const database = await freshDatabase();
  return { database, db: await openDatabase(database.settings(), systemClock) };
}

let emptyFile: Promise<Uint8Array> | undefined;

/** A new database in this file, with the migrated schema and without a master key. */
export async function createSqlite(path: string): Promise<TestDatabase> {
  emptyFile ??= createEmptyFile();
  writeFileSync(path, await emptyFile, { mode: 0o600 });
  const database = sqliteAt(path);
  await database.tamper('update instance set store_id = ?', systemClock.mintId());
  return database;
}

/** The bytes of a database. This process must not open files that suites lock or replace by the engine, which closes them late. */
async function createEmptyFile(): Promise<Uint8Array> {
  const path = join(freshFolder(), 'empty.db');
  await (await sqliteAt(path).open()).close();
  const db = new Database(path);
  const bytes = db.serialize();
  db.close();
  return bytes;
}

/** The name of a database of the shared server with the migrated schema. */
const TEMPLATE = 'migrated';
let template: Promise<string> | undefined;

/** The URL of a new database with the migrated schema on the shared server. */
async function migratedDatabase(): Promise<string> {
  const server = await sharedServer();
  // That of the run has the template.
  template ??=
    process.env.AUTHREALM_TEST_POSTGRES === undefined ? createTemplate(server) : Promise.resolve(TEMPLATE);
  const url = await server.freshDatabase(await template);
  await runOn(url, `update instance set store_id = '${systemClock.mintId()}'`);
  return url;
}

/** Creates the database that others are copies of, and returns its name. */
export async function createTemplate(server: SharedServer): Promise<string> {
  const url = await server.freshDatabase();
  const { open } = postgresAt(url, freshMasterKey());
  await (await open()).close();
  await runOn(server.url(), `alter database ${new URL(url).pathname.slice(1)} rename to ${TEMPLATE}`);
  return TEMPLATE;
}

/** Creates the schema, and migrates it with the program of a later release. */
async function upgradeBy(program: string, { flags, open }: TestDatabase): Promise<void> {
  await (await open()).close();
  const url = flags.migrateDatabase ?? flags.database ?? '';
  const { code, stderr } = await runCommand([process.execPath, program, url]);
  if (code !== 0) throw new Error(stderr);
}

/** The database of these flags, or a new one. */
export async function databaseOf({ database, migrateDatabase, masterKeyFile }: Flags): Promise<TestDatabase> {
  if (database === undefined) return freshDatabase();
  const address = parseDatabase(database);
  if (address?.engine === 'sqlite') return sqliteAt(address.path);
  if (masterKeyFile === undefined) throw new Error(`${database} has no master key file`);
  const roles = migrateDatabase === undefined ? { database } : { database, migrateDatabase };
  return postgresAt(roleUrl(database, 'postgres'), masterKeyFile, roles);
}

/** A file with a new master key. */
export function freshMasterKey(): string {
  const masterKeyFile = join(freshFolder(), 'master.key');
  writeFileSync(masterKeyFile, Buffer.from(systemClock.randomBytes(32)).toString('base64url'), {
    mode: 0o600,
  });
  return masterKeyFile;
}

const [OWNER, SERVICE] = ROLES;

/** The URL of the same database for another role. With several hosts it is no URL that `new URL` parses. */
function roleUrl(url: string, role: string): string {
  return url.replace(/(?<=^postgres:\/\/)[^@/]*(?=@)/, role);
}

/** The members that do not depend on the engine. */
function sharedMembers(masterKeyFile: string, flags: Flags) {
  const settings: TestDatabase['settings'] = (environment = {}) => readSettings(flags, environment);
  return {
    url: flags.database ?? '',
    address: settings().database,
    masterKeyFile,
    flags,
    args: Object.entries(flags).flatMap(([name, value]) => [`--${SETTINGS[name as 'database'].flag}`, value]),
    settings,
    open: () => openEngineFor(settings(), systemClock),
  };
}

function queryOver(connect: TestDatabase['connect']): Query {
  return async (sql, ...values) => {
    const { ask, close } = connect();
    try {
      return await ask(sql, ...values);
    } finally {
      await close();
    }
  };
}

/** The database in this file; its master key is in the file with `.key` appended, unless another file is given. */
export function sqliteAt(path: string, masterKeyFile?: string): TestDatabase {
  const keyFile = masterKeyFile ?? `${path}.key`;
  const flags = { database: `sqlite:${path}`, ...(masterKeyFile ? { masterKeyFile } : {}) };
  /** A connection that waits while a service writes. */
  const openFile = () => {
    const db = new Database(path, { readwrite: true });
    db.run('pragma busy_timeout = 10000');
    return db;
  };
  const connect: TestDatabase['connect'] = () => {
    const db = openFile();
    return {
      ask: async <R>(sql: string, ...values: readonly string[]) => db.query<R, string[]>(sql).all(...values),
      close: async () => db.close(),
    };
  };
  return {
    ...sharedMembers(keyFile, flags),
    connect,
    query: queryOver(connect),
    queryChanges: (sql, ...values) => queryOver(connect)(`${withChanges('sqlite')} ${sql}`, ...values),
    async tamper(sql, ...values) {
      const db = openFile();
      db.run('pragma foreign_keys = off');
      const { changes } = db.query<unknown, string[]>(sql).run(...values);
      db.close();
      return changes;
    },
    async copy() {
      const to = join(freshFolder(), 'copy.db');
      const db = new Database(path, { readwrite: true });
      db.run('vacuum into ?', [to]);
      db.close();
      copyFileSync(keyFile, `${to}.key`);
      return sqliteAt(to);
    },
    findInconsistencies: async (checks) => findInconsistencies(path, checks),
    findPlaintext: async (texts) => textsInFiles(filesOf(dirname(path)), texts),
    async lockWriters() {
      const locking = new Database(path);
      locking.run('begin immediate');
      return async () => {
        locking.run('rollback');
        locking.close();
      };
    },
  };
}

/** One role owns the tables, another serves with the least privileges, as the documentation recommends. */
function twoRoles(url: string): Flags {
  return { database: roleUrl(url, SERVICE), migrateDatabase: roleUrl(url, OWNER) };
}

/** The database at this URL of a superuser; `roles` has the settings of the service. */
export function postgresAt(url: string, masterKeyFile: string, roles: Flags = twoRoles(url)): TestDatabase {
  const flags = { ...roles, masterKeyFile };
  const connect: TestDatabase['connect'] = () => {
    const client = new SQL(url, { max: 1, bigint: true });
    return {
      async ask<R>(sql: string, ...values: readonly string[]) {
        const { text, order } = numberParameters(sql);
        const places = order.map((place) => values[place]);
        return (await client.unsafe(text, places)).map(withNumbers) as R[];
      },
      close: () => client.close(),
    };
  };
  const ask = queryOver(connect);
  return {
    ...sharedMembers(masterKeyFile, flags),
    connect,
    query: ask,
    queryChanges: (sql, ...values) => ask(`${withChanges('postgres')} ${sql}`, ...values),
    async tamper(sql, ...values) {
      const client = new SQL(url, { max: 1 });
      const { text, order } = numberParameters(sql);
      const places = order.map((place) => values[place]);
      return client
        .begin(async (transaction) => {
          // The nodes of a cluster take over what is set for a transaction.
          if (isCitusEngine) await transaction.unsafe(`set local citus.propagate_set_commands to 'local'`);
          await transaction.unsafe('set local session_replication_role = replica');
          return (await transaction.unsafe(text, places)).count;
        })
        .finally(() => client.close());
    },
    async copy() {
      if (isCitusEngine) return postgresAt(await (await sharedCluster()).copyDatabase(url), masterKeyFile);
      const other = new URL(url);
      const name = other.pathname.slice(1);
      other.pathname = `/${name}_${systemClock.mintId().replaceAll('-', '')}`;
      const client = new SQL(new URL('/postgres', url), { max: 1 });
      await client
        .unsafe(`create database ${other.pathname.slice(1)} template ${name} strategy file_copy`)
        .finally(() => client.close());
      return postgresAt(other.href, masterKeyFile);
    },
    async findInconsistencies(checks = CONSISTENCY_CHECKS) {
      const found = await Promise.all(
        checks.map(async ({ withChanges: withOwn, text, values, describe }) =>
          (await ask<{ id: string }>(withOwn('postgres') + text('postgres'), ...values)).map(({ id }) =>
            describe(id),
          ),
        ),
      );
      return found.flat();
    },
    async findPlaintext(texts) {
      const urls = isCitusEngine ? await (await sharedCluster()).urlsOf(url) : [url];
      return textsInFiles((await Promise.all(urls.map(filesOfDatabase))).flat(), texts);
    },
    async lockWriters() {
      const client = new SQL(url, { max: 1 });
      await client.unsafe('begin; lock table instance, realm_clock in exclusive mode').simple();
      return async () => {
        await client.unsafe('rollback').simple();
        await client.close();
      };
    },
  };
}

/** The files of a database, and of the write-ahead log of its server. */
async function filesOfDatabase(url: string): Promise<readonly string[]> {
  const sql = new SQL(url, { max: 1 });
  try {
    await sql.unsafe('checkpoint');
    const [{ folder, database }] = await sql.unsafe(
      `select current_setting('data_directory') as folder, oid::text as database from pg_database
       where datname = current_database()`,
    );
    return ['pg_wal', join('base', database)].flatMap((part) => filesOf(join(folder, part)));
  } finally {
    await sql.close();
  }
}

/** A row whose big integers are numbers, as in SQLite. */
function withNumbers(row: Readonly<Record<string, unknown>>): Record<string, unknown> {
  return Object.fromEntries(
    Object.entries(row).map(([name, value]) => [name, typeof value === 'bigint' ? Number(value) : value]),
  );
}

function filesOf(folder: string): readonly string[] {
  return [...new Bun.Glob('*').scanSync(folder)].map((name) => join(folder, name));
}

/**
 * The bytes of a file, read by another process. A process that closes a file loses its locks on it, also those of SQLite: another
 * process would then truncate what is mapped here.
 */
export function bytesOf(path: string): Buffer {
  return Bun.spawnSync(['cat', path]).stdout;
}

/** The texts that at least one of these files contains. */
export function textsInFiles(paths: readonly string[], texts: readonly string[]): readonly string[] {
  const found = new Set<string>();
  for (const path of paths) {
    const bytes = bytesOf(path);
    for (const text of texts) if (bytes.includes(text)) found.add(text);
  }
  return [...found];
}
