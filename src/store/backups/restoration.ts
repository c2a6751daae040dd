import { Database } from 'bun:sqlite';
import { closeSync, existsSync, fsyncSync, openSync, realpathSync, statSync, writeSync } from 'node:fs';
import { dirname, join, resolve } from 'node:path';
import type { LogKeys } from '../../audit/log_keys.ts';
import type { Erasure } from '../../domain/erasure.ts';
import { Refusal } from '../../domain/fault.ts';
import { syncPath } from '../../platform/fsync.ts';
import type { Program } from '../migrations.ts';
import { publish, writeCopy } from '../sqlite/file_copy.ts';
import type { Archiver } from './archiver.ts';
import { instantName } from './backup.ts';
import { applyErasures, type OpenRestored } from './erasures.ts';
import { type Manifest, manifestFor } from './manifest.ts';
import { assertNoCompanions, lockDatabase, replaceDatabase } from './replacement.ts';
import { withTemporaryFolder } from './temporary_folder.ts';
import type { DatabaseSummary } from './verification.ts';

export interface RestoreOptions {
  readonly backup: string;
  readonly database: string;
  /** Whether an existing database is moved to another name; otherwise it is an error. */
  readonly replaces: boolean;
  /** Verifies the backup, and installs nothing. */
  readonly isDryRun?: boolean;
  /** False for a backup without a manifest. */
  readonly hasManifest: boolean;
  /**
   * Throws Refusal unless the master keys of a database are given. Returns the keys of its audit log, if it has one.
   */
  readonly assertKeys: (path: string) => Promise<LogKeys | undefined>;
  /** The erasures recorded outside of any database. Throws Refusal where these keys did not sign them. */
  readonly erasuresBy: (keys: LogKeys | undefined) => Promise<readonly Erasure[]>;
  readonly openOtherFile: OpenRestored;
}

export interface RestoreResult {
  readonly summary: DatabaseSummary;
  /** The time of the backup; undefined without a manifest. */
  readonly takenAt: string | undefined;
  /** The number of erasures that the backup had not recorded, and of the users that they removed. */
  readonly erased: { readonly applied: number; readonly users: number };
  /** The new path of the replaced database; undefined where there was none. */
  readonly replacedPath: string | undefined;
}

/**
 * Restores a backup after it was verified and all erasures were applied to it. Until then the existing database is not
 * touched. Throws Refusal with advice.
 */
export async function restore(
  options: RestoreOptions,
  program: Program,
  archiver: Archiver,
): Promise<RestoreResult> {
  const { backup } = options;
  const path = existsSync(options.database) ? realpathSync(options.database) : resolve(options.database);
  const manifest = checkBackup(options, path);
  checkDestination(options, path);
  return withTemporaryFolder(path, program.clock, async (folder) => {
    const temporary = join(folder, 'restored.db');
    await fetchBackup({ backup, temporary, manifest });
    const summary = await archiver.verify(temporary, `the backup ${backup}`, program.version);
    const keys = await withBackupName(backup, () => {
      if (manifest) assertMatchesManifest(manifest, summary);
      return options.assertKeys(temporary);
    });
    const recorded = await options.erasuresBy(keys);
    if (options.isDryRun) {
      const erased = { applied: 0, users: 0 };
      return { summary, takenAt: manifest?.taken_at, erased, replacedPath: undefined };
    }
    const lock = existsSync(path) ? lockDatabase(path) : undefined;
    try {
      const knownUntil = manifest ? Date.parse(manifest.taken_at) : program.clock.now();
      const erasureInput = {
        temporary,
        knownUntil,
        folder,
        erasures: latestErasures([...recorded, ...(lock?.erasures ?? [])]),
        open: options.openOtherFile,
      };
      const restored = await applyErasuresTo(erasureInput, program, archiver);
      syncPath(restored.path);
      const replacedPath = lock && `${path}.replaced-${instantName(program.clock.now())}`;
      if (replacedPath !== undefined) replaceDatabase(path, restored.path, replacedPath);
      else placeDatabase(path, restored.path);
      return {
        summary: restored.summary ?? summary,
        takenAt: manifest?.taken_at,
        erased: restored.erased,
        replacedPath,
      };
    } finally {
      lock?.release();
    }
  });
}

