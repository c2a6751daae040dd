import type { Database } from 'bun:sqlite';
import type { ScrubOptions, ScrubResult } from '../../audit/port.ts';
import { Fault } from '../../domain/fault.ts';
import { LIMITS } from '../../domain/limits.ts';
import { retryWhileBusy, storeTemporaryData } from './connection.ts';
import type { SharedReadTransaction } from './shared_read_transaction.ts';

/**
 * Truncates the write-ahead log, then has another process search every byte of the file for the texts. Deleted data is
 * overwritten (`secure_delete`), so they remain only in records of others, or where another program wrote the file. In
 * the latter case the file is rewritten.
 */
export async function scrubSqlite(
  db: Database,
  sharedReads: SharedReadTransaction,
  texts: readonly string[],
  { search, mayRewrite, rewriteAlways = false }: ScrubOptions,
): Promise<ScrubResult> {
  if (db.filename === '' || db.filename === ':memory:') return { kind: 'clean', isRewritten: false };
  const searched = [...new Set(texts)].filter((text) => text !== '');
  await emptyLog(db, sharedReads);
  const isFound = rewriteAlways || (await search(db.filename, searched));
  if (!isFound) return { kind: 'clean', isRewritten: false };
  if (!mayRewrite) return { kind: 'left' };
  await retryWhileBusy(() => {
    sharedReads.end();
    rewriteFile(db);
  }, LIMITS.migrationWaitMsMax);
  await emptyLog(db, sharedReads);
  return (await search(db.filename, searched)) ? { kind: 'left' } : { kind: 'clean', isRewritten: true };
}

/** The copy that is written back is temporary data, and as large as the database. */
function rewriteFile(db: Database): void {
  storeTemporaryData(db, 'default');
  try {
    db.run('vacuum');
  } finally {
    storeTemporaryData(db, 'memory');
  }
}

/** A reader still uses an older snapshot. */
class LogInUse extends Error {}

/**
 * Waits for readers of older snapshots, which usually take one turn. Rejects with Fault `unavailable` after a timeout.
 */
async function emptyLog(db: Database, sharedReads: SharedReadTransaction): Promise<void> {
  const deadline = performance.now() + LIMITS.migrationWaitMsMax;
  for (;;) {
    sharedReads.end();
    const row = db.query<{ busy: number }, []>('pragma wal_checkpoint(truncate)').get();
    if (row?.busy === 0) return;
    if (performance.now() > deadline) throw new Fault('unavailable', [], new LogInUse());
    await Bun.sleep(LIMITS.commitPauseMs);
  }
}
