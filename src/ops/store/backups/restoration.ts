import { chmodSync, copyFileSync, existsSync, realpathSync, statSync } from 'node:fs';
import { dirname, join, resolve } from 'node:path';
import { Refusal } from '../../../model/fault.ts';
import type { Erasure } from '../../../model/log/erasure.ts';
import { syncPath } from '../../../sql/fsync.ts';
import type { Program } from '../../../sql/migrations.ts';
import { copyDatabaseFile, publish } from '../../../sql/sqlite/file_copy.ts';
import { hashFile, instantName } from './backup.ts';
import { applyErasures, type OpenRestored } from './erasures.ts';
import { type Manifest, manifestFor } from './manifest.ts';
import { assertNoCompanions, lockDatabase, replaceDatabase } from './replacement.ts';
import { withTemporaryFolder } from './temporary_folder.ts';
import { verifyDatabaseFile } from './verification.ts';

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
   * The erasures recorded outside of any database. Throws Refusal unless the master keys of this copy are given, and where
   * the keys of its log did not sign them.
   */
  readonly erasuresFor: (copy: string) => Promise<readonly Erasure[]>;
  readonly openOtherFile: OpenRestored;
}

export type RestoreResult = Awaited<ReturnType<typeof restore>>;

/**
 * Restores a backup after it was verified and all erasures were applied to it. Until then the existing database is not touched.
 * `takenAt` is undefined without a manifest, and `replacedPath`, the new path of the database, where there was none. Throws
 * Refusal with advice.
 */
export async function restore(options: RestoreOptions, program: Program) {
  const { backup } = options;
  const { clock, version } = program;
  const path = existsSync(options.database) ? realpathSync(options.database) : resolve(options.database);
  const manifest = checkBackup(options, path);
  const takenAt = manifest?.taken_at;
  checkDestination(options, path);
  return withTemporaryFolder(path, clock, async (folder) => {
    // The copy is what gets verified and served, even if the backup changes meanwhile.
    const copy = join(folder, 'restored.db');
    copyFileSync(backup, copy);
    chmodSync(copy, 0o600);
    if (manifest && manifest.sha256 !== (await hashFile(copy))) throw notAsInManifest(backup);
    const summary = verifyDatabaseFile(copy, `the backup ${backup}`, version);
    const recorded = await options.erasuresFor(copy);
    if (options.isDryRun)
      return { summary, takenAt, erased: { applied: 0, users: 0 }, replacedPath: undefined };
    using lock = existsSync(path) ? lockDatabase(path) : undefined;
    const erasures = [...recorded, ...(lock?.erasures ?? [])];
    const knownUntil = takenAt === undefined ? clock.now() : Date.parse(takenAt);
    const erased = await applyErasures({ path: copy, knownUntil }, erasures, options.openOtherFile, clock);
    const restored = erased.applied === 0 ? { path: copy, summary } : rewrite(copy, folder, program);
    syncPath(restored.path);
    const replacedPath = lock && `${path}.replaced-${instantName(clock.now())}`;
    placeDatabase(path, restored.path, replacedPath);
    return { summary: restored.summary, takenAt, erased, replacedPath };
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

/** Rewrites a file to which erasures were applied, so that its pages hold no data of erased users. */
function rewrite(from: string, folder: string, { version }: Program) {
  const path = join(folder, 'complete.db');
  copyDatabaseFile(from, path);
  return { path, summary: verifyDatabaseFile(path, 'the restored database', version) };
}

/** Replaces the locked database, or publishes the file where none existed. Throws Refusal where one was created meanwhile. */
function placeDatabase(path: string, restored: string, replacedPath: string | undefined): void {
  if (replacedPath !== undefined) {
    replaceDatabase(path, restored, replacedPath);
    return;
  }
  assertNoCompanions(path);
  if (!publish(restored, path))
    throw new Refusal(
      `${path} was created meanwhile, and nothing was restored: stop the process that created it, or pass another path`,
    );
}
