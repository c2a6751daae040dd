import { existsSync, lstatSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { Refusal } from '../../domain/fault.ts';
import { syncPath } from '../../durable.ts';
import type { Program } from '../migrations.ts';
import { publish } from '../sqlite/copy.ts';
import type { Archiver } from './archiver.ts';
import { withDrafts } from './drafts.ts';
import { hashFile } from './hashing.ts';
import { type Manifest, manifestOf, manifestPath } from './manifest.ts';
import { backupName, removeOld } from './shelf.ts';

/** Where a backup goes. */
export type Target =
  | { readonly file: string }
  /** A folder of backups, and after how many days the older ones go. */
  | { readonly folder: string; readonly keepDays: number | undefined };

export interface BackedUp {
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
  target: Target,
  { version, ambient }: Program,
  archiver: Archiver,
): Promise<BackedUp> {
  const takenAt = ambient.now();
  const path = 'file' in target ? target.file : join(target.folder, backupName(database, takenAt));
  proveTarget(path);
  return withDrafts(path, ambient, async (folder) => {
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
    const kept = { days: target.keepDays, now: ambient.now(), storeId: examined.storeId };
    return { path, manifest, removed: removeOld(target.folder, database, kept) };
  });
}

function proveTarget(path: string): void {
  const folder = dirname(path);
  if (!existsSync(folder) || !statSync(folder).isDirectory())
    throw new Refusal(`there is no folder ${folder}: make it, with mode 0700`);
  for (const name of [path, manifestPath(path)]) {
    if (lstatSync(name, { throwIfNoEntry: false })) throw taken(name);
  }
}

/** The manifest first: a backup that has its name has its manifest. */
function publishBoth(draft: string, path: string): void {
  const manifest = manifestPath(path);
  if (!publish(manifestPath(draft), manifest)) throw taken(manifest);
  if (publish(draft, path)) return;
  rmSync(manifest);
  throw taken(path);
}

function taken(name: string): Refusal {
  return new Refusal(`${name} is there already, and nothing is overwritten: name another file`);
}
