import { Database, type Statement } from 'bun:sqlite';
import { existsSync, realpathSync, statSync } from 'node:fs';
import { Refusal } from '../../domain/fault.ts';
import type { Uuid } from '../../domain/id.ts';
import { LIMITS } from '../../domain/limits.ts';
import { membersOf } from '../../domain/resource.ts';
import type { Program } from '../migrations.ts';
import { comparedColumn, hashColumn } from '../records/statements.ts';
import { textHash } from '../records/text_hash.ts';
import { connectSqlite, MAPPED_BYTES_MAX, retryWhileBusy } from '../sqlite/connection.ts';
import { assertNoOrphanedLog } from '../sqlite/database_files.ts';
import { SQLITE } from '../sqlite/dialect.ts';
import { assertSqliteSchema } from '../sqlite/migrate.ts';
import { openSqlite, sqliteMigrations } from '../sqlite/open.ts';
import type { SqlValue } from '../transaction_work.ts';
import type { CopySource, CopyTarget, PrimaryKey } from './port.ts';
import { assertNewest } from './schema.ts';
import {
  onConflict,
  REPLACE_INSTALLATION,
  SELECT_INSTALLATION,
  SELECT_MARK,
  type SqlText,
  selectPageEnd,
  selectRange,
} from './statements.ts';
import { type CopiedTable, transferredColumns } from './tables.ts';
import { assertMarked } from './unfinished_copy.ts';

type Row = Readonly<Record<string, string | number | null>>;

/** A SQLite file that is copied from, by one read transaction; writers do not wait for it. */
export async function openSqliteSource(path: string, program: Program): Promise<CopySource> {
  const db = await openToRead(path);
  try {
    assertSchema(db, 'source', program);
    await retryWhileBusy(() => {
      db.run('begin');
      // A transaction sees the moment of its first read.
      db.query('select count(*) from instance').get();
    }, LIMITS.migrationWaitMsMax);
    return reading(db);
  } catch (error) {
    db.close(false);
    throw error;
  }
}

async function openToRead(path: string): Promise<Database> {
  if (path === ':memory:') throw new Refusal('a database in memory ends with its process: name a file');
  assertNoOrphanedLog(path);
  if (!existsSync(path)) throw new Refusal('there is no database there');
  return retryWhileBusy(() => {
    const db = new Database(path, { readonly: true, strict: true });
    db.run('pragma busy_timeout = 0');
    db.run(`pragma mmap_size = ${MAPPED_BYTES_MAX}`);
    return db;
  }, LIMITS.migrationWaitMsMax);
}

function assertSchema(db: Database, which: 'source' | 'target', { version }: Program): void {
  const newest = sqliteMigrations().at(-1)?.version ?? 0;
  assertNewest(assertSqliteSchema(db, 'auto', newest, version), newest, which);
}

/** A SQLite file that is copied to, made where there is none. */
export async function openSqliteTarget(path: string, program: Program): Promise<CopyTarget> {
  if (existsSync(path) && statSync(path).size > 0) {
    const looking = await openToRead(path);
    try {
      assertSchema(looking, 'target', program);
    } finally {
      looking.close(false);
    }
  }
  await (await openSqlite(path, 'check', program)).close();
  const db = await retryWhileBusy(() => connectSqlite(path), LIMITS.migrationWaitMsMax);
  db.run(`pragma cache_size = -${CACHE_KIB}`);
  return writing(db);
}

/** New rows go into every index, all over it. */
const CACHE_KIB = 262_144;

function reading(db: Database): CopySource {
  const prepared = preparing(db);
  const kinds = kindsOf(db);
  const lines = (table: CopiedTable, columns: readonly string[], range: SqlText): string[] => {
    const members = columns
      .map((column) => `'${column}', ${jsonValueOf(kinds(table.name), column)}`)
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
      const row = prepared(SELECT_INSTALLATION).get() as Row | null;
      return { storeId: String(row?.store_id ?? ''), accessVersion: Number(row?.access_version ?? 0) };
    },
    count: async ({ name }) => Number(prepared(`select count(*) from ${name}`).values()[0]?.[0]),
    async pageEnd(table, after) {
      const { text, values } = selectPageEnd(table, after);
      return prepared(`select ${table.key.join(', ')} ${text}`).values(...values)[0] as
        | PrimaryKey
        | undefined;
    },
    async sum(table, range) {
      const found = lines(table, table.columns, selectRange(table, range));
      const digest = new Bun.CryptoHasher('sha256').update(found.join('\n')).digest('hex');
      return { rows: found.length, digest };
    },
    rows: async (table, range) => lines(table, transferredColumns(table), selectRange(table, range)),
    close: async () => db.close(false),
  };
}

