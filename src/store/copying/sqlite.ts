import { Database, type Statement } from 'bun:sqlite';
import { existsSync, realpathSync, statSync } from 'node:fs';
import { Refusal } from '../../domain/fault.ts';
import type { Uuid } from '../../domain/id.ts';
import { LIMITS } from '../../domain/limits.ts';
import { membersOf } from '../../domain/resource.ts';
import type { Program } from '../migrations.ts';
import { comparedColumn, hashColumn } from '../records/derived_columns.ts';
import { textHash } from '../records/text_hash.ts';
import { connectSqlite, MAPPED_BYTES_MAX, retryWhileBusy } from '../sqlite/connection.ts';
import { assertNoOrphanedLog } from '../sqlite/database_files.ts';
import { SQLITE, uuidTextOf } from '../sqlite/dialect.ts';
import { assertSqliteSchema } from '../sqlite/migrate.ts';
import { openSqlite, sqliteMigrations } from '../sqlite/open.ts';
import type { SqlValue } from '../transaction_work.ts';
import type { CopySource, CopyTarget, PrimaryKey } from './port.ts';
import { assertNewest } from './schema.ts';
import {
  keyPlaceholders,
  onConflict,
  REPLACE_INSTALLATION,
  SELECT_INSTALLATION,
  SELECT_MARKER,
  type SqlText,
  selectPageEnd,
  selectRange,
} from './statements.ts';
import type { CopiedTable } from './tables.ts';
import { assertMarked } from './unfinished_copy.ts';

type CopiedRow = Readonly<Record<string, string | number | null>>;

/** A SQLite source, read in one transaction, which does not block writers. */
export async function openSqliteSource(path: string, program: Program): Promise<CopySource> {
  const db = await openToRead(path);
  try {
    assertSqliteCopySchema(db, 'source', program);
    await retryWhileBusy(() => {
      db.run('begin');
      // The first read of the transaction takes its snapshot.
      db.query('select count(*) from instance').get();
    }, LIMITS.migrationWaitMsMax);
    return sourceOver(db);
  } catch (error) {
    db.close(false);
    throw error;
  }
}

async function openToRead(path: string): Promise<Database> {
  if (path === ':memory:') throw new Refusal('an in-memory database cannot be copied: pass a file');
  assertNoOrphanedLog(path);
  if (!existsSync(path)) throw new Refusal('there is no database at this path');
  return retryWhileBusy(() => {
    const db = new Database(path, { readonly: true, strict: true });
    db.run('pragma busy_timeout = 0');
    db.run(`pragma mmap_size = ${MAPPED_BYTES_MAX}`);
    return db;
  }, LIMITS.migrationWaitMsMax);
}

/** Throws Refusal for another schema than a copy needs. */
function assertSqliteCopySchema(db: Database, which: 'source' | 'target', program: Program): void {
  const newest = sqliteMigrations().at(-1)?.version ?? 0;
  assertNewest(assertSqliteSchema(db, 'auto', newest, program), newest, which);
}

/** The same for a target, which may be missing or empty. */
async function assertTargetSchema(path: string, program: Program): Promise<void> {
  if (!existsSync(path) || statSync(path).size === 0) return;
  const db = await openToRead(path);
  try {
    assertSqliteCopySchema(db, 'target', program);
  } finally {
    db.close(false);
  }
}

/** A SQLite target. The file is created if it does not exist. */
export async function openSqliteTarget(path: string, program: Program): Promise<CopyTarget> {
  await assertTargetSchema(path, program);
  await (await openSqlite(path, 'check', program)).close();
  const db = await retryWhileBusy(() => connectSqlite(path), LIMITS.migrationWaitMsMax);
  db.run(`pragma cache_size = -${CACHE_KIB}`);
  return targetOver(db);
}

/** Inserts touch random pages of every index. */
const CACHE_KIB = 262_144;

function sourceOver(db: Database): CopySource {
  const prepared = openStatementCache(db);
  const columnTypes = openColumnTypes(db);
  const selectLines = (table: CopiedTable, range: SqlText): string[] => {
    const members = table.columns
      .map((column) => `'${column}', ${jsonValueOf(table, column, columnTypes(table.name))}`)
      .join(', ');
    const found = prepared(`select json_object(${members}) ${range.text}`).values(...range.values);
    return (found as string[][]).map(([line]) => line as string);
  };
  return {
    async identity() {
      const { dev, ino } = statSync(realpathSync(db.filename));
      return `sqlite ${dev}:${ino}`;
    },
    async installation() {
      const row = prepared(SELECT_INSTALLATION).get() as CopiedRow | null;
      return { storeId: String(row?.store_id ?? ''), accessVersion: Number(row?.access_version ?? 0) };
    },
    count: async ({ name }) => Number(prepared(`select count(*) from ${name}`).values()[0]?.[0]),
    async pageEnd(table, after) {
      const { text, values } = selectPageEnd(table, after, SQLITE.logIds);
      const key = table.key.map((column) =>
        table.idColumns?.includes(column) ? uuidTextOf(column) : column,
      );
      return prepared(`select ${key.join(', ')} ${text}`).values(...values)[0] as PrimaryKey | undefined;
    },
    async digest(table, range) {
      const found = selectLines(table, selectRange(table, range, SQLITE.logIds));
      const digest = new Bun.CryptoHasher('sha256').update(found.join('\n')).digest('hex');
      return { rows: found.length, digest };
    },
    rows: async (table, range) => selectLines(table, selectRange(table, range, SQLITE.logIds)),
    close: async () => db.close(false),
  };
}

