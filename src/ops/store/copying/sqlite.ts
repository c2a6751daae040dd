import type { Database } from 'bun:sqlite';
import { existsSync } from 'node:fs';
import { Refusal } from '../../../model/fault.ts';
import { type Uuid, uuidText } from '../../../model/id.ts';
import { LIMITS } from '../../../model/limits.ts';
import { membersOf } from '../../../model/resource.ts';
import { SQLITE } from '../../../records/store/sqlite/dialect.ts';
import { connectToRead } from '../../../records/store/sqlite/reader.ts';
import type { Program } from '../../../sql/migrations.ts';
import { connectSqlite, queryOnce, retryWhileBusy, rollbackQuietly } from '../../../sql/sqlite/connection.ts';
import { assertNoOrphanedLog } from '../../../sql/sqlite/database_files.ts';
import { assertSqliteSchema } from '../../../sql/sqlite/migrate.ts';
import { comparedColumn, hashColumn } from '../../../sql/tables/derived_columns.ts';
import { type ColumnKind, KINDS, parameterOf, rowOrder } from '../../../sql/tables/table.ts';
import type { SqlValue } from '../../../sql/transaction_work.ts';
import { openSqlite, sqliteMigrations } from '../sqlite/open.ts';
import {
  assertNewest,
  COPIED_TABLES,
  type CopiedTable,
  type CopySource,
  type CopyTarget,
  PAGE_ROWS,
  type TextRow,
} from './side.ts';

/** A SQLite source, read in one transaction, which does not block writers. */
export async function openSqliteSource(path: string, program: Program): Promise<CopySource> {
  assertNoOrphanedLog(path);
  if (!existsSync(path)) throw new Refusal('there is no database at this path');
  const db = await retryWhileBusy(() => connectToRead(path), LIMITS.migrationWaitMsMax);
  await begin(db, 'begin', program);
  return sourceOver(db);
}

/** Inserts touch random pages of every index. */
const CACHE_KIB = 262_144;

/** A SQLite target. The file is created if it does not exist. */
export async function openSqliteTarget(path: string, program: Program): Promise<CopyTarget> {
  await (await openSqlite(path, 'check', program)).close();
  const db = await retryWhileBusy(() => connectSqlite(path), LIMITS.migrationWaitMsMax);
  db.run(`pragma cache_size = -${CACHE_KIB}`);
  await begin(db, 'begin immediate', program);
  // The row that a migration inserts.
  db.run('delete from instance');
  return {
    ...sourceOver(db),
    async write(table, rows) {
      const { text, valuesOf } = insertionInto(table);
      using insert = db.prepare(text);
      for (const row of rows) insert.run(...valuesOf(row));
    },
    async commit() {
      db.run('commit');
      // The whole copy is in the write-ahead log.
      db.run('pragma wal_checkpoint(truncate)');
    },
  };
}

async function begin(db: Database, how: 'begin' | 'begin immediate', program: Program): Promise<void> {
  try {
    const newest = sqliteMigrations().at(-1)?.version ?? 0;
    await retryWhileBusy(() => db.run(how), LIMITS.migrationWaitMsMax);
    // The first read of the transaction takes its snapshot.
    const readSchema = () => assertSqliteSchema(db, 'auto', newest, program);
    assertNewest(await retryWhileBusy(readSchema, LIMITS.migrationWaitMsMax), newest);
    for (const { name, copied } of COPIED_TABLES)
      if (copied.get('realm_id') === 'realm') assertRealmsKnown(db, name);
  } catch (error) {
    db.close(false);
    throw error;
  }
}

/** Throws Refusal where rows have a number of no realm: a copy has realms as their IDs, and would lack these rows. */
function assertRealmsKnown(db: Database, table: string): void {
  const text = `select 1 from ${table} where realm_id not in (select number from realm_clock) limit 1`;
  if (queryOnce(db, text).length > 0)
    throw new Refusal(
      `table ${table} has rows that another program wrote, because their realm has no clock: delete them first`,
    );
}

function sourceOver(db: Database): CopySource {
  return {
    async read(table, last) {
      const { key, copied: columns } = table;
      const after = last
        ? table.keyOf(last).map((value, at) => boundValue(value, columns.get(key[at] ?? '')))
        : [];
      using select = db.prepare<unknown, SqlValue[]>(pageText(table, last !== undefined));
      const kinds = [...columns.values()];
      const rows = select.values(...after) as SqlValue[][];
      return rows.map((row) => row.map((value, at) => textOf(value, kinds[at])));
    },
    async close() {
      rollbackQuietly(db);
      db.close(false);
    },
  };
}

/** A page in the order of the key. Parameters: the key of the row before it, if there is one. */
function pageText(table: CopiedTable, isAfterRow: boolean): string {
  const { source, named, order, isAfter } = rowOrder(table, SQLITE);
  const values = [...table.copied.keys()].map(named).join();
  return `select ${values} from ${source} ${isAfterRow ? `where ${isAfter(1)}` : ''}
    order by ${order} limit ${PAGE_ROWS}`;
}

function textOf(value: SqlValue, kind: ColumnKind | undefined): string | null {
  if (!(value instanceof Uint8Array)) return value === null ? null : String(value);
  return kind === 'id_bytes' ? uuidText(value) : `\\x${value.toHex()}`;
}

/** The value of a parameter of this kind. */
function boundValue(text: string | null, kind: ColumnKind | undefined): SqlValue {
  const type = kind && KINDS[kind].sqlite;
  if (text === null || type === 'text' || kind === 'id_bytes' || kind === 'realm') return text;
  return type === 'integer' ? Number(text) : Uint8Array.fromHex(text.replace(/^\\x/, ''));
}

/** Also fills the columns that only SQLite has, as for any other record. */
function insertionInto(table: CopiedTable) {
  const { name, key, resource, copied } = table;
  const [columns, kinds] = [[...copied.keys()], [...copied.values()]];
  const columnValues = (row: TextRow) => row.map((value, at) => boundValue(value, kinds[at]));
  if (!resource) {
    const text = `insert into ${name} (${columns.join()}) values (${kinds.map((kind) => parameterOf(kind, SQLITE)).join()})`;
    return { text, valuesOf: columnValues };
  }
  const hashed = membersOf(resource).filter(({ annotation }) => annotation.hashColumn);
  const hashColumns = hashed.map((member) => hashColumn(member.name));
  const { text, lead } = SQLITE.insertion(resource, [...columns, ...hashColumns]);
  const id = columns.indexOf(key.at(-1) as string);
  const hashSources = hashed.map((member) => columns.indexOf(comparedColumn(resource, member.name)));
  return {
    text,
    valuesOf: (row: TextRow): SqlValue[] => [
      ...lead(row[id] as Uuid),
      ...columnValues(row),
      ...hashSources.map((at) => Bun.hash.crc32(String(row[at]))),
    ],
  };
}
