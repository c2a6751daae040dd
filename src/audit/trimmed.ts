import { daysBefore } from '../domain/days.ts';
import { LIMITS } from '../domain/limits.ts';
import type { Checkpoint } from './checkpoint.ts';
import type { Anchor, StoredEntry } from './port.ts';
import type { Find } from './walk.ts';

/** What was said outside of the database, as far as one log is concerned. */
export interface Outside {
  readonly checkpoints: readonly Checkpoint[];
  /** Retention may have removed what was written before, in milliseconds since the epoch; undefined where nothing was said. */
  readonly removableBefore: number | undefined;
}

/** Up to when an entry must have been written that retention may have removed by now. */
export type Horizon = (now: number) => number | undefined;

/**
 * By the checkpoints' own times, each with the retention that was in force then; after the newest one by the time of who
 * asks. So nobody who has the database and the master key has it believed that something was old.
 */
export function horizonOf(checkpoints: readonly Checkpoint[]): Horizon {
  const newest = checkpoints.reduce<Checkpoint | undefined>(
    (found, each) => (found && found.at > each.at ? found : each),
    undefined,
  );
  if (!newest) return () => undefined;
  const said = checkpoints.reduce((latest, each) => Math.max(latest, horizonAt(each.at, each)), 0);
  return (now) => Math.max(said, horizonAt(now, newest));
}

function horizonAt(time: number, { retentionDays }: Checkpoint): number {
  return daysBefore(time, retentionDays);
}

/**
 * Judges a log whose oldest entries went. Retention leaves the newest of those that are old enough to go: as a later
 * checkpoint proves that entry, it proves that what stood before was old. Where no later one does, nothing went that was
 * written after a checkpoint of late.
 */
export function judgeTrimmed(
  anchor: Anchor,
  first: StoredEntry,
  { checkpoints, removableBefore: before }: Outside,
  find: Find,
): void {
  if (before === undefined) return;
  if (!(first.at < before)) {
    find(first.seq, 'what stood before it was removed, and it is not old enough for that to be retention');
  }
  // What is behind a checkpoint was written later than it, as far as clocks agree.
  const late = before + LIMITS.retentionEveryMs;
  const recent = checkpoints.find(({ position, at }) => position <= anchor.seq && !(at < late));
  if (!recent) return;
  const said = new Date(recent.at).toISOString();
  find(recent.position, `a checkpoint of ${said} tells of it, and it was removed: too early for retention`);
}
