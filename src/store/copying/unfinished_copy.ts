import { Fault, Refusal } from '../../domain/fault.ts';

/** Stands in front of the ID of the installation, in a database that does not hold all of it yet. */
const UNFINISHED = 'unfinished copy of ';

/** Only the run that marked a database last may write to it. */
export function unfinishedCopyOf(storeId: string, run: string): string {
  return `${UNFINISHED}${storeId} by ${run}`;
}

export function isUnfinishedCopyOf(storeId: string, marked: string): boolean {
  return marked.startsWith(UNFINISHED + storeId);
}

export function isUnfinished(storeId: string): boolean {
  return storeId.startsWith(UNFINISHED);
}

/** Throws Refusal where a database no longer has the mark that this run gave it. */
export function assertMarked(isMarked: boolean): void {
  if (isMarked) return;
  throw new Refusal(
    'another copy into it has begun, or it was changed by another writer: stop that one, and run the same command again',
  );
}

const UNFINISHED_COPY = 'a copy into this database has not ended, and it does not hold everything';

/** Throws Refusal where a database must not be used yet. */
export function assertComplete(storeId: string): void {
  if (!isUnfinished(storeId)) return;
  throw new Refusal(`${UNFINISHED_COPY}: run authrealm copy again without --prepare, which completes it`);
}

/** Throws Fault `unavailable` in the same case, for a process that has the database open already. */
export function assertServable(storeId: string): void {
  if (!isUnfinished(storeId)) return;
  throw new Fault('unavailable', [], new UnfinishedCopy());
}

class UnfinishedCopy extends Error {
  readonly code = 'COPY_UNFINISHED';

  constructor() {
    super(`${UNFINISHED_COPY}: run authrealm copy again, which goes on from there`);
  }
}
