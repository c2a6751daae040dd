import { Fault, Refusal } from '../../domain/fault.ts';

/** Stands before the installation that is copied, in a database that does not hold all of it. */
const UNFINISHED = 'unfinished copy of ';

export function unfinishedCopyOf(storeId: string): string {
  return UNFINISHED + storeId;
}

export function isUnfinished(storeId: string): boolean {
  return storeId.startsWith(UNFINISHED);
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
