import { unlessAbsent } from './problem.ts';
import { readRealmName } from './records.ts';

/** Names of realms by ID; undefined where the session cannot read it. */
export type RealmNames = Map<string, string | undefined>;

/** Adds the names of these realms that are missing. After an error, those that could be read have been added. */
export async function readNamesOfRealms(
  realms: readonly string[],
  known: RealmNames,
  signal?: AbortSignal,
): Promise<void> {
  const missing = new Set(realms.filter((realm) => !known.has(realm)));
  const readings = await Promise.allSettled(
    [...missing].map(async (realm) => known.set(realm, await unlessAbsent(readRealmName(realm, signal)))),
  );
  const failed = readings.find((reading) => reading.status === 'rejected');
  if (failed) throw failed.reason;
}
