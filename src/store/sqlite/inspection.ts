import { constants, Database, SQLiteError } from 'bun:sqlite';
import { existsSync } from 'node:fs';
import { Refusal } from '../../domain/fault.ts';
import { openAuditLog } from '../audit/log.ts';
import { openAuthReading } from '../auth/access.ts';
import type { EngineInspection } from '../engine.ts';
import { openSealedValueReader } from '../idempotency/sealed.ts';
import { inspectionQueries } from '../inspection_queries.ts';
import type { Migration } from '../migrations.ts';
import type { SqlValue } from '../records/statements.ts';
import { MAPPED_BYTES_MAX } from './connection.ts';
import { trackDatabaseFiles } from './database_files.ts';
import { SQLITE } from './dialect.ts';
import { UNSHARED } from './shared_read_transaction.ts';
import { openSqliteTransactions } from './transactions.ts';
import { openSqliteWriter } from './writer.ts';

/** How long a question waits for a log that is being recovered. Nobody else runs in this process. */
const WAIT_MS = 5_000;
const CACHE_KIB = 65_536;
/** The engine's own check ends after so many complaints. */
const COMPLAINTS_MAX = 1_000;

/**
 * Opens a database to look at it. The connection cannot write, and holds no lock that a writer waits for: each question
 * has a snapshot of its own, so that the log does not grow for as long as all of them take.
 */
export function inspectSqlite(path: string, known: readonly Migration[]): EngineInspection {
  if (!existsSync(path)) throw new Refusal(`there is no database ${path}: authrealm init makes it`);
  const { db, isStill } = openReadOnly(path);
  db.run(`pragma busy_timeout = ${WAIT_MS}`);
  db.run(`pragma cache_size = -${CACHE_KIB}`);
  db.run(`pragma mmap_size = ${MAPPED_BYTES_MAX}`);
  const rows: Rows = <T>(sql: string, ...values: readonly SqlValue[]) =>
    db.prepare<T, SqlValue[]>(sql).iterate(...values);
  const questions = inspectionQueries({ rows, isBeyondAscii });
  return {
    ...questions,
    engine: () => versionOf(rows) + (isStill ? ', read as the file lies: its folder cannot be written' : ''),
    // There is no server, and modes of files say who may do what.
    server: () => ({ facts: [], findings: [] }),
    rights: () => ({ facts: [], findings: [] }),
    migrations: async () => ({ applied: await Array.fromAsync(questions.applied()), known }),
    schema: () => sqliteSchemaDifferences(db, known),
    integrity: () => integrityErrors(rows),
    accessOf: () => {
      const writer = openSqliteWriter(db, UNSHARED, trackDatabaseFiles(path), openAuditLog(SQLITE));
      const transactions = openSqliteTransactions(db, UNSHARED, writer);
      const sealed = openSealedValueReader(transactions, SQLITE, questions.schema);
      return { access: openAuthReading(transactions, questions.schema), sealed };
    },
    close: () => db.close(false),
  };
}

type Rows = <T>(sql: string, ...values: readonly SqlValue[]) => IterableIterator<T>;

const isBeyondAscii = (column: string): string => `${column} glob '*[^ -~]*'`;

/**
 * A log keeps its index beside the database, which takes a folder that can be written. Where it cannot, and no log is
 * there, nobody has the database open: it is then read as a file that does not change.
 */
function openReadOnly(path: string): { readonly db: Database; readonly isStill: boolean } {
  const db = new Database(path, { readonly: true });
  try {
    db.query('select count(*) from sqlite_schema').get();
  } catch (error) {
    if (error instanceof SQLiteError && NEEDS_FOLDER.test(error.code ?? '') && !existsSync(`${path}-wal`)) {
      db.close(false);
      const still = `${Bun.pathToFileURL(path).href}?immutable=1`;
      return {
        db: new Database(still, constants.SQLITE_OPEN_READONLY | constants.SQLITE_OPEN_URI),
        isStill: true,
      };
    }
  }
  return { db, isStill: false };
}

const NEEDS_FOLDER = /^SQLITE_(READONLY|CANTOPEN)/;

function versionOf(rows: Rows): string {
  return `sqlite ${[...rows<{ version: string }>('select sqlite_version() as version')][0]?.version}`;
}

interface SchemaRow {
  readonly type: string;
  readonly name: string;
  readonly sql: string | null;
}

const SCHEMA = `select type, name, sql from sqlite_schema where name not like 'sqlite_%' and name <> 'migration'`;

/** Compares the schema with one that the same migrations make from nothing; not where the file has others. */
export function* sqliteSchemaDifferences(db: Database, known: readonly Migration[]) {
  const applied = db.query<{ version: number }, []>('select version from migration').all();
  if (applied.some(({ version }) => !known.some((each) => each.version === version))) return;
  const model = new Database(':memory:');
  try {
    const done = known.filter(({ version }) => applied.some((each) => each.version === version));
    for (const { sql } of done) model.run(sql);
    const wanted = model.query<SchemaRow, []>(SCHEMA).all();
    const found = new Map(
      db
        .query<SchemaRow, []>(SCHEMA)
        .all()
        .map((row) => [row.name, row]),
    );
    for (const { type, name, sql } of wanted) {
      const there = found.get(name);
      found.delete(name);
      if (!there) yield { type, name, is: 'missing' };
      else if (there.sql !== sql) yield { type, name, is: 'not as this program makes it' };
    }
    for (const { type, name } of found.values()) yield { type, name, is: 'none of this program' };
  } finally {
    model.close();
  }
}

/** References are looked at as well: a connection that is not of this program may have left them unchecked. */
function* integrityErrors(rows: Rows): Iterable<string> {
  for (const { integrity_check: says } of rows<{ integrity_check: string }>(
    `pragma integrity_check(${COMPLAINTS_MAX})`,
  )) {
    if (says !== 'ok') yield says.replaceAll('\n', ' ');
  }
  for (const { table, parent, count } of rows<{ table: string; parent: string; count: number }>(ORPHANS)) {
    yield `${count} rows of ${table} refer to a row of ${parent} that does not exist`;
  }
}

const ORPHANS =
  'select "table", parent, count(*) as count from pragma_foreign_key_check group by "table", parent';
