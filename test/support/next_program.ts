import { cpSync, mkdirSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { sqliteMigrations } from '../../src/ops/store/sqlite/open.ts';
import { freshFolder } from './folder.ts';

const ROOT = fileURLToPath(new URL('../..', import.meta.url));

/** A copy of the program, to be changed. Returns its folder. */
export function copyProgram(): string {
  const folder = freshFolder();
  for (const path of ['bin', 'src', 'package.json'])
    cpSync(join(ROOT, path), join(folder, path), { recursive: true });
  symlinkSync(join(ROOT, 'node_modules'), join(folder, 'node_modules'));
  return folder;
}

/** A copy of the program with one more migration on SQLite, as the next release has it. Returns the path of its command. */
export function createNextProgram(sql: string): string {
  const folder = copyProgram();
  const migrations = join(folder, 'src/sql/sqlite/migrations');
  mkdirSync(migrations, { recursive: true });
  const known = sqliteMigrations();
  for (const each of [...known, { version: known.length + 1, name: 'next', sql }])
    writeFileSync(join(migrations, `${String(each.version).padStart(4, '0')}_${each.name}.sql`), each.sql);
  return join(folder, 'bin/authrealm');
}
