import { Fault, Refusal } from '../../domain/fault.ts';

/** Stands before the installation that is copied, in a database that does not hold all of it. */
const UNFINISHED = 'unfinished copy of ';

/** `run` tells it from every other copy into that database: only the one that marked it last goes on there. */
export function unfinishedCopyOf(storeId: string, run: string): string {
  return `${UNFINISHED}${storeId} by ${run}`;
}

export function isUnfinishedCopyOf(storeId: string, marked: string): boolean {
  return marked.startsWith(UNFINISHED + storeId);
}

export function isUnfinished(storeId: string): boolean {
  return storeId.startsWith(UNFINISHED);
}

/** Throws Refusal where a database was marked by somebody else since. */
export function proveOnlyCopy(isOurs: boolean): void {
  if (isOurs) return;
  throw new Refusal(
    'it is no longer what this copy has found or left there: another copy into it has begun, or somebody writes to it. ' +
      'Let one of them end, and run the same command again',
  );
}

/** Throws Refusal where a database must not be used yet. */
export function proveFinished(storeId: string): void {
  if (!isUnfinished(storeId)) return;
  throw new Refusal(
    'a copy into this database has not ended, and it does not hold everything: run the same authrealm copy again, ' +
      'which goes on from there',
  );
}

/** Throws Fault `unavailable` in the same case: for who has the database open already. */
export function proveServable(storeId: string): void {
  if (!isUnfinished(storeId)) return;
  throw new Fault('unavailable', [], new UnfinishedCopy());
}

class UnfinishedCopy extends Error {
  readonly code = 'COPY_UNFINISHED';

  constructor() {
    super('a copy into this database has not ended: run authrealm copy again, which goes on from there');
  }
}
