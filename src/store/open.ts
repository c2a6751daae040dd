import type { Ambient } from '../domain/id.ts';
import { refusalOf } from './advice.ts';
import { inspectSqlite, type SqliteInspection } from './sqlite/inspection.ts';
import type { MigrateMode } from './sqlite/migrate.ts';
import { type Engine, knownMigrations, openSqlite, reopenSqlite } from './sqlite/open.ts';
import { openReader as openSqliteReader, type Reader } from './sqlite/reader.ts';

export { refusalOf } from './advice.ts';
export type { CountQuestion } from './counting.ts';
export type { AskReader, ListQuestion } from './sqlite/lists.ts';
export type { MigrateMode } from './sqlite/migrate.ts';
export type { Engine } from './sqlite/open.ts';

/** Where the records are: today a SQLite file, or `:memory:` for one that ends with the process. */
export interface DatabaseAddress {
  readonly engine: 'sqlite';
  readonly path: string;
}

/** Reads `sqlite:PATH`. Answers undefined for anything else. */
export function parseDatabase(url: string): DatabaseAddress | undefined {
  const path = /^sqlite:(?:\/\/(?=\/))?(.+)$/.exec(url)?.[1];
  return path === undefined ? undefined : { engine: 'sqlite', path };
}

export interface Program {
  readonly version: string;
  readonly ambient: Ambient;
}

/** Opens the database, made if absent, its schema brought up as `mode` says. Throws Refusal with what to do. */
export async function openEngine(
  address: DatabaseAddress,
  mode: MigrateMode,
  program: Program,
): Promise<Engine> {
  try {
    return await openSqlite(address.path, mode, program);
  } catch (error) {
    throw refusalOf(error, address.path);
  }
}

/** Opens a database to look at it, whatever its schema. Throws Refusal where there is none. */
export function inspectEngine({ path }: DatabaseAddress): SqliteInspection {
  return inspectSqlite(path, knownMigrations());
}

/** Opens a database that the parent process has already made ready. */
export async function reopenEngine(address: DatabaseAddress): Promise<Engine> {
  try {
    return await reopenSqlite(address.path);
  } catch (error) {
    throw refusalOf(error, address.path);
  }
}

/** Opens a database that the parent process has ready, to read what is long, and nothing else. */
export async function openReader(address: DatabaseAddress): Promise<Reader> {
  try {
    return await openSqliteReader(address.path);
  } catch (error) {
    throw refusalOf(error, address.path);
  }
}
