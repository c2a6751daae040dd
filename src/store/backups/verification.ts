import { constants, Database, SQLiteError } from 'bun:sqlite';
import { closeSync, openSync, readSync, statSync } from 'node:fs';
import { Refusal } from '../../domain/fault.ts';
import { assertServableSchema } from '../migrations.ts';
import { toRefusal } from '../refusals.ts';
import { queryOnce } from '../sqlite/connection.ts';
import { sqliteSchemaDifferences } from '../sqlite/inspection.ts';
import { sqliteSchemaVersion } from '../sqlite/migrate.ts';
import { sqliteMigrations } from '../sqlite/open.ts';

/** The schema, the installation and the row counts of a verified database. */
export interface DatabaseSummary {
  readonly schema: number;
  readonly storeId: string;
  readonly rows: Readonly<Record<string, number>>;
}

/**
 * Verifies a database file that is not in use: that it is complete and undamaged, and has a schema that this program
 * can serve or migrate. Throws Refusal with a message that begins with `label`.
 */
export function verifyDatabaseFile(path: string, label: string, programVersion: string): DatabaseSummary {
  return withLabel(path, label, () => {
    assertLength(path);
    return verifyContent(path, programVersion);
  });
}

/**
 * Verifies a database that this process has locked. It does not read the file by itself: closing a second descriptor would
 * drop the lock.
 */
export function verifyLockedDatabase(path: string, label: string, programVersion: string): DatabaseSummary {
  return withLabel(path, label, () => verifyContent(path, programVersion));
}

function withLabel<T>(path: string, label: string, work: () => T): T {
  try {
    return work();
  } catch (error) {
    const refusal = toRefusal(error, path);
    if (!(refusal instanceof Refusal)) throw error;
    throw new Refusal(`${label}: ${refusal.message}`, { cause: error });
  }
}

function verifyContent(path: string, programVersion: string): DatabaseSummary {
  const db = openImmutable(path);
  try {
    const schema = assertKnownSchema(db, programVersion);
    assertIntegrity(db);
    for (const { type, name, is } of sqliteSchemaDifferences(db, sqliteMigrations()))
      throw new Refusal(`the ${type} ${name} is ${is}`);
    const [storeId] = textsOf(db, 'select store_id as text from instance');
    if (storeId === undefined) throw new Refusal('it has no installation ID');
    return { schema, storeId, rows: countRows(db) };
  } catch (error) {
    if (error instanceof SQLiteError) throw damaged(error.message);
    throw error;
  } finally {
    db.close(false);
  }
}

/** Opens the file without locks, and without a write-ahead log. */
function openImmutable(path: string): Database {
  const uri = `${Bun.pathToFileURL(path).href}?immutable=1`;
  return new Database(uri, constants.SQLITE_OPEN_READONLY | constants.SQLITE_OPEN_URI);
}

const MAGIC = 'SQLite format 3\0';
const DATABASE_HEADER_BYTES = 100;
/** Offsets of the page size and the number of pages in the header (sqlite.org/fileformat2.html, 1.3). */
const PAGE_BYTES_AT = 16;
const PAGES_AT = 28;

/** The header of a SQLite database; undefined for other files. */
export function headerOf(path: string): Buffer | undefined {
  const header = Buffer.alloc(DATABASE_HEADER_BYTES);
  const file = openSync(path, 'r');
  try {
    readSync(file, header, 0, DATABASE_HEADER_BYTES, 0);
  } finally {
    closeSync(file);
  }
  return header.toString('latin1', 0, MAGIC.length) === MAGIC ? header : undefined;
}

/** Compares the length with the header, because the engine does not detect every truncated file. */
function assertLength(path: string): void {
  const { size } = statSync(path);
  const header = headerOf(path);
  if (!header) throw new Refusal('it is not a SQLite database');
  const pageBytes = header.readUInt16BE(PAGE_BYTES_AT);
  // The largest page size, 65,536, does not fit the field, and is stored as 1.
  const expected = (pageBytes === 1 ? 65_536 : pageBytes) * header.readUInt32BE(PAGES_AT);
  if (size !== expected)
    throw new Refusal(
      `it has ${size} bytes, but its own header says ${expected}: it is truncated or damaged`,
    );
}

function assertKnownSchema(db: Database, programVersion: string): number {
  const known = sqliteMigrations();
  const found = sqliteSchemaVersion(db);
  const schema = assertServableSchema(found, 'auto', known.at(-1)?.version ?? 0, { version: programVersion });
  if (schema === undefined) throw new Refusal('it is empty');
  return schema;
}

function assertIntegrity(db: Database): void {
  const [result] = queryOnce<{ integrity_check: string }>(db, 'pragma integrity_check(1)');
  if (result?.integrity_check !== 'ok')
    throw damaged(result?.integrity_check ?? 'the integrity check returned nothing');
  const [orphan] = textsOf(db, 'select "table" as text from pragma_foreign_key_check limit 1');
  if (orphan !== undefined) throw damaged(`a row of ${orphan} references a row that does not exist`);
}

function damaged(why: string): Refusal {
  return new Refusal(`it is damaged: ${why.replaceAll('\n', ' ')}`);
}

function textsOf(db: Database, sql: string): readonly string[] {
  return queryOnce<{ text: string }>(db, sql).map(({ text }) => text);
}

const SELECT_TABLES = `select name as text from sqlite_schema where type = 'table' and name not like 'sqlite_%' order by name`;

function countRows(db: Database): Record<string, number> {
  const countOf = (table: string): number =>
    queryOnce<{ n: number }>(db, `select count(*) as n from "${table}"`)[0]?.n ?? 0;
  return Object.fromEntries(textsOf(db, SELECT_TABLES).map((table) => [table, countOf(table)]));
}
