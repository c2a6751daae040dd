import { Database } from 'bun:sqlite';
import {
  chmodSync,
  closeSync,
  copyFileSync,
  existsSync,
  openSync,
  readdirSync,
  readFileSync,
  readSync,
  renameSync,
  writeSync,
} from 'node:fs';
import { dirname, join } from 'node:path';
import { readSettings } from '../../src/app/config/parse.ts';
import { assertKeysOf, openDatabase } from '../../src/app/open_database.ts';
import { openOtherFile } from '../../src/cli/restore.ts';
import type { LogKeys } from '../../src/log/keys.ts';
import { uuidText } from '../../src/model/id.ts';
import { RESOURCES } from '../../src/model/resources.ts';
import { VERSION } from '../../src/model/version.ts';
import { systemClock } from '../../src/ops/process/clock.ts';
import { backUp } from '../../src/ops/store/backups/backup.ts';
import type { OpenRestored } from '../../src/ops/store/backups/erasures.ts';
import { type RestoreOptions, type RestoreResult, restore } from '../../src/ops/store/backups/restoration.ts';
import { AUTHREALM, runCommand } from './processes.ts';
import { createFixture, type Fixture, freshFolder } from './service.ts';

export const program = { version: VERSION, clock: systemClock };

/** Runs a command on a database file. */
export function runOnFile(path: string, ...words: readonly string[]) {
  return runCommand([AUTHREALM, ...words, '--database', `sqlite:${path}`]);
}

/** A closed database with this many users and their links. */
export async function createStoredDatabase(
  count: number,
): Promise<{ readonly path: string; readonly users: readonly Fixture[] }> {
  const path = join(freshFolder(), 'stored.db');
  return { path, users: await addUsers(path, count) };
}

/** Adds a realm with this many users to a database, which is closed afterwards. */
export async function addUsers(path: string, users: number): Promise<readonly Fixture[]> {
  // The engine closes a file when its last statement is garbage-collected; a copy is not open at all.
  const made = join(freshFolder(), 'made.db');
  for (const ending of ['', '.key']) if (existsSync(path + ending)) renameSync(path + ending, made + ending);
  const db = await openDatabase(readSettings({ database: `sqlite:${made}` }, {}), systemClock);
  const first = await createFixture(db);
  const { realm, oidcProfile, passwordProfile } = first;
  const rest: Fixture[] = [];
  while (rest.length < users - 1) rest.push(await createFixture(db, { realm, oidcProfile, passwordProfile }));
  await db.engine.close();
  queryRows(made, ['pragma wal_checkpoint(truncate)']);
  for (const ending of ['', '.key']) copyFileSync(made + ending, path + ending);
  return [first, ...rest];
}

/** The rows of each of these statements. Closes the file at once. */
export function queryRows(path: string, statements: readonly string[]): Record<string, unknown>[][] {
  const db = new Database(path, { readwrite: true });
  try {
    return statements.map((sql) => {
      const statement = db.prepare<Record<string, unknown>, []>(sql);
      try {
        return statement.all();
      } finally {
        statement.finalize();
      }
    });
  } finally {
    db.close(true);
  }
}

const TABLES = `select name from sqlite_schema where type = 'table' and name not like 'sqlite_%'`;

