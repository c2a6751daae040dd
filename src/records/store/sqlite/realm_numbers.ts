import type { Database } from 'bun:sqlite';
import type { Uuid } from '../../../model/id.ts';
import { LIMITS } from '../../../model/limits.ts';

/** The numbers of realms, for lookups. */
export interface RealmNumbers {
  /** Those that were found before. */
  readonly known: ReadonlyMap<Uuid, number>;
  /** The number of another realm; undefined where no realm has ever had this ID. */
  readonly find: (realm: Uuid) => number | undefined;
}

/**
 * Remembers the numbers that it finds on one connection: one belongs to its realm for ever, also while the realm is deleted. A lookup
 * never runs inside a commit (`takeLock` in writer.ts), so none of them is rolled back.
 */
export function openRealmNumbers(db: Pick<Database, 'prepare'>): RealmNumbers {
  const select = db.prepare<{ readonly number: number }, [string]>(
    'select number from realm_clock where realm_id = ?',
  );
  const known = new Map<Uuid, number>();
  return {
    known,
    find(realm) {
      const found = select.get(realm)?.number;
      if (found === undefined) return undefined;
      if (known.size >= LIMITS.realmNumbersKnownMax) known.delete(known.keys().next().value as Uuid);
      known.set(realm, found);
      return found;
    },
  };
}
