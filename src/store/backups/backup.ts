import { existsSync, lstatSync, readdirSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { basename, dirname, extname, join } from 'node:path';
import { daysBefore } from '../../domain/days.ts';
import { Refusal } from '../../domain/fault.ts';
import { syncPath } from '../../platform/fsync.ts';
import type { Program } from '../migrations.ts';
import { publish } from '../sqlite/file_copy.ts';
import type { Archiver } from './archiver.ts';
import { type Manifest, manifestOf, manifestPath, readManifest } from './manifest.ts';
import { withDrafts } from './temporary_folder.ts';

/** Where a backup goes. */
export type BackupTarget =
  | { readonly file: string }
  /** A folder of backups, and after how many days the older ones go. */
  | { readonly folder: string; readonly keepDays: number | undefined };

export interface BackupResult {
  readonly path: string;
  readonly manifest: Manifest;
  /** Names of older backups that went. */
  readonly removed: readonly string[];
}

/**
 * Makes a backup of a database that others may be writing to. It has its name only once it is complete, looked through
 * and on the disk, with its manifest beside it; before that nothing older is removed.
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
  return withDrafts(path, clock, async (folder) => {
    const draft = join(folder, 'draft.db');
    await archiver.copy(database, draft);
    const examined = await archiver.examine(
      draft,
      `the copy of ${database} is no backup, and was removed`,
      version,
    );
    const sha256 = await hashFile(draft);
    const made = { path, bytes: statSync(draft).size, sha256, takenAt, program: version, ...examined };
    const manifest = manifestOf(made);
    writeFileSync(manifestPath(draft), `${JSON.stringify(manifest, null, 2)}\n`, { mode: 0o600 });
    syncPath(manifestPath(draft));
    publishBoth(draft, path);
    if ('file' in target || target.keepDays === undefined) return { path, manifest, removed: [] };
    const kept = { days: target.keepDays, now: clock.now(), storeId: examined.storeId };
    return { path, manifest, removed: removeOld(target.folder, database, kept) };
  });
}

function assertFreeTarget(path: string): void {
  const folder = dirname(path);
  if (!existsSync(folder) || !statSync(folder).isDirectory())
    throw new Refusal(`there is no folder ${folder}: make it, with mode 0700`);
  for (const name of [path, manifestPath(path)]) {
    if (lstatSync(name, { throwIfNoEntry: false })) throw nameTaken(name);
  }
}

/** The manifest first: a backup that has its name has its manifest. */
function publishBoth(draft: string, path: string): void {
  const manifest = manifestPath(path);
  if (!publish(manifestPath(draft), manifest)) throw nameTaken(manifest);
  if (publish(draft, path)) return;
  rmSync(manifest);
  throw nameTaken(path);
}

function nameTaken(name: string): Refusal {
  return new Refusal(`${name} is there already, and nothing is overwritten: name another file`);
}

/** The SHA-256 of a file, in hexadecimal digits. */
export async function hashFile(path: string): Promise<string> {
  const hasher = new Bun.CryptoHasher('sha256');
  for await (const chunk of Bun.file(path).stream()) hasher.update(chunk);
  return hasher.digest('hex');
}

/** An instant as a part of a file name, in the order of time. */
export function instantName(at: number): string {
  return new Date(at).toISOString().replaceAll(/[-:]/g, '');
}

/** What a backup of a database is called in a folder of them. */
export function backupName(database: string, at: number): string {
  return `${stemOf(database)}-${instantName(at)}.db`;
}

function stemOf(database: string): string {
  return basename(database, extname(database));
}

interface Retention {
  readonly days: number;
  readonly now: number;
  /** The installation whose backups they are. */
  readonly storeId: string;
}

/**
 * Removes the backups of a database that were taken more than so many days ago: of a folder, those that carry the name
 * this program gives, and whose manifest names the file and the installation; and what is left of backups that were never
 * completed. Answers the names.
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
      // The manifest goes last: what is left of a removal that was killed is found by the next one.
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

/** What withDrafts adds to the name of what is made. */
const LEFTOVER = /\.[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}\.partial$/;