/** Rows that a restore writes itself: its audit entry and the clock of the installation's log. */
const WRITTEN_BY_RESTORE =
  /"action":"database\.restored"|^\{"number":\d+,"realm_id":"00000000-0000-0000-0000-000000000000","seq"/;

/** Every row of a database by table, sorted, without the rows that a restore writes itself. */
export function contentOf(path: string): Readonly<Record<string, readonly string[]>> {
  const names = (queryRows(path, [TABLES])[0] ?? []).map(({ name }) => String(name));
  const found = queryRows(
    path,
    names.map((name) => `select * from ${name}`),
  );
  return Object.fromEntries(
    names.map((name, at) => [
      name,
      (found[at] ?? [])
        .map((row) => JSON.stringify(row))
        .filter((row) => !WRITTEN_BY_RESTORE.test(row))
        .sort(),
    ]),
  );
}

/** A copy of a closed database with its key, in this folder. */
export function copyDatabase(path: string, folder = freshFolder()): string {
  const copy = join(folder, 'stored.db');
  for (const ending of ['', '.key']) {
    copyFileSync(path + ending, copy + ending);
    chmodSync(copy + ending, 0o600);
  }
  return copy;
}

/** The identifiers of all records in a database. */
export function recordsIn(path: string): ReadonlySet<string> {
  const content = contentOf(path);
  // JSON has the bytes of an ID by their positions.
  const ids = RESOURCES.flatMap(({ table, parent }) =>
    (content[table] ?? []).map((row): Record<string, number> => JSON.parse(row)[parent ? 'id' : 'realm_id']),
  );
  return new Set(ids.map((bytes) => uuidText(Uint8Array.from(Object.values(bytes)))));
}

/** The names of the files in a folder with hashes of their content. */
export function filesIn(folder: string): Readonly<Record<string, string>> {
  return Object.fromEntries(
    readdirSync(folder)
      .sort()
      .map((name) => [name, Bun.hash(readFileSync(join(folder, name))).toString(36)]),
  );
}

/** Flips bits of one byte of a file. */
export function flipBits(path: string, at: number): void {
  const file = openSync(path, 'r+');
  const byte = Buffer.alloc(1);
  readSync(file, byte, 0, 1, at);
  writeSync(file, Buffer.of((byte[0] ?? 0) ^ 0x41), 0, 1, at);
  closeSync(file);
}

/** The keys of the log of a database, as a restore finds them. */
export async function logKeysOf(path: string): Promise<LogKeys> {
  // A copy, because the engine closes a file late.
  const copy = join(freshFolder(), 'keys.db');
  for (const ending of ['', '.key']) copyFileSync(path + ending, copy + ending);
  const keys = await assertKeysOf(readSettings({ database: `sqlite:${copy}` }, {}), copy, systemClock);
  if (!keys) throw new Error(`${path} has no log`);
  return keys;
}

/** Opens files with the master key of a database, as the command does. */
export function openWithKeyOf(database: string): OpenRestored {
  const settings = readSettings({ database: `sqlite:${database}` }, {});
  return (path) => openOtherFile(settings, path);
}

/** Restores over a database in this process. */
export function restoreInProcess(
  options: Partial<RestoreOptions> & Pick<RestoreOptions, 'backup' | 'database'>,
) {
  const { database } = options;
  const defaults = {
    replaces: true,
    hasManifest: true,
    erasuresFor: async () => [],
  };
  const settled = { ...defaults, openOtherFile: openWithKeyOf(database), ...options };
  return restore(settled, program);
}

/** The error of a restore. Throws where the restore succeeds or changes a file of the folder. */
export async function restoreRefusal(
  options: Partial<RestoreOptions> & Pick<RestoreOptions, 'backup' | 'database'>,
): Promise<string> {
  const folder = dirname(options.database);
  const before = filesIn(folder);
  const outcome: RestoreResult | Error = await restoreInProcess(options).catch((error: Error) => error);
  if (!(outcome instanceof Error)) throw new Error('the restore succeeded');
  if (!Bun.deepEquals(filesIn(folder), before)) throw new Error('the restore changed files');
  return outcome.message;
}

/** A database, a backup of it, and users created after the backup. */
export interface BackupFixture {
  readonly path: string;
  readonly backup: string;
  readonly before: readonly Fixture[];
  readonly later: readonly Fixture[];
}

export async function createBackupFixture(users = 5): Promise<BackupFixture> {
  const { path, users: before } = await createStoredDatabase(users);
  const backup = join(freshFolder(), 'backup.db');
  await backUp(path, { file: backup }, program);
  return { path, backup, before, later: await addUsers(path, 2) };
}

/** A copy of the database and its backup, to tamper with. */
export function copyBackupFixture({ path, backup }: BackupFixture): {
  readonly database: string;
  readonly backup: string;
} {
  const database = join(freshFolder(), 'stored.db');
  for (const ending of ['', '.key']) copyFileSync(path + ending, database + ending);
  const copy = join(freshFolder(), 'backup.db');
  for (const ending of ['', '.json']) copyFileSync(backup + ending, copy + ending);
  return { database, backup: copy };
}
