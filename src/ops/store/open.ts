import type { MigrateMode, Program } from '../../sql/migrations.ts';
import { type PostgresAddress, parsePostgres } from '../../sql/postgres/address.ts';
import { withAdvice } from '../../sql/refusals.ts';
import type { Engine, EngineInspection } from './engine.ts';

export type { ReaderSearchRequest } from '../../records/store/lists/realm_search.ts';
export type { MigrateMode, Program } from '../../sql/migrations.ts';
export {
  type PostgresAddress,
  parsePostgres,
  postgresUrlError,
} from '../../sql/postgres/address.ts';
export { toRefusal } from '../../sql/refusals.ts';
export { fileSize } from '../../sql/sqlite/database_files.ts';
export type { Engine } from './engine.ts';

/** A SQLite file, or `:memory:` for a database that exists only in this process. */
export interface SqliteAddress {
  readonly engine: 'sqlite';
  readonly path: string;
}

export type DatabaseAddress = SqliteAddress | PostgresAddress;

/** Without a scheme: a path with a folder, or a name that ends like that of a SQLite file. A word alone may be a typing error. */
const PLAIN_PATH = /^(?![a-z][a-z0-9+.-]*:)(?:.*\/[^/]+|.+\.(?:db|sqlite|sqlite3))$/i;

/** Parses `sqlite:PATH`, a path and `postgres://…`. Returns undefined for anything else. */
export function parseDatabase(url: string): DatabaseAddress | undefined {
  const path = /^sqlite:(?:\/\/(?=\/))?(.+)$/.exec(url)?.[1] ?? PLAIN_PATH.exec(url)?.[0];
  return path === undefined ? parsePostgres(url) : { engine: 'sqlite', path };
}

/** The modules of an engine are imported when a database is opened: no process needs both engines, nor a help text one. */
const sqlite = () => import('./sqlite/open.ts');
const postgres = () => import('./postgres/open.ts');

/**
 * Opens the database; creates it if it is absent, and migrates its schema if `mode` permits it, on a server with the role
 * of `owner` if there is one. Throws Refusal.
 */
export async function openEngine(
  address: DatabaseAddress,
  mode: MigrateMode,
  program: Program,
  owner?: PostgresAddress,
): Promise<Engine> {
  return withAdvice(addressName(address), async () =>
    address.engine === 'sqlite'
      ? (await sqlite()).openSqlite(address.path, mode, program)
      : (await postgres()).openPostgres(address, mode, program, owner),
  );
}

/** Closes an engine after an error, and ignores errors of closing it: the first error is reported. */
export async function closeQuietly(engine: Pick<Engine, 'close'>): Promise<void> {
  try {
    await engine.close();
  } catch {}
}

/** The URL of a database for messages. */
export function urlWithoutPassword(url: string): string {
  return url.replace(/^(postgres(?:ql)?:\/\/[^:/?#]*):[^/?#]*@/, '$1@');
}

/** The name of a database for messages, without a password. */
export function addressName(address: DatabaseAddress): string {
  if (address.engine === 'sqlite') return address.path;
  return `${address.database} on ${address.hosts.map(({ host, port }) => `${host}:${port}`).join(', ')}`;
}

/** Whether the database exists only in this process. */
export function isInMemory(address: DatabaseAddress): boolean {
  return address.engine === 'sqlite' && address.path === ':memory:';
}

/** The file of a SQLite database; undefined for every other database. */
export function fileOf(address: DatabaseAddress): string | undefined {
  return address.engine === 'sqlite' && !isInMemory(address) ? address.path : undefined;
}

/** Whether a SQLite file has tables. Throws Refusal where it cannot be read. */
export async function isFileUsed(path: string): Promise<boolean> {
  return withAdvice(path, async () => (await import('./sqlite/inspection.ts')).isSqliteFileUsed(path));
}

/** Runs a check on read-only views of a SQLite file, and again after a rollback journal next to it was rolled back. */
export async function withRollback<T>(path: string, check: () => Promise<T>): Promise<T> {
  return (await import('../../sql/sqlite/connection.ts')).repeatAfterRollback(path, check);
}

/** Opens a read-only view of a database with any schema. Throws Refusal if there is none. */
export async function inspectEngine(address: DatabaseAddress): Promise<EngineInspection> {
  return withAdvice(addressName(address), async () => {
    if (address.engine === 'postgres')
      return (await import('./postgres/inspection.ts')).inspectPostgres(address);
    const { inspectSqlite } = await import('./sqlite/inspection.ts');
    return inspectSqlite(address.path, (await sqlite()).sqliteMigrations());
  });
}

/** Opens a database that the parent process has opened before. */
export async function reopenEngine(address: DatabaseAddress): Promise<Engine> {
  return withAdvice(addressName(address), async () =>
    address.engine === 'sqlite'
      ? (await sqlite()).reopenSqlite(address.path)
      : (await postgres()).reopenPostgres(address),
  );
}
