import { existsSync, lstatSync, readdirSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { basename, dirname, extname, join } from 'node:path';
import { attempt } from '../../../model/attempt.ts';
import { Refusal } from '../../../model/fault.ts';
import { daysBefore } from '../../../model/log/days.ts';
import { syncPath } from '../../../sql/fsync.ts';
import type { Program } from '../../../sql/migrations.ts';
import { toRefusal } from '../../../sql/refusals.ts';
import { copyDatabaseFile, publish } from '../../../sql/sqlite/file_copy.ts';
import { lastBackupPath, type Manifest, manifestPath, readManifest } from './manifest.ts';
import { withTemporaryFolder } from './temporary_folder.ts';
import { verifyDatabaseFile } from './verification.ts';

/** The destination of a backup. */
export type BackupTarget =
  | { readonly file: string }
  /** A folder of backups, and the days after which older ones are removed. */
  | { readonly folder: string; readonly keepDays: number | undefined };

/**
 * Creates a backup of a database that may be in use. The backup gets its name once it is complete, verified and synced,
 * and has its manifest. Only then are older backups removed.
 */
export async function backUp(database: string, target: BackupTarget, { version, clock }: Program) {
  const takenAt = clock.now();
  const path = 'file' in target ? target.file : join(target.folder, backupName(database, takenAt));
  assertFreeTarget(path);
  return withTemporaryFolder(path, clock, async (folder) => {
    const draft = join(folder, 'draft.db');
    try {
      copyDatabaseFile(database, draft);
    } catch (error) {
      throw toRefusal(error, database);
    }
    const label = `the copy of ${database} failed verification and was removed`;
    const summary = verifyDatabaseFile(draft, label, version);
    const manifest: Manifest = {
      file: basename(path),
      sha256: await hashFile(draft),
      taken_at: new Date(takenAt).toISOString(),
      program: version,
      schema: summary.schema,
      store_id: summary.storeId,
    };
    const manifestText = `${JSON.stringify(manifest, null, 2)}\n`;
    writeFileSync(manifestPath(draft), manifestText, { mode: 0o600 });
    syncPath(manifestPath(draft));
    publishWithManifest(draft, path);
    // The backup is complete. Where its user cannot write next to the database, only the metric of its age stays behind.
    attempt(() => writeFileSync(lastBackupPath(database), manifestText, { mode: 0o600 }));
    const removed =
      'file' in target || target.keepDays === undefined
        ? []
        : removeOld(target.folder, database, daysBefore(clock.now(), target.keepDays), summary.storeId);
    return { path, bytes: statSync(path).size, manifest, summary, removed };
  });
}

function assertFreeTarget(path: string): void {
  const folder = dirname(path);
  if (!existsSync(folder) || !statSync(folder).isDirectory())
    throw new Refusal(`folder ${folder} does not exist: create it with mode 0700`);
  for (const name of [path, manifestPath(path)]) {
    if (lstatSync(name, { throwIfNoEntry: false })) throw nameTaken(name);
  }
}

/** Publishes the manifest first, so that every published backup has one. */
function publishWithManifest(draft: string, path: string): void {
  const manifest = manifestPath(path);
  if (!publish(manifestPath(draft), manifest)) throw nameTaken(manifest);
  if (publish(draft, path)) return;
  rmSync(manifest);
  throw nameTaken(path);
}

function nameTaken(name: string): Refusal {
  return new Refusal(`${name} already exists, and a backup never overwrites a file: pass another path`);
}

/** The SHA-256 of a file, in hexadecimal digits. */
export async function hashFile(path: string): Promise<string> {
  const hasher = new Bun.CryptoHasher('sha256');
  for await (const chunk of Bun.file(path).stream()) hasher.update(chunk);
  return hasher.digest('hex');
}

/** A timestamp for file names, which sorts by time. */
export function instantName(at: number): string {
  return new Date(at).toISOString().replaceAll(/[-:]/g, '');
}

/** The file name of a backup in a folder of backups. */
export function backupName(database: string, at: number): string {
  return `${stemOf(database)}-${instantName(at)}.db`;
}

function stemOf(database: string): string {
  return basename(database, extname(database));
}

/**
 * Removes the backups of a database that were taken before an instant, in milliseconds since the epoch: files in the folder
 * that this program named, and whose manifest has their name and the installation; also what killed backups left. Returns
 * the names of the removed files.
 */
function removeOld(folder: string, database: string, before: number, storeId: string): string[] {
  const cutoff = backupName(database, before);
  const isOld = (name: string): boolean =>
    name.length === cutoff.length && name.startsWith(`${stemOf(database)}-`) && name < cutoff;
  const isOwn = ({ file, store_id, taken_at }: Manifest): boolean =>
    store_id === storeId && file === backupName(database, Date.parse(taken_at));
  const removed: string[] = [];
  for (const name of readdirSync(folder).sort()) {
    const manifest = name.endsWith('.json') ? readManifest(join(folder, name)) : undefined;
    if (manifest && manifestPath(manifest.file) === name && isOwn(manifest) && isOld(manifest.file)) {
      // The manifest is removed last, so that the next run can finish a removal that was killed.
      rmSync(join(folder, manifest.file), { force: true });
      rmSync(join(folder, name));
      removed.push(manifest.file);
    } else if (LEFTOVER.test(name) && isOld(name.replace(LEFTOVER, ''))) {
      rmSync(join(folder, name), { recursive: true });
      removed.push(name);
    }
  }
  if (removed.length > 0) syncPath(folder);
  return removed;
}

/** The suffix of the names of temporary folders. */
const LEFTOVER = /\.[0-9a-f-]{36}\.partial$/;
