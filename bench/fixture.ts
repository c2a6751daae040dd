import { createHash } from 'node:crypto';
import { cpSync, existsSync, mkdirSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { sqliteMigrations } from '../src/ops/store/sqlite/open.ts';
import { fillByImport, type ImportResult } from './import_rate.ts';

/** A database file of users with one link of each kind. */
export interface SqliteFixture {
  readonly file: string;
  readonly imported: ImportResult;
}

/**
 * Fills a database in `folder` by an import. With a cache, the filled database is kept there and the next call copies it; the
 * figures are then those of the import that filled it. Another schema has fixtures of its own; after a change of how rows are
 * written, remove the cache.
 */
export async function sqliteFixture(
  authrealm: string,
  folder: string,
  users: number,
  cache?: string,
): Promise<SqliteFixture> {
  if (cache === undefined) return fill(authrealm, join(folder, 'fixture'), users);
  const schema = createHash('sha256').update(JSON.stringify(sqliteMigrations())).digest('hex').slice(0, 12);
  const kept = join(cache, `sqlite-${users}-${schema}`);
  if (!existsSync(kept)) {
    const partial = `${kept}.partial`;
    rmSync(partial, { recursive: true, force: true });
    const { imported } = await fill(authrealm, partial, users);
    writeFileSync(join(partial, IMPORT_FILE), JSON.stringify(imported));
    renameSync(partial, kept);
  }
  cpSync(kept, join(folder, 'fixture'), { recursive: true });
  const file = join(folder, 'fixture', DATABASE_FILE);
  return { file, imported: JSON.parse(readFileSync(join(kept, IMPORT_FILE), 'utf8')) };
}

const DATABASE_FILE = 'bench.db';
const IMPORT_FILE = 'import.json';

async function fill(authrealm: string, folder: string, users: number): Promise<SqliteFixture> {
  mkdirSync(folder, { recursive: true });
  const file = join(folder, DATABASE_FILE);
  return { file, imported: await fillByImport(authrealm, ['--database', `sqlite:${file}`], users) };
}