function jsonValueOf(
  { name, idColumns }: CopiedTable,
  column: string,
  columnTypes: ReadonlyMap<string, string>,
): string {
  const type = columnTypes.get(column);
  if (type === undefined) throw new Error(`table ${name} has no column ${column}`);
  if (type !== 'BLOB') return column;
  // hex(null) returns an empty text.
  const text = idColumns?.includes(column) ? uuidTextOf(column) : `lower(hex(${column}))`;
  return `iif(${column} is null, null, ${text})`;
}

function targetOver(db: Database): CopyTarget {
  const prepared = openStatementCache(db);
  const columnTypes = openColumnTypes(db);
  const insertions = new Map<CopiedTable, Insertion>();

  function insertionOf(table: CopiedTable): Insertion {
    const insertion = insertions.get(table) ?? insertionInto(table, columnTypes(table.name));
    insertions.set(table, insertion);
    return insertion;
  }

  const inTransaction = <T>(work: () => T): Promise<T> =>
    retryWhileBusy(() => db.transaction(work).immediate(), LIMITS.migrationWaitMsMax);
  const inMarkedTransaction = (marker: string, work: () => void): Promise<void> =>
    inTransaction(() => {
      assertMarked(prepared(SELECT_MARKER).get(marker) !== null);
      work();
    });

  return {
    ...sourceOver(db),
    remove({ table, rows, marker }) {
      const placeholders = keyPlaceholders(table, SQLITE.logIds);
      const matches = table.key.map((column, at) => `${column} = ${placeholders[at]}`);
      const removal = prepared(`delete from ${table.name} where ${matches.join(' and ')}`);
      return inMarkedTransaction(marker, () => {
        for (const line of rows) {
          const row = JSON.parse(line) as CopiedRow;
          removal.run(...table.key.map((column) => row[column] as string | number));
        }
      });
    },
    put({ table, rows, marker }) {
      const { text, valuesOf } = insertionOf(table);
      const insert = prepared(text);
      return inMarkedTransaction(marker, () => {
        for (const line of rows) insert.run(...valuesOf(JSON.parse(line) as CopiedRow));
      });
    },
    replaceInstallation: (old, { storeId, accessVersion }) =>
      inTransaction(() => {
        const values = [storeId, accessVersion, old.storeId, old.accessVersion];
        return prepared(REPLACE_INSTALLATION).get(...values) !== null;
      }),
    analyze: async () => undefined,
  };
}

interface Insertion {
  readonly text: string;
  readonly valuesOf: (row: CopiedRow) => SqlValue[];
}

/** Also fills the columns that only SQLite has, as for any other record. */
function insertionInto(table: CopiedTable, columnTypes: ReadonlyMap<string, string>): Insertion {
  const { resource, columns } = table;
  const isBytes = columns.map((column) => columnTypes.get(column) === 'BLOB');
  const columnValues = (row: CopiedRow): SqlValue[] =>
    columns.map((column, at) => {
      const value = row[column] ?? null;
      // An ID has hyphens.
      return isBytes[at] && value !== null ? Uint8Array.fromHex(String(value).replaceAll('-', '')) : value;
    });
  if (!resource) {
    const placeholders = columns.map(() => '?').join(', ');
    const text = `insert into ${table.name} (${columns.join(', ')}) values (${placeholders})`;
    return { text: text + onConflict(table), valuesOf: columnValues };
  }
  const hashed = membersOf(resource).filter(({ annotation }) => annotation.hashColumn);
  const hashColumns = hashed.map(({ name }) => hashColumn(name));
  const { text, lead } = SQLITE.insertion(resource, [...columns, ...hashColumns]);
  const id = table.key.at(-1) as string;
  return {
    text: text + onConflict(table, hashColumns),
    valuesOf: (row) => [
      ...lead(row[id] as Uuid),
      ...columnValues(row),
      ...hashed.map(({ name }) => textHash(String(row[comparedColumn(resource, name)]))),
    ],
  };
}

function openStatementCache(db: Database): (text: string) => Statement<unknown, SqlValue[]> {
  const cached = new Map<string, Statement<unknown, SqlValue[]>>();
  return (text) => {
    const statement = cached.get(text) ?? db.prepare<unknown, SqlValue[]>(text);
    cached.set(text, statement);
    return statement;
  };
}

/** The column types of tables. */
function openColumnTypes(db: Database): (table: string) => ReadonlyMap<string, string> {
  const types = new Map<string, ReadonlyMap<string, string>>();
  return (table) => {
    const columns = db.query<{ name: string; type: string }, [string]>(
      'select name, type from pragma_table_info(?)',
    );
    const found = types.get(table) ?? new Map(columns.all(table).map(({ name, type }) => [name, type]));
    types.set(table, found);
    return found;
  };
}
