import { Refusal } from '../../domain/fault.ts';

/** Throws Refusal unless a database has the newest schema; a target may have none yet. */
export function proveNewest(found: number | undefined, newest: number, which: 'source' | 'target'): void {
  if (found === newest) return;
  if (found !== undefined) {
    throw new Refusal(
      `it has schema ${found}, and this program needs ${newest}: bring it up first, by authrealm migrate of this ` +
        'release. Programs of the older release will then refuse it',
    );
  }
  if (which === 'source') throw new Refusal('there is no database of authrealm there');
}
