import { Database } from 'bun:sqlite';
import { closeSync, linkSync, openSync, readSync, rmSync } from 'node:fs';
import { dirname } from 'node:path';
import { Refusal } from '../../domain/fault.ts';
import { syncPath } from '../../platform/fsync.ts';
import { createPrivateFile } from './connection.ts';

/**
 * Copies a live database into a new file, complete and consistent. The file appears only when it is whole and on the
 * disk. Throws Refusal where the name is taken.
 */
export function copyDatabaseFile(db: Database, path: string): void {
  withDraft(db, path, (draft) => {
    if (!publish(draft, path))
      throw new Refusal(`${path} is there already: move it away or name another file`);
  });
}

/**
 * Keeps a copy of what `isWanted` finds worth it, under `path` or the first number after it that is free. A copy that
 * is there is never replaced: it may be of another upgrade. One with the same bytes will do.
 */
export function keepUpgradeCopy(db: Database, path: string, isWanted: (copied: Database) => boolean): void {
  withDraft(db, path, (draft) => {
    if (!checkCopy(draft, isWanted)) return;
    let name = path;
    for (let number = 2; !publish(draft, name) && !isSame(draft, name); number += 1)
      name = `${path}.${number}`;
    // Somebody else's copy may have its name only in memory yet.
    syncPath(dirname(path));
  });
}

/** Every process writes to a name of its own, which is gone afterwards. */
function withDraft(db: Database, path: string, work: (draft: string) => void): void {
  const draft = `${path}.${crypto.randomUUID()}.partial`;
  try {
    writeCopy(db, draft);
    work(draft);
  } finally {
    rmSync(draft, { force: true });
  }
}

/** Writes a copy under a name that nobody has: of mode 0600, on the disk, and free of what was deleted. */
export function writeCopy(db: Database, path: string): void {
  createPrivateFile(path);
  db.run('vacuum into ?', [path]);
  syncPath(path);
}

/** Gives the draft its name for good; answers false where the name is taken. */
export function publish(draft: string, path: string): boolean {
  try {
    linkSync(draft, path);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'EEXIST') return false;
    throw error;
  }
  syncPath(dirname(path));
  return true;
}

function checkCopy(path: string, look: (copied: Database) => boolean): boolean {
  const copied = new Database(path, { readonly: true });
  try {
    return look(copied);
  } finally {
    copied.close();
  }
}

const COMPARED_BYTES = 1_048_576;

function isSame(left: string, right: string): boolean {
  const files = [openSync(left, 'r'), openSync(right, 'r')] as const;
  const [ours, theirs] = [Buffer.alloc(COMPARED_BYTES), Buffer.alloc(COMPARED_BYTES)];
  try {
    for (;;) {
      const count = readSync(files[0], ours);
      if (count !== readSync(files[1], theirs)) return false;
      if (!ours.subarray(0, count).equals(theirs.subarray(0, count))) return false;
      if (count === 0) return true;
    }
  } finally {
    for (const file of files) closeSync(file);
  }
}
