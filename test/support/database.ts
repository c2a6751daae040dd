import { Database } from 'bun:sqlite';
import { copyFileSync, readFileSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { SQL } from 'bun';
import { type Flags, readSettings, SETTINGS, type Settings } from '../../src/config/parse.ts';
import { systemClock } from '../../src/platform/clock.ts';
import { openEngineFor } from '../../src/service/open_database.ts';
import { type DatabaseAddress, type Engine, parseDatabase } from '../../src/store/open.ts';
import { numberParameters } from '../../src/store/postgres/parameters.ts';
import { CONSISTENCY_CHECKS, type ConsistencyCheck, findInconsistencies } from './consistency.ts';
import { freshFolder } from './folder.ts';
import { ROLES, sharedServer } from './postgres_server.ts';
import { runCommand } from './processes.ts';

/** A database of a test, and what can be seen of it from outside the service. SQL takes its values at `?`. */
export interface TestDatabase {
  readonly url: string;
  readonly address: DatabaseAddress;
  readonly masterKeyFile: string;
  /** What a service, or a command, is given to work on it. */
  readonly flags: Flags;
  readonly args: readonly string[];
  /** Opens it, and brings its schema up. */
  open(): Promise<Engine>;
  settings(environment?: Readonly<Record<string, string>>): Settings;
  /** The rows that a statement answers. Long numbers are numbers. */
  query: Ask;
  /** The same over one connection, for whoever looks again and again. */
  connect(): { readonly ask: Ask; close(): Promise<void> };
  /** Runs a statement that no reference holds back. Answers how many rows it wrote. */
  tamper(sql: string, ...values: readonly string[]): Promise<number>;
  /** The same content as another database. Nobody may have this one open. */
  copy(): Promise<TestDatabase>;
  /** What is wrong where records and changes do not agree exactly, in sentences. */
  findInconsistencies(looks?: readonly ConsistencyCheck[]): Promise<readonly string[]>;
  /** Which of these texts lie on the disk in the clear, in whatever the engine keeps there. */
  findPlaintext(texts: readonly string[]): Promise<readonly string[]>;
  /** Keeps every writer waiting until it is let go. */
  lockWriters(): Promise<() => Promise<void>>;
}

type Ask = <R>(sql: string, ...values: readonly string[]) => Promise<R[]>;

type EngineName = DatabaseAddress['engine'];

const ENGINES: { readonly [E in EngineName]: () => Promise<TestDatabase> } = {
  sqlite: async () => sqliteAt(join(freshFolder(), 'test.db')),
  postgres: freshPostgres,
};

/**
 * A database that nobody has open, of the engine that AUTHREALM_TEST_ENGINE names: of SQLite unless it does. Where
 * AUTHREALM_TEST_UPGRADE names a program, that one has brought its schema up.
 */
export async function freshDatabase(): Promise<TestDatabase> {
  const name = process.env.AUTHREALM_TEST_ENGINE ?? 'sqlite';
  if (!(name in ENGINES)) throw new Error(`AUTHREALM_TEST_ENGINE is ${Object.keys(ENGINES).join(' or ')}`);
  const database = await ENGINES[name as EngineName]();
  const upgrade = process.env.AUTHREALM_TEST_UPGRADE;
  if (upgrade !== undefined) await upgradeBy(upgrade, database);
  return database;
}

/** Has the program of a release to come bring up the schema, which this one has made. */
async function upgradeBy(program: string, { flags, open }: TestDatabase): Promise<void> {
  await (await open()).close();
  const url = flags.migrateDatabase ?? flags.database ?? '';
  const { code, stderr } = await runCommand([process.execPath, program, url]);
  if (code !== 0) throw new Error(stderr);
}

/** The database that these flags name; a fresh one where they name none. */
export async function databaseOf({ database, migrateDatabase, masterKeyFile }: Flags): Promise<TestDatabase> {
  if (database === undefined) return freshDatabase();
  const address = parseDatabase(database);
  if (address?.engine === 'sqlite') return sqliteAt(address.path);
  if (masterKeyFile === undefined) throw new Error(`${database} is named without its master key`);
  const roles = migrateDatabase === undefined ? { database } : { database, migrateDatabase };
  return postgresAt(roleUrl(database, 'postgres'), masterKeyFile, roles);
}

async function freshPostgres(): Promise<TestDatabase> {
  const server = await sharedServer();
  const masterKeyFile = join(freshFolder(), 'master.key');
  writeFileSync(masterKeyFile, Buffer.from(systemClock.randomBytes(32)).toString('base64url'), {
    mode: 0o600,
  });
  return postgresAt(await server.freshDatabase(), masterKeyFile);
}

const [OWNER, SERVICE] = ROLES;

/** The same database as another role. It may be on several hosts, which is no URL of the standard. */
function roleUrl(url: string, role: string): string {
  return url.replace(/(?<=^postgres:\/\/)[^@/]*(?=@)/, role);
}

/** What both engines have in common: how a database is named, and opened. */
function named(masterKeyFile: string, flags: Flags) {
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

function askOver(connect: TestDatabase['connect']): Ask {
  return async (sql, ...values) => {
    const { ask, close } = connect();
    try {
      return await ask(sql, ...values);
    } finally {
      await close();
    }
  };
}

/** The database of this file, its master key beside it. */
export function sqliteAt(path: string): TestDatabase {
  /** A connection that waits for its turn, as a service may be writing. */
  const opened = () => {
    const db = new Database(path, { readwrite: true });
    db.run('pragma busy_timeout = 10000');
    return db;
  };
  const connect: TestDatabase['connect'] = () => {
    const db = opened();
    return {
      ask: async <R>(sql: string, ...values: readonly string[]) => db.query<R, string[]>(sql).all(...values),
      close: async () => db.close(),
    };
  };
  return {
    ...named(`${path}.key`, { database: `sqlite:${path}` }),
    connect,
    query: askOver(connect),
    async tamper(sql, ...values) {
      const db = opened();
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
      copyFileSync(`${path}.key`, `${to}.key`);
      return sqliteAt(to);
    },
    findInconsistencies: async (looks) => findInconsistencies(path, looks),
    findPlaintext: async (texts) => foundIn(filesOf(dirname(path)), texts),
    async lockWriters() {
      const holder = new Database(path);
      holder.run('begin immediate');
      return async () => {
        holder.run('rollback');
        holder.close();
      };
    },
  };
}

/** As an operator would have it: one role makes the tables, another one serves and may no more than that takes. */
function twoRoles(url: string): Flags {
  return { database: roleUrl(url, SERVICE), migrateDatabase: roleUrl(url, OWNER) };
}

/** The database at this URL of a role that may do everything; `roles` names it as a service is to know it. */
export function postgresAt(url: string, masterKeyFile: string, roles: Flags = twoRoles(url)): TestDatabase {
  const flags = { ...roles, masterKeyFile };
  const connect: TestDatabase['connect'] = () => {
    const client = new SQL(url, { max: 1, bigint: true });
    return {
      async ask<R>(sql: string, ...values: readonly string[]) {
        const { text, order } = numberParameters(sql);
        const places = order.map((place) => values[place]);
        return (await client.unsafe(text, places)).map(plain) as R[];
      },
      close: () => client.close(),
    };
  };
  const ask = askOver(connect);
  return {
    ...named(masterKeyFile, flags),
    connect,
    query: ask,
    async tamper(sql, ...values) {
      const client = new SQL(url, { max: 1 });
      const { text, order } = numberParameters(sql);
      await client.unsafe('set session_replication_role = replica');
      const { count } = await client
        .unsafe(
          text,
          order.map((place) => values[place]),
        )
        .finally(() => client.close());
      return count;
    },
    async copy() {
      const other = new URL(url);
      const name = other.pathname.slice(1);
      other.pathname = `/${name}_${systemClock.mintId().replaceAll('-', '')}`;
      const client = new SQL(new URL('/postgres', url), { max: 1 });
      await client
        .unsafe(`create database ${other.pathname.slice(1)} template ${name} strategy file_copy`)
        .finally(() => client.close());
      return postgresAt(other.href, masterKeyFile);
    },
    async findInconsistencies(looks = CONSISTENCY_CHECKS) {
      const found = await Promise.all(
        looks.map(async ({ text, values, describe }) =>
          (await ask<{ id: string }>(text, ...values)).map(({ id }) => describe(id)),
        ),
      );
      return found.flat();
    },
    async findPlaintext(texts) {
      await ask('checkpoint');
      const [place] = await ask<{ folder: string; database: string }>(
        `select current_setting('data_directory') as folder, oid::text as database from pg_database
         where datname = current_database()`,
      );
      const { folder = '', database = '' } = place ?? {};
      return foundIn(
        ['pg_wal', join('base', database)].flatMap((part) => filesOf(join(folder, part))),
        texts,
      );
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

/** A row whose long numbers are numbers, as SQLite has them. */
function plain(row: Readonly<Record<string, unknown>>): Record<string, unknown> {
  return Object.fromEntries(
    Object.entries(row).map(([name, value]) => [name, typeof value === 'bigint' ? Number(value) : value]),
  );
}

function filesOf(folder: string): readonly string[] {
  return [...new Bun.Glob('*').scanSync(folder)].map((name) => join(folder, name));
}

/** Texts that stand in one of these files at least. */
function foundIn(paths: readonly string[], texts: readonly string[]): readonly string[] {
  const found = new Set<string>();
  for (const path of paths) {
    const bytes = readFileSync(path);
    for (const text of texts) if (bytes.includes(text)) found.add(text);
  }
  return [...found];
}
