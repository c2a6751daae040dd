import { constants, Database } from 'bun:sqlite';
import { dirname } from 'node:path';
import { membersOf } from '../../model/resource.ts';
import { RESOURCES } from '../../model/resources.ts';
import { syncPath } from '../fsync.ts';
import { hashColumn } from '../tables/derived_columns.ts';
import { createPrivateFile, queryOnce } from './connection.ts';

/** An object of the schema. */
interface SchemaObject {
  readonly type: 'table' | 'index' | 'view' | 'trigger';
  readonly name: string;
  /** The table or view itself, or that of an index or trigger. */
  readonly table: string;
  readonly sql: string;
  /** The first column of an index. */
  readonly first_column: string | null;
}

/** The objects of the attached source. The index of a key has no SQL, because it comes with its table. */
const SELECT_OBJECTS = `select type, name, tbl_name as "table", sql,
    (select name from pragma_index_info(o.name, 'source') where seqno = 0) as first_column
  from source.sqlite_schema as o where sql is not null and name not like 'sqlite_%' order by rowid`;

/** The tables that lookups read, with the hash columns that reverse lookups search. */
const LOOKUP_TABLES: ReadonlyMap<string, readonly string[]> = new Map(
  RESOURCES.map((resource) => {
    const hashed = membersOf(resource).filter(({ annotation }) => annotation.hashColumn);
    return [resource.table, hashed.map(({ name }) => hashColumn(name))] as const;
  }).filter(([, columns]) => columns.length > 0),
);

/** Whether lookups read the pages of an object: a table, with the index of its key, or the index of a hash column. */
function isReadByLookups({ table, type, first_column }: SchemaObject): boolean {
  const hashColumns = LOOKUP_TABLES.get(table);
  return hashColumns !== undefined && (type === 'table' || hashColumns.includes(first_column ?? ''));
}

/** The order of objects in a compact file: an index comes after its table, and no trigger sees the rows being copied. */
function groupOf(object: SchemaObject): number {
  if (object.type === 'view' || object.type === 'trigger') return 4;
  return (isReadByLookups(object) ? 0 : 2) + (object.type === 'index' ? 1 : 0);
}

const CACHE_KIB = 65_536;
/** What the engine keeps in the header of a file, without changes. */
const KEPT_PRAGMAS = ['page_size', 'auto_vacuum', 'user_version', 'application_id'] as const;

/**
 * Copies a database to a new file, in which the pages that lookups read come first: the engine maps the beginning of a
 * file (docs/decisions/0006-sqlite-lookups.md). Row IDs are kept, the file has WAL mode, mode 0600 and no deleted data,
 * and is synced. The source is read without locks, so no process may write to it.
 */
export function writeCompact(source: string, path: string): void {
  createPrivateFile(path);
  const { SQLITE_OPEN_READWRITE, SQLITE_OPEN_URI } = constants;
  const db = new Database(Bun.pathToFileURL(path).href, SQLITE_OPEN_READWRITE | SQLITE_OPEN_URI);
  try {
    db.run('attach ? as source', [`${Bun.pathToFileURL(source).href}?immutable=1`]);
    for (const name of KEPT_PRAGMAS) {
      db.run(`pragma main.${name} = ${numberOf(db, `source.${name}`)}`);
    }
    // A file that was not completed is removed, so nothing is rolled back.
    db.run('pragma main.journal_mode = off');
    db.run('pragma synchronous = off');
    db.run(`pragma main.cache_size = -${CACHE_KIB}`);
    db.run(`pragma temp_store_directory = '${dirname(path).replaceAll("'", "''")}'`);
    // Checked when the copy is verified. With them the engine would decode every row.
    db.run('pragma foreign_keys = off');
    db.run('begin');
    const objects = queryOnce<SchemaObject>(db, SELECT_OBJECTS);
    for (const object of objects.toSorted((one, other) => groupOf(one) - groupOf(other))) create(db, object);
    db.run('commit');
    db.run('detach source');
    db.run('pragma journal_mode = wal');
  } finally {
    db.close(false);
  }
  syncPath(path);
}

/** Creates an object, and copies the rows of a table. The pages of each follow those of the one before. */
function create(db: Database, { type, name, sql }: SchemaObject): void {
  db.run(sql);
  if (type !== 'table') return;
  const columns = queryOnce<{ name: string; hidden: number }>(
    db,
    `select name, hidden from pragma_table_xinfo('${name}', 'source')`,
  );
  const written = columns.filter(({ hidden }) => hidden === 0).map((column) => `"${column.name}"`);
  // All columns: the engine copies rows and indexes without decoding them. A generated column cannot be inserted.
  const isPlain = written.length === columns.length;
  const list = written.join(', ');
  db.run(
    isPlain
      ? `insert into main."${name}" select * from source."${name}"`
      : `insert into main."${name}" (${list}) select ${list} from source."${name}"`,
  );
}

function numberOf(db: Database, pragma: string): number {
  const [row] = queryOnce<Record<string, number>>(db, `pragma ${pragma}`);
  return Object.values(row ?? {})[0] ?? 0;
}
