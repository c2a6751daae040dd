import { constants, Database, SQLiteError } from 'bun:sqlite';
import { closeSync, openSync, readSync, statSync } from 'node:fs';
import { Refusal } from '../../domain/fault.ts';
import { assertComplete } from '../copying/unfinished_copy.ts';
import { assertServableSchema } from '../migrations.ts';
import { sqliteSchemaDifferences } from '../sqlite/inspection.ts';
import { sqliteSchemaVersion } from '../sqlite/migrate.ts';
import { sqliteMigrations } from '../sqlite/open.ts';

/** What a database was found to be. */
export interface DatabaseSummary {
  readonly schema: number;
  readonly storeId: string;
  readonly rows: Readonly<Record<string, number>>;
}

/**
 * Looks through a file that nobody writes: whole, sound, of this program, and of a schema that it serves or can bring up.
 * Throws Refusal with what is wrong; the sentence goes on after the name of the file.
 */
export function examineDatabase(path: string, programVersion: string): DatabaseSummary {
  assertLength(path);
  const db = openImmutable(path);
  try {
    const schema = assertKnownSchema(db, programVersion);
    assertIntegrity(db);
    for (const { type, name, is } of sqliteSchemaDifferences(db, sqliteMigrations()))
      throw new Refusal(`the ${type} ${name} is ${is}`);
    const storeId = textOf(db, 'select store_id as text from instance');
    if (storeId === undefined) throw new Refusal('it does not say which installation it is of');
    assertComplete(storeId);
    return { schema, storeId, rows: countRows(db) };
  } catch (error) {
    if (error instanceof SQLiteError) throw damaged(error.message);
    throw error;
  } finally {
    db.close(false);
  }
}

/** Without a lock, and without looking for a log beside it. */
function openImmutable(path: string): Database {
  const still = `${Bun.pathToFileURL(path).href}?immutable=1`;
  return new Database(still, constants.SQLITE_OPEN_READONLY | constants.SQLITE_OPEN_URI);
}

const MAGIC = 'SQLite format 3\0';
const HEADER_BYTES = 100;
/** Where the header tells the bytes of a page, and the number of pages (sqlite.org/fileformat2.html, 1.3). */
const PAGE_BYTES_AT = 16;
const PAGES_AT = 28;

/** The beginning of a file, or undefined where it is not that of a SQLite database. */
export function headerOf(path: string): Buffer | undefined {
  const header = Buffer.alloc(HEADER_BYTES);
  const file = openSync(path, 'r');
  try {
    readSync(file, header, 0, HEADER_BYTES, 0);
  } finally {
    closeSync(file);
  }
  return header.toString('latin1', 0, MAGIC.length) === MAGIC ? header : undefined;
}

/** The engine reads a file that was cut as far as it goes, and finds nothing wrong with some. */
function assertLength(path: string): void {
  const { size } = statSync(path);
  const header = headerOf(path);
  if (!header) throw new Refusal('it is no SQLite database');
  const pageBytes = header.readUInt16BE(PAGE_BYTES_AT);
  // The largest page does not fit its field, and is written as 1.
  const expected = (pageBytes === 1 ? 65_536 : pageBytes) * header.readUInt32BE(PAGES_AT);
  if (size !== expected)
    throw new Refusal(`it has ${size} bytes, its own header says ${expected}: it was cut, or is damaged`);
}

function assertKnownSchema(db: Database, programVersion: string): number {
  const known = sqliteMigrations();
  const found = sqliteSchemaVersion(db);
  const schema = assertServableSchema(found, 'auto', known.at(-1)?.version ?? 0, programVersion);
  if (schema === undefined) throw new Refusal('it is empty');
  return schema;
}

function assertIntegrity(db: Database): void {
  const complaint = db
    .query<{ integrity_check: string }, []>('pragma integrity_check(1)')
    .get()?.integrity_check;
  if (complaint !== 'ok') throw damaged(complaint ?? 'the engine says nothing');
  const orphan = textOf(db, 'select "table" as text from pragma_foreign_key_check limit 1');
  if (orphan !== undefined) throw damaged(`a row of ${orphan} refers to one that is not there`);
}

function damaged(why: string): Refusal {
  return new Refusal(`it is damaged: ${why.replaceAll('\n', ' ')}`);
}

function textOf(db: Database, sql: string): string | undefined {
  return db.query<{ text: string }, []>(sql).get()?.text;
}

const TABLES = `select name as text from sqlite_schema where type = 'table' and name not like 'sqlite_%' order by name`;

function countRows(db: Database): Record<string, number> {
  const names = db.query<{ text: string }, []>(TABLES).all();
  return Object.fromEntries(
    names.map(({ text }) => [
      text,
      db.query<{ n: number }, []>(`select count(*) as n from "${text}"`).get()?.n ?? 0,
    ]),
  );
}
