import type { Database } from 'bun:sqlite';
import type { ScrubOptions, ScrubResult } from '../../audit/port.ts';
import { Fault } from '../../domain/fault.ts';
import { LIMITS } from '../../domain/limits.ts';
import { retryWhileBusy } from './connection.ts';
import type { SharedReadTransaction } from './shared_read_transaction.ts';

/**
 * Folds the write-ahead log into the file and empties it, then has another process look for the texts in every byte of the
 * file. What is deleted is overwritten (`secure_delete`), so nothing of them is to be found, but what records of others hold,
 * and where another program wrote the file: then it is written anew.
 */
export async function scrubSqlite(
  db: Database,
  sharedReads: SharedReadTransaction,
  texts: readonly string[],
  { search, mayRewrite, rewriteAlways: isBlind = false }: ScrubOptions,
): Promise<ScrubResult> {
  if (db.filename === '' || db.filename === ':memory:') return { kind: 'clean', isRewritten: false };
  const wanted = [...new Set(texts)].filter((text) => text !== '');
  await emptyLog(db, sharedReads);
  const isLeft = isBlind || (await search(db.filename, wanted));
  if (!isLeft) return { kind: 'clean', isRewritten: false };
  if (!mayRewrite) return { kind: 'left' };
  await retryWhileBusy(() => {
    sharedReads.end();
    db.run('vacuum');
  }, LIMITS.migrationWaitMsMax);
  await emptyLog(db, sharedReads);
  return (await search(db.filename, wanted)) ? { kind: 'left' } : { kind: 'clean', isRewritten: true };
}

/** Somebody reads an older state. */
class LogInUse extends Error {}

/** Waits for readers of older states; they read no longer than a turn. Rejects with Fault `unavailable` where one stays. */
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
