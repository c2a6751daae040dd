import { Database, SQLiteError } from 'bun:sqlite';
import {
  chmodSync,
  chownSync,
  closeSync,
  existsSync,
  fsyncSync,
  linkSync,
  openSync,
  realpathSync,
  renameSync,
  statSync,
  writeSync,
} from 'node:fs';
import { dirname, join, resolve } from 'node:path';
import type { LogKeys } from '../../audit/log_keys.ts';
import type { Erasure } from '../../domain/erasure.ts';
import { Refusal } from '../../domain/fault.ts';
import { syncPath } from '../../platform/fsync.ts';
import type { Program } from '../migrations.ts';
import { isBusy, queryOnce } from '../sqlite/connection.ts';
import { publish, writeCopy } from '../sqlite/file_copy.ts';
import { sqliteSchemaVersion } from '../sqlite/migrate.ts';
import type { Archiver } from './archiver.ts';
import { instantName } from './backup.ts';
import { applyErasures, type OpenRestored, selectErasures } from './erasures.ts';
import { type Manifest, manifestFor } from './manifest.ts';
import { withDrafts } from './temporary_folder.ts';
import { type DatabaseSummary, headerOf } from './verification.ts';

/** What is to be restored, and over what. */
export interface RestoreOptions {
  readonly backup: string;
  readonly database: string;
  /** A database that is there is kept under another name. */
  readonly replaces: boolean;
  /** False for a file that no manifest speaks for. */
  readonly hasManifest: boolean;
  /** Throws Refusal unless the master keys of a database are given. Answers the keys of its log, if it has one. */
  readonly proveKeys: (path: string) => Promise<LogKeys | undefined>;
  /** Those that are known outside of any database, as these keys signed them. Throws Refusal where they did not. */
  readonly erasuresBy: (keys: LogKeys | undefined) => Promise<readonly Erasure[]>;
  readonly openOtherFile: OpenRestored;
}

export interface RestoreResult {
  readonly examined: DatabaseSummary;
  /** When the backup was taken; undefined without a manifest. */
  readonly takenAt: string | undefined;
  /** Erasures that the backup did not know of, and how many of their users it held. */
  readonly erased: { readonly applied: number; readonly users: number };
  /** Where the database is now that was there; undefined where there was none. */
  readonly aside: string | undefined;
}

/** Called with the bytes read so far, and the total. */
export type OnBytes = (done: number, total: number) => void;

/**
 * Puts a backup in the place of a database, once it was looked through and nobody who was erased is in it any more. Until
 * then the database that is there is not touched. Throws Refusal with what to do.
 */
export async function restore(
  order: RestoreOptions,
  program: Program,
  archiver: Archiver,
  onBytes: OnBytes,
): Promise<RestoreResult> {
  const { backup } = order;
  const path = existsSync(order.database) ? realpathSync(order.database) : resolve(order.database);
  const manifest = checkBackup(order, path);
  checkDestination(order, path);
  return withDrafts(path, program.clock, async (folder) => {
    const draft = join(folder, 'restored.db');
    await fetchBackup({ backup, draft, manifest }, onBytes);
    const examined = await archiver.examine(draft, `the backup ${backup}`, program.version);
    const keys = await withBackupName(backup, () => {
      if (manifest) assertMatchesManifest(manifest, examined);
      return order.proveKeys(draft);
    });
    const told = await order.erasuresBy(keys);
    const lock = existsSync(path) ? lockDatabase(path) : undefined;
    try {
      const knowsUntil = manifest ? Date.parse(manifest.taken_at) : program.clock.now();
      const erasing = {
        draft,
        knowsUntil,
        folder,
        erasures: latestOf([...told, ...(lock?.erasures ?? [])]),
        open: order.openOtherFile,
      };
      const complete = await applyErasuresTo(erasing, program, archiver);
      syncPath(complete.path);
      const aside = lock && replaceDatabase(path, complete.path, program.clock.now());
      if (!lock) putInto(path, complete.path);
      return {
        examined: complete.examined ?? examined,
        takenAt: manifest?.taken_at,
        erased: complete.erased,
        aside,
      };
    } finally {
      lock?.release();
    }
  });
}

