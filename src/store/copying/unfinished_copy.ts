import { Fault, Refusal } from '../../domain/fault.ts';

/** The prefix of the installation ID in a database whose copy is not complete. */
const UNFINISHED = 'unfinished copy of ';

/** The marker of a run. Only the run that marked a database last may write to it. */
export function unfinishedCopyOf(storeId: string, run: string): string {
  return `${UNFINISHED}${storeId} by ${run}`;
}

export function isUnfinishedCopyOf(storeId: string, storedId: string): boolean {
  return storedId.startsWith(UNFINISHED + storeId);
}

export function isUnfinished(storeId: string): boolean {
  return storeId.startsWith(UNFINISHED);
}

/** Throws Refusal where a database no longer has the marker of this run. */
export function assertMarked(isMarked: boolean): void {
  if (isMarked) return;
  throw new Refusal(
    'another copy into it has begun, or another process changed it: stop that process, and run the same command again',
  );
}

const UNFINISHED_COPY = 'the copy into this database is not complete';

/** Throws Refusal for an unfinished copy, which must not be served. */
export function assertComplete(storeId: string): void {
  if (!isUnfinished(storeId)) return;
  throw new Refusal(`${UNFINISHED_COPY}: run authrealm copy again to complete it`);
}

/** Throws Fault `unavailable` in that case, for a process that already has the database open. */
export function assertServable(storeId: string): void {
  if (!isUnfinished(storeId)) return;
  throw new Fault('unavailable', [], new UnfinishedCopy());
}

class UnfinishedCopy extends Error {
  readonly code = 'COPY_UNFINISHED';

  constructor() {
    super(`${UNFINISHED_COPY}: run authrealm copy again to continue`);
  }
}
