import { Database } from 'bun:sqlite';
import {
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
import type { LogKeys } from '../../src/audit/log_keys.ts';
import { openOtherFile } from '../../src/cli/restore.ts';
import { readSettings } from '../../src/config/parse.ts';
import type { Uuid } from '../../src/domain/id.ts';
import { RESOURCES } from '../../src/domain/resources.ts';
import { systemClock } from '../../src/platform/clock.ts';
import { VERSION } from '../../src/platform/version.ts';
import { openDatabase, proveKeysOf } from '../../src/service/open_database.ts';
import type { Archiver } from '../../src/store/backups/archiver.ts';
import { runArchiverTask } from '../../src/store/backups/archiver.ts';
import { backUp } from '../../src/store/backups/backup.ts';
import type { OpenRestored } from '../../src/store/backups/erasures.ts';
import { type RestoreOptions, type RestoreResult, restore } from '../../src/store/backups/restoration.ts';
import type { DatabaseSummary } from '../../src/store/backups/verification.ts';
import { AUTHREALM, runCommand } from './processes.ts';
import { createFixture, type Fixture, freshFolder } from './service.ts';

export const program = { version: VERSION, clock: systemClock };

/** Does its errands here, where the commands have a process for each. */
export const inProcessArchiver: Archiver = {
  copy: async (from, to) => void runArchiverTask({ does: 'copy', from, to }),
  examine: async (path, called, programVersion) =>
    runArchiverTask({ does: 'examine', path, called, programVersion }) as DatabaseSummary,
};

/** Runs a command on a database file; standard error is a sentence, or nothing. */
export function runOnFile(path: string, ...words: readonly string[]) {
  return runCommand([AUTHREALM, ...words, '--database', `sqlite:${path}`]);
}

/** A database with so many users and their links, which nobody has open. */
export async function createStoredDatabase(
  users: number,
): Promise<{ readonly path: string; readonly planted: readonly Fixture[] }> {
  const path = join(freshFolder(), 'stored.db');
  return { path, planted: await addUsers(path, users) };
}

/** Plants more users in it, of a realm of their own. Nobody has open what is there afterwards. */
export async function addUsers(path: string, users: number): Promise<readonly Fixture[]> {
  // The engine lets go of a file when its last statement is collected, so nobody has only the copy open.
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

/** What each of these statements answers. Lets go of the file at once. */
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

/** That a backup was put there, and how far the log of the installation is: the one thing that a restore writes itself. */
const OF_RESTORE = /"action":"database\.restored"|^\{"realm_id":"00000000-0000-0000-0000-000000000000","seq"/;

/** Every row of a database, table by table, in one order; but for what a restore logs of itself. */
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
        .filter((row) => !OF_RESTORE.test(row))
        .sort(),
    ]),
  );
}

/** The identifiers of all records in a database. */
export function recordsIn(path: string): ReadonlySet<string> {
  const content = contentOf(path);
  const ids = RESOURCES.flatMap(({ table, parent }) =>
    (content[table] ?? []).map((row) => JSON.parse(row)[parent ? 'id' : 'realm_id'] as Uuid),
  );
  return new Set(ids);
}

/** The files of a folder with their bytes. */
export function filesIn(folder: string): Readonly<Record<string, string>> {
  return Object.fromEntries(
    readdirSync(folder)
      .sort()
      .map((name) => [name, Bun.hash(readFileSync(join(folder, name))).toString(36)]),
  );
}

/** Turns bits of one byte of a file over. */
export function flipBits(path: string, at: number): void {
  const file = openSync(path, 'r+');
  const byte = Buffer.alloc(1);
  readSync(file, byte, 0, 1, at);
  writeSync(file, Buffer.of((byte[0] ?? 0) ^ 0x41), 0, 1, at);
  closeSync(file);
}

/** The keys of the log of a database, as a restore finds them. */
export async function logKeysOf(path: string): Promise<LogKeys> {
  // Of a copy, because the engine lets go of a file late.
  const copy = join(freshFolder(), 'looked-at.db');
  for (const ending of ['', '.key']) copyFileSync(path + ending, copy + ending);
  const keys = await proveKeysOf(readSettings({ database: `sqlite:${copy}` }, {}), copy, systemClock);
  if (!keys) throw new Error(`${path} has no log`);
  return keys;
}

/** Opens files by the master key of a database, as the command does. */
export function openWithKeyOf(database: string): OpenRestored {
  const settings = readSettings({ database: `sqlite:${database}` }, {});
  return (path) => openOtherFile(settings, path);
}

/** Restores over a database in this process. */
export function restoreInProcess(
  order: Partial<RestoreOptions> & Pick<RestoreOptions, 'backup' | 'database'>,
) {
  const { database } = order;
  const openKept = openWithKeyOf(database);
  const whole = {
    replaces: true,
    hasManifest: true,
    erasuresBy: async () => [],
    proveKeys: async () => undefined,
  };
  return restore(
    { ...whole, openOtherFile: openKept, ...order },
    program,
    inProcessArchiver,
    () => undefined,
  );
}

/** Why a restore is refused. Throws where it is not, and where it left anything else in the folder than was there. */
export async function restoreRefusal(
  order: Partial<RestoreOptions> & Pick<RestoreOptions, 'backup' | 'database'>,
): Promise<string> {
  const folder = dirname(order.database);
  const before = filesIn(folder);
  const outcome: RestoreResult | Error = await restoreInProcess(order).catch((error: Error) => error);
  if (!(outcome instanceof Error)) throw new Error('it was restored');
  if (!Bun.deepEquals(filesIn(folder), before)) throw new Error('it left traces');
  return outcome.message;
}

/** A database, a backup of it, and users that came after the backup. */
export interface BackupFixture {
  readonly path: string;
  readonly backup: string;
  readonly before: readonly Fixture[];
  readonly later: readonly Fixture[];
}

export async function createBackupFixture(users = 5): Promise<BackupFixture> {
  const { path, planted } = await createStoredDatabase(users);
  const backup = join(freshFolder(), 'taken.db');
  await backUp(path, { file: backup }, program, inProcessArchiver);
  return { path, backup, before: planted, later: await addUsers(path, 2) };
}

/** Another one like it, to be spoilt. */
export function copyBackupFixture({ path, backup }: BackupFixture): {
  readonly database: string;
  readonly backup: string;
} {
  const database = join(freshFolder(), 'stored.db');
  for (const ending of ['', '.key']) copyFileSync(path + ending, database + ending);
  const taken = join(freshFolder(), 'taken.db');
  for (const ending of ['', '.json']) copyFileSync(backup + ending, taken + ending);
  return { database, backup: taken };
}
