import { Refusal } from '../../domain/fault.ts';

/** Throws Refusal unless a database has the newest schema; a target may have none yet. */
export function assertNewest(found: number | undefined, newest: number, which: 'source' | 'target'): void {
  if (found === newest) return;
  if (found !== undefined && found > newest) {
    throw new Refusal(
      `it has schema ${found}, and this program copies ${newest}: take the release that brought it up`,
    );
  }
  if (found !== undefined) {
    throw new Refusal(
      `it has schema ${found}, and this program needs ${newest}: bring it up first, by authrealm migrate of this ` +
        'release. UPGRADING.md says whether programs of the older release go on then',
    );
  }
  if (which === 'source') throw new Refusal('there is no database of authrealm there');
}