/** Checks the backup before its content is read. */
function checkBackup({ backup, hasManifest }: RestoreOptions, path: string): Manifest | undefined {
  const found = statSync(backup, { throwIfNoEntry: false });
  if (!found) throw new Refusal(`there is no backup ${backup}`);
  if (!found.isFile()) throw new Refusal(`${backup} is no file: name the backup itself`);
  if (existsSync(path) && statSync(path).ino === found.ino && statSync(path).dev === found.dev)
    throw new Refusal(`${backup} is the database itself: name a backup of it`);
  const log = statSync(`${backup}-wal`, { throwIfNoEntry: false });
  if (log && log.size > 0) {
    throw new Refusal(
      `${backup}-wal lies beside it and holds commits: that is a database, or a part of one. Make a backup of it by ` +
        'authrealm backup',
    );
  }
  const manifest = hasManifest ? manifestFor(backup) : undefined;
  if (manifest && manifest.bytes !== found.size) {
    throw new Refusal(
      `the backup ${backup}: it has ${found.size} bytes, its manifest says ${manifest.bytes}: it was cut, or is another one`,
    );
  }
  return manifest;
}

/** Checks the destination before the backup is read, so that a refusal comes at once. */
function checkDestination({ replaces }: RestoreOptions, path: string): void {
  const folder = dirname(path);
  if (!existsSync(folder)) throw new Refusal(`there is no folder ${folder}: make it, with mode 0700`);
  if (!existsSync(path)) {
    assertNoCompanions(path);
    return;
  }
  if (!statSync(path).isFile()) throw new Refusal(`${path} is no file`);
  if (!replaces) {
    throw new Refusal(
      `there is a database at ${path}, and nothing is overwritten: with --replace it is kept under another name`,
    );
  }
}

interface BackupCopy {
  readonly backup: string;
  readonly draft: string;
  readonly manifest: Manifest | undefined;
}

/** This copy is examined and served, whatever happens to the backup meanwhile. */
async function fetchBackup({ backup, draft, manifest }: BackupCopy, onBytes: OnBytes): Promise<void> {
  const total = statSync(backup).size;
  let done = 0;
  const sha256 = await copyHashing(backup, draft, (count) => {
    done += count;
    onBytes(done, total);
  });
  if (manifest && manifest.sha256 !== sha256) {
    throw new Refusal(`the backup ${backup}: its SHA-256 is not the one in its manifest: it is damaged`);
  }
}

/** Copies a file to a new one of mode 0600 and puts it on the disk. Returns the SHA-256 of what was written. */
async function copyHashing(from: string, to: string, onBytes: (count: number) => void): Promise<string> {
  const hasher = new Bun.CryptoHasher('sha256');
  const file = openSync(to, 'wx', 0o600);
  try {
    for await (const chunk of Bun.file(from).stream()) {
      hasher.update(chunk);
      for (let at = 0; at < chunk.length; ) at += writeSync(file, chunk, at);
      onBytes(chunk.length);
    }
    fsyncSync(file);
  } finally {
    closeSync(file);
  }
  return hasher.digest('hex');
}

function assertMatchesManifest(manifest: Manifest, { schema, storeId, rows }: DatabaseSummary): void {
  const isSame =
    manifest.schema === schema && manifest.store_id === storeId && Bun.deepEquals(manifest.rows, rows);
  if (!isSame) throw new Refusal('it does not hold what its manifest says');
}

/** Adds the name of the backup to a refusal. */
async function withBackupName<T>(backup: string, work: () => Promise<T>): Promise<T> {
  try {
    return await work();
  } catch (error) {
    if (!(error instanceof Refusal)) throw error;
    throw new Refusal(`the backup ${backup}: ${error.message}`, { cause: error });
  }
}

/** Of each user the last erasure. */
function latestOf(erasures: readonly Erasure[]): readonly Erasure[] {
  const byTime = erasures.toSorted((one, other) => one.at - other.at);
  return [...new Map(byTime.map((erasure) => [`${erasure.realm} ${erasure.user}`, erasure])).values()];
}

interface Erasing {
  readonly draft: string;
  readonly knowsUntil: number;
  readonly folder: string;
  readonly erasures: readonly Erasure[];
  readonly open: OpenRestored;
}

interface Complete {
  readonly path: string;
  readonly erased: RestoreResult['erased'];
  /** Set where it differs from the backup. */
  readonly examined?: DatabaseSummary;
}

