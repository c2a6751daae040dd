import type { Database } from 'bun:sqlite';
import type { Scrubbed, Scrubbing } from '../../audit/port.ts';
import { Fault } from '../../domain/fault.ts';
import { LIMITS } from '../../domain/limits.ts';
import { isVisible, membersOf } from '../../domain/resource.ts';
import { RESOURCES } from '../../domain/resources.ts';
import { retryWhileBusy } from './connection.ts';
import { statementsOf } from './dialect.ts';
import type { Snapshot } from './snapshot.ts';

/**
 * Folds the write-ahead log into the file and empties it, then looks for the texts in every byte of the file. What is
 * deleted is overwritten (`secure_delete`), so nothing of them is to be found, but where another program wrote the file:
 * then it is written anew.
 */
export async function scrub(
  db: Database,
  snapshot: Snapshot,
  texts: readonly string[],
  { search, mayRewrite, isBlind = false }: Scrubbing,
): Promise<Scrubbed> {
  if (db.filename === '' || db.filename === ':memory:') return { kind: 'clean', isRewritten: false };
  const wanted = [...new Set(texts)].filter((text) => text !== '');
  await emptyLog(db, snapshot);
  // Closing a second descriptor of the file would drop the locks of this process.
  const found = await search(db.filename, wanted);
  const isLeft = isBlind || found.some((text) => !isHeld(db, text));
  if (!isLeft) return { kind: 'clean', isRewritten: false };
  if (!mayRewrite) return { kind: 'left' };
  await retryWhileBusy(() => {
    snapshot.end();
    db.run('vacuum');
  }, LIMITS.startWaitMsMax);
  await emptyLog(db, snapshot);
  const remaining = await search(db.filename, wanted);
  return remaining.every((text) => isHeld(db, text))
    ? { kind: 'clean', isRewritten: true }
    : { kind: 'left' };
}

/** Somebody reads an older state. */
class LogHeld extends Error {}

/** Waits for readers of older states; they read no longer than a turn. Rejects with Fault `unavailable` where one stays. */
async function emptyLog(db: Database, snapshot: Snapshot): Promise<void> {
  const deadline = performance.now() + LIMITS.startWaitMsMax;
  for (;;) {
    snapshot.end();
    const row = db.query<{ busy: number }, []>('pragma wal_checkpoint(truncate)').get();
    if (row?.busy === 0) return;
    if (performance.now() > deadline) throw new Fault('unavailable', [], new LogHeld());
    await Bun.sleep(LIMITS.commitPauseMs);
  }
}

/** Whether a record of somebody else holds the text, in a member or in what it is compared by. */
function isHeld(db: Database, text: string): boolean {
  return RESOURCES.some((resource) => {
    const columns = statementsOf(resource).columns.filter((column) => isTextual(resource, column));
    const conditions = columns.map((column) => `instr(${column}, ?1) > 0`).join(' or ');
    return db.query(`select 1 from ${resource.table} where ${conditions} limit 1`).get(text) !== null;
  });
}

/** A column of a member that callers see, or of what such a member is compared by. */
function isTextual(resource: (typeof RESOURCES)[number], column: string): boolean {
  return membersOf(resource).some(
    (member) => isVisible(member) && (column === member.name || column === `${member.name}_key`),
  );
}
