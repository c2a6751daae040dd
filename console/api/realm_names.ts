import { unlessAbsent } from './problem.ts';
import { readRealmName } from './records.ts';

/** Names of realms by ID; undefined where the session cannot read it. */
export type RealmNames = Map<string, string | undefined>;

/** Adds the names of these realms that are missing. */
export async function readNamesOfRealms(
  realms: readonly string[],
  known: RealmNames,
  signal: AbortSignal | undefined,
): Promise<void> {
  const missing = new Set(realms.filter((realm) => !known.has(realm)));
  await Promise.all(
    [...missing].map(async (realm) => known.set(realm, await unlessAbsent(readRealmName(realm, signal)))),
  );
}
