import { Database } from 'bun:sqlite';
import { closeSync, existsSync, fsyncSync, openSync, realpathSync, statSync, writeSync } from 'node:fs';
import { dirname, join, resolve } from 'node:path';
import type { LogKeys } from '../../audit/log_keys.ts';
import type { Erasure } from '../../domain/erasure.ts';
import { Refusal } from '../../domain/fault.ts';
import { syncPath } from '../../platform/fsync.ts';
import type { Program } from '../migrations.ts';
import { publish, writeCopy } from '../sqlite/file_copy.ts';
import { instantName } from './backup.ts';
import { applyErasures, type OpenRestored } from './erasures.ts';
import { type Manifest, manifestFor } from './manifest.ts';
import { assertNoCompanions, lockDatabase, replaceDatabase } from './replacement.ts';
import { withTemporaryFolder } from './temporary_folder.ts';
import { type DatabaseSummary, verifyDatabaseFile } from './verification.ts';

export interface RestoreOptions {
  readonly backup: string;
  readonly database: string;
  /** Whether an existing database is moved to another name; otherwise it is an error. */
  readonly replaces: boolean;
  /** Verifies the backup, and installs nothing. */
  readonly isDryRun?: boolean;
  /** False for a backup without a manifest. */
  readonly hasManifest: boolean;
  /** The keys of the audit log of a database. Throws Refusal unless its master keys are given. */
  readonly keysOf: (path: string) => Promise<LogKeys>;
  /** The erasures recorded outside of any database. Throws Refusal where these keys did not sign them. */
  readonly erasuresBy: (keys: LogKeys) => Promise<readonly Erasure[]>;
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
export async function restore(options: RestoreOptions, program: Program): Promise<RestoreResult> {
  const { backup, isDryRun } = options;
  const path = existsSync(options.database) ? realpathSync(options.database) : resolve(options.database);
  const manifest = checkBackup(options, path);
  checkDestination(options, path);
  return withTemporaryFolder(path, program.clock, async (folder) => {
    const copy = join(folder, 'restored.db');
    // The copy is what gets verified and served, even if the backup changes meanwhile.
    const sha256 = await copyHashing(backup, copy);
    if (manifest && manifest.sha256 !== sha256) throw notAsInManifest(backup);
    const summary = verifyDatabaseFile(copy, `the backup ${backup}`, program.version);
    const recorded = await options.erasuresBy(await options.keysOf(copy));
    const takenAt = manifest?.taken_at;
    if (isDryRun) return { summary, takenAt, erased: { applied: 0, users: 0 }, replacedPath: undefined };
    return install({ copy, folder, summary, takenAt, recorded }, path, options.openOtherFile, program);
  });
}

interface VerifiedCopy {
  readonly copy: string;
  readonly folder: string;
  readonly summary: DatabaseSummary;
  readonly takenAt: string | undefined;
  readonly recorded: readonly Erasure[];
}

/** Applies erasures to a copy of a backup, and puts it in the place of the database. */
async function install(
  { copy, folder, summary, takenAt, recorded }: VerifiedCopy,
  path: string,
  open: OpenRestored,
  program: Program,
): Promise<RestoreResult> {
  const { clock } = program;
  const lock = existsSync(path) ? lockDatabase(path) : undefined;
  try {
    const erasures = latestErasures([...recorded, ...(lock?.erasures ?? [])]);
    const knownUntil = takenAt === undefined ? clock.now() : Date.parse(takenAt);
    const erased = await applyErasures({ path: copy, knownUntil }, erasures, open, clock);
    const restored = erased.applied === 0 ? { path: copy, summary } : rewrite(copy, folder, program);
    syncPath(restored.path);
    const replacedPath = lock && `${path}.replaced-${instantName(clock.now())}`;
    if (replacedPath !== undefined) replaceDatabase(path, restored.path, replacedPath);
    else placeDatabase(path, restored.path);
    return { summary: restored.summary, takenAt, erased, replacedPath };
  } finally {
    lock?.release();
  }
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
  return hasManifest ? manifestFor(backup) : undefined;
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

function notAsInManifest(backup: string): Refusal {
  return new Refusal(
    `the backup ${backup} is damaged or another file, because its SHA-256 is not the one in its manifest: pass another backup`,
  );
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

/** The last erasure of each user. */
function latestErasures(erasures: readonly Erasure[]): readonly Erasure[] {
  const sorted = erasures.toSorted((one, other) => one.at - other.at);
  return [...new Map(sorted.map((erasure) => [`${erasure.realm} ${erasure.user}`, erasure])).values()];
}

/** Rewrites a file to which erasures were applied, so that its pages hold no data of erased users. */
function rewrite(from: string, folder: string, program: Program): { path: string; summary: DatabaseSummary } {
  const path = join(folder, 'complete.db');
  const db = new Database(from, { readwrite: true });
  try {
    writeCopy(db, path);
  } finally {
    db.close(false);
  }
  return { path, summary: verifyDatabaseFile(path, 'the restored database', program.version) };
}

/** Publishes a restored file where no database exists. Throws Refusal where one was created meanwhile. */
function placeDatabase(path: string, restored: string): void {
  assertNoCompanions(path);
  if (!publish(restored, path))
    throw new Refusal(
      `${path} was created meanwhile, and nothing was restored: stop the process that created it, or pass another path`,
    );
}
