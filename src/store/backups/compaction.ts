import { realpathSync, statfsSync, statSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { Refusal } from '../../domain/fault.ts';
import type { Program } from '../migrations.ts';
import type { Archiver } from './archiver.ts';
import { lockDatabase, replaceDatabase } from './replacement.ts';
import { withTemporaryFolder } from './temporary_folder.ts';
import type { DatabaseSummary } from './verification.ts';

/** The disk space that a compaction needs until it ends. */
export interface SpaceNeeded {
  /** The folder of the database, with symbolic links resolved. */
  readonly folder: string;
  readonly neededBytes: number;
  readonly freeBytes: number;
}

/** Called at the start of each step. */
export interface CompactionObserver {
  onLocked(space: SpaceNeeded): void;
  onStep(step: 'verify' | 'write' | 'verify copy'): void;
}

export interface CompactionResult {
  readonly summary: DatabaseSummary;
  readonly bytesBefore: number;
  readonly bytesAfter: number;
}

/** The new file is not larger than the pages in use; the rest is for sorting the largest index. */
const SPACE_FACTOR = 1.1;

/**
 * Rewrites a database in place, with what lookups read at its beginning and without free pages. The database is locked
 * against all other processes. The new file replaces it in one step, after both were verified and have the same number of
 * rows in each table; until then the database is not changed. Throws Refusal with advice.
 */
export async function compact(
  database: string,
  { version, clock }: Program,
  archiver: Archiver,
  observer: CompactionObserver,
): Promise<CompactionResult> {
  const path = realpathSync(database);
  if (!statSync(path).isFile()) throw new Refusal(`${path} is not a file: pass the path of a database file`);
  const lock = lockDatabase(path);
  try {
    const space = spaceFor(path, lock.usedBytes);
    observer.onLocked(space);
    assertSpace(space);
    return await withTemporaryFolder(path, clock, async (folder) => {
      observer.onStep('verify');
      const before = await archiver.verify(path, `the database ${path}`, version);
      const compacted = join(folder, 'compact.db');
      observer.onStep('write');
      await archiver.compact(path, compacted);
      observer.onStep('verify copy');
      const label = `${path} was not changed, because the new file failed verification`;
      const summary = await archiver.verify(compacted, label, version);
      if (!Bun.deepEquals(before, summary))
        throw new Refusal(`${label}: its rows differ from those of the database`);
      const sizes = { bytesBefore: statSync(path).size, bytesAfter: statSync(compacted).size };
      replaceDatabase(path, compacted);
      return { summary, ...sizes };
    });
  } finally {
    lock.release();
  }
}

function spaceFor(path: string, usedBytes: number): SpaceNeeded {
  const folder = dirname(path);
  const { bavail, bsize } = statfsSync(folder);
  return { folder, neededBytes: Math.ceil(usedBytes * SPACE_FACTOR), freeBytes: bavail * bsize };
}

function assertSpace({ folder, neededBytes, freeBytes }: SpaceNeeded): void {
  if (freeBytes >= neededBytes) return;
  throw new Refusal(
    `${folder} has ${freeBytes} bytes free, but up to ${neededBytes} are needed: free space there, and run the same ` +
      'command again; nothing was changed',
  );
}
