import { readdirSync, rmSync } from 'node:fs';
import { basename, extname, join } from 'node:path';
import { daysBefore } from '../../domain/days.ts';
import { syncPath } from '../../durable.ts';
import { manifestPath, readManifest } from './manifest.ts';

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

interface Kept {
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
export function removeOld(folder: string, database: string, { days, now, storeId }: Kept): string[] {
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