function jsonValueOf(kinds: ReadonlyMap<string, string>, column: string): string {
  const kind = kinds.get(column);
  if (kind === undefined) throw new Error(`no table has a column ${column}`);
  // Without bytes there are no digits either: the function would answer an empty text.
  return kind === 'BLOB' ? `iif(${column} is null, null, lower(hex(${column})))` : column;
}

function writing(db: Database): CopyTarget {
  const prepared = preparing(db);
  const kinds = kindsOf(db);
  const insertions = new Map<CopiedTable, Insertion>();

  function insertionOf(table: CopiedTable): Insertion {
    const insertion = insertions.get(table) ?? insertionInto(table, kinds(table.name));
    insertions.set(table, insertion);
    return insertion;
  }

  const inOneCommit = <T>(work: () => T): Promise<T> =>
    retryWhileBusy(() => db.transaction(work).immediate(), LIMITS.migrationWaitMsMax);
  const inCommitOf = (mark: string, work: () => void): Promise<void> =>
    inOneCommit(() => {
      assertMarked(prepared(SELECT_MARK).get(mark) !== null);
      work();
    });

  return {
    ...reading(db),
    remove({ table, rows, mark }) {
      const removal = prepared(
        `delete from ${table.name} where ${table.key.map((column) => `${column} = ?`).join(' and ')}`,
      );
      return inCommitOf(mark, () => {
        for (const line of rows) {
          const row = JSON.parse(line) as Row;
          removal.run(...table.key.map((column) => row[column] as string | number));
        }
      });
    },
    put({ table, rows, mark }) {
      const { text, valuesOf } = insertionOf(table);
      const insert = prepared(text);
      return inCommitOf(mark, () => {
        for (const line of rows) insert.run(...valuesOf(JSON.parse(line) as Row));
      });
    },
    replaceInstallation: (old, { storeId, accessVersion }) =>
      inOneCommit(() => {
        const values = [storeId, accessVersion, old.storeId, old.accessVersion];
        return prepared(REPLACE_INSTALLATION).get(...values) !== null;
      }),
    analyze: async () => undefined,
  };
}

interface Insertion {
  readonly text: string;
  readonly valuesOf: (row: Row) => SqlValue[];
}

/** Also fills the columns that this engine keeps in addition to those of the description, as for any other record. */
function insertionInto(table: CopiedTable, kinds: ReadonlyMap<string, string>): Insertion {
  const { resource, loose } = table;
  const columns = transferredColumns(table);
  const isBytes = columns.map((column) => kinds.get(column) === 'BLOB');
  const own = (row: Row): SqlValue[] =>
    columns.map((column, at) => {
      const value = row[column] ?? null;
      return isBytes[at] && value !== null ? Uint8Array.fromHex(String(value)) : value;
    });
  if (!resource) {
    const places = columns.map((column) => (column === loose ? FREE_ORDINAL : `$${column}`));
    const numbered = places.join(', ').replace(/\$(\w+)/g, (_, name) => `?${columns.indexOf(name) + 1}`);
    const text = `insert into ${table.name} (${columns.join(', ')}) values (${numbered})`;
    return { text: text + onConflict(table), valuesOf: own };
  }
  const summed = membersOf(resource).filter(({ annotation }) => annotation.hashColumn);
  const sums = summed.map(({ name }) => hashColumn(name));
  const { text, lead } = SQLITE.insertion(resource, [...columns, ...sums]);
  const id = table.key.at(-1) as string;
  return {
    text: text + onConflict(table, sums),
    valuesOf: (row) => [
      ...lead(row[id] as Uuid),
      ...own(row),
      ...summed.map(({ name }) => textHash(String(row[comparedColumn(resource, name)]))),
    ],
  };
}

/** Here no two answers to one client have one ordinal: the second of two becomes the newest. */
const FREE_ORDINAL = `case when exists (select 1 from idempotency where client_id = $client_id and ordinal = $ordinal)
  then (select max(ordinal) + 1 from idempotency where client_id = $client_id) else $ordinal end`;

function preparing(db: Database): (text: string) => Statement<unknown, SqlValue[]> {
  const kept = new Map<string, Statement<unknown, SqlValue[]>>();
  return (text) => {
    const statement = kept.get(text) ?? db.prepare<unknown, SqlValue[]>(text);
    kept.set(text, statement);
    return statement;
  };
}

/** The kinds of a table's columns, as the schema has them. */
function kindsOf(db: Database): (table: string) => ReadonlyMap<string, string> {
  const known = new Map<string, ReadonlyMap<string, string>>();
  return (table) => {
    const columns = db.query<{ name: string; type: string }, [string]>(
      'select name, type from pragma_table_info(?)',
    );
    const found = known.get(table) ?? new Map(columns.all(table).map(({ name, type }) => [name, type]));
    known.set(table, found);
    return found;
  };
}