/** Where users were removed, the file is written again, so that its pages keep nothing of them. */
async function applyErasuresTo(
  { draft, knowsUntil, folder, erasures, open }: Erasing,
  program: Program,
  archiver: Archiver,
): Promise<Complete> {
  const erased = await applyErasures({ path: draft, knowsUntil }, erasures, open, program.clock);
  if (erased.applied === 0) return { path: draft, erased };
  const path = join(folder, 'complete.db');
  const db = new Database(draft, { readwrite: true });
  try {
    writeCopy(db, path);
  } finally {
    db.close(false);
  }
  return { path, erased, examined: await archiver.examine(path, 'what was restored', program.version) };
}

/** A database that nobody else has open, and that nobody can open until it is released. */
interface DatabaseLock {
  /** The erasures that it knows of. */
  readonly erasures: readonly Erasure[];
  release(): void;
}

const LOCK_WAIT_MS = 5_000;

/**
 * Locks a database against every other process: its log is folded back and removed with its index, and the file is locked
 * whole. Throws Refusal while another process has it open, and where it is too damaged to be locked: whether it is in use
 * is not known then.
 */
export function lockDatabase(path: string): DatabaseLock {
  // The engine would remove a log that it cannot make sense of.
  if (statSync(path).size > 0 && !headerOf(path)) throw unlockable(path);
  const db = new Database(path, { readwrite: true, strict: true });
  try {
    db.run(`pragma busy_timeout = ${LOCK_WAIT_MS}`);
    const hasSchema = sqliteSchemaVersion(db) !== undefined;
    lockWhole(db, path);
    const erasures = hasSchema ? selectErasures(db) : [];
    return { erasures, release: () => unlock(db) };
  } catch (error) {
    unlock(db);
    if (isBusy(error)) throw inUse(path);
    throw error instanceof SQLiteError ? unlockable(path) : error;
  }
}

/**
 * In WAL mode a connection holds a shared lock on the file for as long as it is open, and only a connection that is alone
 * can leave that mode. Without a log, an exclusive transaction keeps every other process out.
 */
function lockWhole(db: Database, path: string): void {
  db.run('pragma journal_mode = delete');
  db.run('begin exclusive');
  const [now] = queryOnce<{ journal_mode: string }>(db, 'pragma journal_mode');
  // Another process opened it in between.
  if (now?.journal_mode !== 'delete') throw inUse(path);
}

function unlock(db: Database): void {
  if (db.inTransaction) db.run('rollback');
  db.close(false);
}

function inUse(path: string): Refusal {
  return new Refusal(
    `${path} is in use: stop every process that has it open, then run the same command again. Nothing was changed`,
  );
}

function unlockable(path: string): Refusal {
  return new Refusal(
    `${path} is damaged and cannot be locked, so whether a process has it open is not known: stop every process, move it ` +
      'and what lies beside it as -wal, -shm and -journal away, and restore without --replace',
  );
}

/** Gives a complete file the name of a database that is not there. Throws Refusal where there is one by now. */
function putInto(path: string, complete: string): void {
  assertNoCompanions(path);
  if (!publish(complete, path)) throw new Refusal(`${path} was made meanwhile: nothing was restored`);
}

/**
 * Puts a complete file in the place of a locked database, in one step: killed before it the old one is there, after it the
 * new one. Returns the name under which the old one is kept.
 */
export function replaceDatabase(path: string, complete: string, now: number): string {
  const aside = `${path}.replaced-${instantName(now)}`;
  const { uid, gid, mode } = statSync(path);
  chownSync(complete, uid, gid);
  chmodSync(complete, mode & 0o777);
  syncPath(complete);
  linkSync(path, aside);
  syncPath(dirname(path));
  assertNoCompanions(path);
  renameSync(complete, path);
  syncPath(dirname(path));
  return aside;
}

/** Throws Refusal where files of the engine would be taken for those of the database that is put there. */
function assertNoCompanions(path: string): void {
  const left = ['-wal', '-shm', '-journal'].map((ending) => path + ending).find((file) => existsSync(file));
  if (left === undefined) return;
  throw new Refusal(
    `${left} belongs to another database than the one that is restored: put that database back, or move ${left} away`,
  );
}
