import { cpSync, mkdirSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { sqliteMigrations } from '../../src/store/sqlite/open.ts';
import { freshFolder } from './folder.ts';

const ROOT = fileURLToPath(new URL('../..', import.meta.url));

/** A copy of the program with one more migration on SQLite, as the next release has it. Returns the path of its command. */
export function createNextProgram(sql: string): string {
  const folder = freshFolder();
  for (const path of ['bin', 'src', 'package.json'])
    cpSync(join(ROOT, path), join(folder, path), { recursive: true });
  symlinkSync(join(ROOT, 'node_modules'), join(folder, 'node_modules'));
  const migrations = join(folder, 'src/store/sqlite/migrations');
  mkdirSync(migrations, { recursive: true });
  const version = String(sqliteMigrations().length + 1).padStart(4, '0');
  writeFileSync(join(migrations, `${version}_next.sql`), sql);
  return join(folder, 'bin/authrealm');
}
