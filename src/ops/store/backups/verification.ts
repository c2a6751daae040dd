import { type Database, SQLiteError } from 'bun:sqlite';
import { statSync } from 'node:fs';
import { Refusal } from '../../../model/fault.ts';
import { assertServableSchema } from '../../../sql/migrations.ts';
import { toRefusal } from '../../../sql/refusals.ts';
import { connectImmutable, queryOnce } from '../../../sql/sqlite/connection.ts';
import { sqliteSchemaVersion } from '../../../sql/sqlite/migrate.ts';
import { integrityErrors, sqliteSchemaDifferences } from '../sqlite/inspection.ts';
import { sqliteMigrations } from '../sqlite/open.ts';

/**
 * Verifies a database file that no other process writes: that it is complete and undamaged, and has a schema that this program
 * can serve or migrate. This process may have it locked. Returns its schema, installation and row counts. Throws Refusal with a
 * message that begins with `label`.
 */
export function verifyDatabaseFile(path: string, label: string, programVersion: string) {
  try {
    return verifyContent(path, programVersion);
  } catch (error) {
    const refusal = toRefusal(error, path);
    if (!(refusal instanceof Refusal)) throw error;
    throw new Refusal(`${label}: ${refusal.message}`, { cause: error });
  }
}

function verifyContent(path: string, programVersion: string) {
  using db = connectImmutable(path);
  try {
    const migrations = sqliteMigrations();
    const newest = migrations.at(-1)?.version ?? 0;
    const found = sqliteSchemaVersion(db);
    const schema = assertServableSchema(found, 'auto', newest, { version: programVersion });
    if (schema === undefined) throw new Refusal('it is empty');
    assertLength(db, path);
    for (const error of integrityErrors((sql) => queryOnce(db, sql))) throw damaged(error);
    for (const { type, name, is } of sqliteSchemaDifferences(db, migrations))
      throw new Refusal(`the ${type} ${name} is ${is}`);
    const [storeId] = textsOf(db, 'select store_id as text from instance');
    if (storeId === undefined) throw new Refusal('it has no installation ID');
    return { schema, storeId, rows: countRows(db) };
  } catch (error) {
    if (error instanceof SQLiteError) throw damaged(error.message);
    throw error;
  }
}

/** Compares the length with the number of pages: the engine reads what the last page lacks as zeros. */
function assertLength(db: Database, path: string): void {
  const { size } = statSync(path);
  const [pages] = queryOnce<{ bytes: number }>(
    db,
    'select page_count * page_size as bytes from pragma_page_count, pragma_page_size',
  );
  if (size !== pages?.bytes)
    throw new Refusal(`it has ${size} bytes, but its pages have ${pages?.bytes}: it is truncated or damaged`);
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
