import { existsSync, lstatSync, readdirSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { basename, dirname, extname, join } from 'node:path';
import { daysBefore } from '../../domain/days.ts';
import { Refusal } from '../../domain/fault.ts';
import { syncPath } from '../../platform/fsync.ts';
import type { Program } from '../migrations.ts';
import { publish } from '../sqlite/file_copy.ts';
import type { Archiver } from './archiver.ts';
import { type Manifest, manifestOf, manifestPath, readManifest } from './manifest.ts';
import { withTemporaryFolder } from './temporary_folder.ts';

/** The destination of a backup. */
export type BackupTarget =
  | { readonly file: string }
  /** A folder of backups, and the days after which older ones are removed. */
  | { readonly folder: string; readonly keepDays: number | undefined };

export interface BackupResult {
  readonly path: string;
  readonly manifest: Manifest;
  /** The file names of the older backups that were removed. */
  readonly removed: readonly string[];
}

/**
 * Creates a backup of a database that may be in use. The backup gets its name once it is complete, verified and synced,
 * and has its manifest. Only then are older backups removed.
 */
export async function backUp(
  database: string,
  target: BackupTarget,
  { version, clock }: Program,
  archiver: Archiver,
): Promise<BackupResult> {
  const takenAt = clock.now();
  const path = 'file' in target ? target.file : join(target.folder, backupName(database, takenAt));
  assertFreeTarget(path);
  return withTemporaryFolder(path, clock, async (folder) => {
    const temporary = join(folder, 'draft.db');
    await archiver.copy(database, temporary);
    const summary = await archiver.verify(
      temporary,
      `the copy of ${database} failed verification and was removed`,
      version,
    );
    const sha256 = await hashFile(temporary);
    const facts = { path, bytes: statSync(temporary).size, sha256, takenAt, program: version, ...summary };
    const manifest = manifestOf(facts);
    writeFileSync(manifestPath(temporary), `${JSON.stringify(manifest, null, 2)}\n`, { mode: 0o600 });
    syncPath(manifestPath(temporary));
    publishWithManifest(temporary, path);
    if ('file' in target || target.keepDays === undefined) return { path, manifest, removed: [] };
    const retention = { days: target.keepDays, now: clock.now(), storeId: summary.storeId };
    return { path, manifest, removed: removeOld(target.folder, database, retention) };
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
function publishWithManifest(temporary: string, path: string): void {
  const manifest = manifestPath(path);
  if (!publish(manifestPath(temporary), manifest)) throw nameTaken(manifest);
  if (publish(temporary, path)) return;
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

interface Retention {
  readonly days: number;
  readonly now: number;
  readonly storeId: string;
}

/**
 * Removes the backups of a database that are older than `days`: files in the folder that this program named, and whose
 * manifest has their name and the installation; also leftovers of incomplete backups. Returns the names of the removed
 * files.
 */
function removeOld(folder: string, database: string, { days, now, storeId }: Retention): string[] {
  const newest = backupName(database, daysBefore(now, days));
  const isOld = (name: string): boolean =>
    name.length === newest.length && name.startsWith(`${stemOf(database)}-`) && name < newest;
  const removed: string[] = [];
  for (const name of readdirSync(folder).sort()) {
    const manifest = name.endsWith('.db.json') ? readManifest(join(folder, name)) : undefined;
    if (manifest && manifest.store_id === storeId && manifestPath(manifest.file) === name) {
      if (!isOld(manifest.file) || manifest.file !== backupName(database, Date.parse(manifest.taken_at)))
        continue;
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
const LEFTOVER = /\.[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}\.partial$/;
