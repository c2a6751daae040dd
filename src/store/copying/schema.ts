import { Refusal } from '../../domain/fault.ts';

/** Throws Refusal unless a database has the newest schema. A target may be empty. */
export function assertNewest(found: number | undefined, newest: number, which: 'source' | 'target'): void {
  if (found === newest) return;
  if (found !== undefined && found > newest) {
    throw new Refusal(
      `it has schema ${found}, but this program copies ${newest}: use the release that migrated it`,
    );
  }
  if (found !== undefined) {
    throw new Refusal(
      `it has schema ${found}, but this program needs ${newest}: run authrealm migrate of this release first (UPGRADING.md ` +
        'lists whether programs of the older release can still serve it then)',
    );
  }
  if (which === 'source') throw new Refusal('there is no database of authrealm at this address');
}
