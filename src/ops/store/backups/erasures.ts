import { Database } from 'bun:sqlite';
import type { Clock } from '../../../model/id.ts';
import { LIMITS } from '../../../model/limits.ts';
import { COMMAND_LINE, createAuditEntry } from '../../../model/log/audit_entry.ts';
import type { Erasure } from '../../../model/log/erasure.ts';
import { user } from '../../../model/resources.ts';
import { queryOnce } from '../../../sql/sqlite/connection.ts';
import type { Engine } from '../engine.ts';

/** The erasures that a database has recorded. */
export function selectErasures(db: Database): readonly Erasure[] {
  return queryOnce<Erasure>(db, 'select realm_id as realm, user_id as user, at from erasure');
}

/** Opens a restored database for writing, with a migrated schema and its audit log. */
export type OpenRestored = (path: string) => Promise<Pick<Engine, 'records' | 'close'>>;

/** A database and the time of its last possible record, in milliseconds since the epoch. */
interface RestoredDatabase {
  readonly path: string;
  readonly knownUntil: number;
}

/**
 * Applies erasures that a database has not recorded: it removes the user with all records below it, and
 * the personal data in its log. A recorded erasure was applied already, and a user created later
 * with the same ID is another person. Recorded erasures after `knownUntil` are ignored, because they are unsigned and a
 * forged one would keep a user from being erased. No other process may have the database open. Returns how many
 * erasures were new, and how many users they removed. The times of the original erasures stay for the next restore.
 */
export async function applyErasures(
  { path, knownUntil }: RestoredDatabase,
  erasures: readonly Erasure[],
  open: OpenRestored,
  clock: Clock,
): Promise<{ readonly applied: number; readonly users: number }> {
  const missing = missingIn({ path, knownUntil }, erasures);
  if (missing.length === 0) return { applied: 0, users: 0 };
  const { records, close } = await open(path);
  let users = 0;
  try {
    for (const { realm, user: id, at: recordedAt } of missing) {
      const key = [realm, id] as const;
      const origin = { ...COMMAND_LINE, at: clock.now() };
      const auditEntry = createAuditEntry('user.erased', { realm, user: id, object: id, detail: {} }, clock);
      if (await records.get(user, key)) users += 1;
      await records.erase({ key, origin, mintRevision: clock.mintRevision, auditEntry, recordedAt });
    }
  } finally {
    await close();
  }
  return { applied: missing.length, users };
}

/** The last erasure of each user that the database has not recorded. */
function missingIn({ path, knownUntil }: RestoredDatabase, erasures: readonly Erasure[]): readonly Erasure[] {
  using db = new Database(path, { readonly: true });
  const recorded = selectErasures(db).filter(({ at }) => at <= knownUntil + LIMITS.clockLeewayMs);
  const known = latestByUser(recorded);
  return [...latestByUser(erasures)]
    .filter(([name, { at }]) => (known.get(name)?.at ?? -1) < at)
    .map(([, erasure]) => erasure);
}

function latestByUser(erasures: readonly Erasure[]): ReadonlyMap<string, Erasure> {
  const sorted = erasures.toSorted((one, other) => one.at - other.at);
  return new Map(sorted.map((erasure) => [`${erasure.realm} ${erasure.user}`, erasure]));
}