/** Checks the backup before its content is read. */
function checkBackup({ backup, hasManifest }: RestoreOptions, path: string): Manifest | undefined {
  const found = statSync(backup, { throwIfNoEntry: false });
  if (!found)
    throw new Refusal(
      `the backup ${backup} does not exist: pass the path of a file that "authrealm backup" created`,
    );
  if (!found.isFile()) throw new Refusal(`${backup} is not a file: pass the backup file itself`);
  if (existsSync(path) && statSync(path).ino === found.ino && statSync(path).dev === found.dev)
    throw new Refusal(`${backup} is the database itself: pass a backup of it`);
  const log = statSync(`${backup}-wal`, { throwIfNoEntry: false });
  if (log && log.size > 0) {
    throw new Refusal(
      `${backup} is a database or a part of one, because ${backup}-wal holds commits: create a backup of it with ` +
        'authrealm backup',
    );
  }
  const manifest = hasManifest ? manifestFor(backup) : undefined;
  if (manifest && manifest.bytes !== found.size) {
    throw new Refusal(
      `the backup ${backup} has ${found.size} bytes, but its manifest says ${manifest.bytes}: it is truncated, or another ` +
        'file; pass another backup',
    );
  }
  return manifest;
}

/** Checks the destination before the backup is read, so that a refusal comes at once. */
function checkDestination({ replaces }: RestoreOptions, path: string): void {
  const folder = dirname(path);
  if (!existsSync(folder)) throw new Refusal(`folder ${folder} does not exist: create it with mode 0700`);
  if (!existsSync(path)) {
    assertNoCompanions(path);
    return;
  }
  if (!statSync(path).isFile()) throw new Refusal(`${path} is not a file: pass the path of a database file`);
  if (!replaces) {
    throw new Refusal(
      `${path} already exists, and a restore never overwrites a database: pass --replace to move it to another name`,
    );
  }
}

interface BackupCopy {
  readonly backup: string;
  readonly temporary: string;
  readonly manifest: Manifest | undefined;
}

/** Copies the backup first: the copy is what gets verified and served, even if the backup changes meanwhile. */
async function fetchBackup({ backup, temporary, manifest }: BackupCopy): Promise<void> {
  const sha256 = await copyHashing(backup, temporary);
  if (manifest && manifest.sha256 !== sha256) {
    throw new Refusal(
      `the backup ${backup} is damaged, because its SHA-256 is not the one in its manifest: pass another backup`,
    );
  }
}

/** Copies a file to a new one of mode 0600 and syncs it. Returns the SHA-256 of the copy. */
async function copyHashing(from: string, to: string): Promise<string> {
  const hasher = new Bun.CryptoHasher('sha256');
  const file = openSync(to, 'wx', 0o600);
  try {
    for await (const chunk of Bun.file(from).stream()) {
      hasher.update(chunk);
      for (let at = 0; at < chunk.length; ) at += writeSync(file, chunk, at);
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
  if (!isSame) throw new Refusal('its content does not match its manifest');
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

/** The last erasure of each user. */
function latestErasures(erasures: readonly Erasure[]): readonly Erasure[] {
  const sorted = erasures.toSorted((one, other) => one.at - other.at);
  return [...new Map(sorted.map((erasure) => [`${erasure.realm} ${erasure.user}`, erasure])).values()];
}

interface ErasureInput {
  readonly temporary: string;
  readonly knownUntil: number;
  readonly folder: string;
  readonly erasures: readonly Erasure[];
  readonly open: OpenRestored;
}

interface RestoredFile {
  readonly path: string;
  readonly erased: RestoreResult['erased'];
  /** Set where the content differs from the backup. */
  readonly summary?: DatabaseSummary;
}

/** Applies erasures. If there were any, rewrites the file so that its pages hold no data of erased users. */
async function applyErasuresTo(
  { temporary, knownUntil, folder, erasures, open }: ErasureInput,
  program: Program,
  archiver: Archiver,
): Promise<RestoredFile> {
  const erased = await applyErasures({ path: temporary, knownUntil }, erasures, open, program.clock);
  if (erased.applied === 0) return { path: temporary, erased };
  const path = join(folder, 'complete.db');
  const db = new Database(temporary, { readwrite: true });
  try {
    writeCopy(db, path);
  } finally {
    db.close(false);
  }
  return { path, erased, summary: await archiver.verify(path, 'the restored database', program.version) };
}

/** Publishes a restored file where no database exists. Throws Refusal where one was created meanwhile. */
function placeDatabase(path: string, restored: string): void {
  assertNoCompanions(path);
  if (!publish(restored, path))
    throw new Refusal(
      `${path} was created meanwhile, and nothing was restored: stop the process that created it, or pass another path`,
    );
}
