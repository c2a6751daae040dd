import type { Database } from 'bun:sqlite';
import { Fault } from '../../model/fault.ts';
import { LIMITS } from '../../model/limits.ts';
import type { SharedReadTransaction } from './shared_read_transaction.ts';

/** A reader still uses an older snapshot. */
class LogInUse extends Error {}

/**
 * Moves the write-ahead log into the file and truncates it. The engine has overwritten deleted data (`secure_delete`), except for copies
 * that it left when it split or merged pages (docs/decisions/0021-audit-log.md#decision). Waits for readers of older snapshots, which
 * usually take one turn. Rejects with Fault `unavailable` after a timeout.
 */
export async function removeErasedBytes(db: Database, sharedReads: SharedReadTransaction): Promise<void> {
  const deadline = performance.now() + LIMITS.migrationWaitMsMax;
  for (;;) {
    sharedReads.end();
    const row = db.query<{ busy: number }, []>('pragma wal_checkpoint(truncate)').get();
    if (row?.busy === 0) return;
    if (performance.now() > deadline) throw new Fault('unavailable', [], new LogInUse());
    await Bun.sleep(LIMITS.commitPauseMs);
  }
}
