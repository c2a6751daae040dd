import { Database } from 'bun:sqlite';
import { COMMAND_LINE, createAuditEntry } from '../../domain/audit_entry.ts';
import type { Erasure } from '../../domain/erasure.ts';
import type { Clock } from '../../domain/id.ts';
import { LIMITS } from '../../domain/limits.ts';
import { user } from '../../domain/resources.ts';
import type { Engine } from '../engine.ts';
import { queryOnce } from '../sqlite/connection.ts';

/** Erasures that a database knows of; none where its schema is older than they are. */
export function selectErasures(db: Database): readonly Erasure[] {
  const tables = queryOnce(db, `select 1 from sqlite_schema where type = 'table' and name = 'erasure'`);
  if (tables.length === 0) return [];
  return queryOnce<Erasure>(db, 'select realm_id as realm, user_id as user, at from erasure');
}

/** Opens a database that is about to be served, its schema brought up and its log kept. */
export type OpenRestored = (path: string) => Promise<Pick<Engine, 'records' | 'close'>>;

/** A database, and the time up to which it can know of anything, in milliseconds since the epoch. */
export interface RestoredDatabase {
  readonly path: string;
  readonly knowsUntil: number;
}

/**
 * Erases in a database whom it does not know to be erased: the user with everything below it and every answer that tells
 * of it, and what its log could tell of the person. An erasure that it knows of was applied there, and whoever came under
 * that identifier afterwards is another one. What it says of a time that had not come is not believed: no key speaks for
 * it, and it would keep somebody in. Nobody else may have the database open. Answers how many erasures were new to it, and
 * how many users were there.
 */
export async function applyErasures(
  { path, knowsUntil }: RestoredDatabase,
  erasures: readonly Erasure[],
  open: OpenRestored,
  clock: Clock,
): Promise<{ readonly applied: number; readonly users: number }> {
  const missing = missingIn({ path, knowsUntil }, erasures);
  if (missing.length === 0) return { applied: 0, users: 0 };
  const { records, close } = await open(path);
  let users = 0;
  try {
    for (const erasure of missing) if (await eraseAgain(records, erasure, clock)) users += 1;
  } finally {
    await close();
  }
  noteErasures(path, missing, clock.now());
  return { applied: missing.length, users };
}

/** Answers whether there was such a user. */
async function eraseAgain(
  records: Engine['records'],
  { realm, user: id }: Erasure,
  clock: Clock,
): Promise<boolean> {
  const key = [realm, id] as const;
  const { mintRevision } = clock;
  const origin = { ...COMMAND_LINE, at: clock.now() };
  const auditEntry = createAuditEntry('user.erased', { realm, user: id, object: id, detail: {} }, clock);
  const isThere = (await records.get(user, key)) !== undefined;
  while ((await records.erase({ key, origin, mintRevision, auditEntry })).kind === 'too_many')
    await records.purge({ resource: user, key, origin, mintRevision, isErasure: true });
  return isThere;
}

function missingIn({ path, knowsUntil }: RestoredDatabase, erasures: readonly Erasure[]): readonly Erasure[] {
  const db = new Database(path, { readonly: true });
  try {
    const believed = selectErasures(db).filter(({ at }) => at <= knowsUntil + LIMITS.clockLeewayMs);
    const known = new Map(believed.map(({ realm, user: id, at }) => [`${realm} ${id}`, at]));
    return erasures.filter(({ realm, user: id, at }) => (known.get(`${realm} ${id}`) ?? -1) < at);
  } finally {
    db.close(false);
  }
}

/** As of when it happened first, so that the next restore knows of it as well; the file is written anew afterwards. */
const NOTE = `insert into erasure (realm_id, user_id, at, scrubbed_at) values (?, ?, ?, ?)
  on conflict (realm_id, user_id) do update set at = excluded.at, scrubbed_at = excluded.scrubbed_at, told_at = null`;

function noteErasures(path: string, erasures: readonly Erasure[], now: number): void {
  const db = new Database(path, { readwrite: true });
  try {
    const note = db.prepare(NOTE);
    db.transaction(() => {
      for (const { realm, user: id, at } of erasures) note.run(realm, id, at, now);
    })();
    note.finalize();
  } finally {
    db.close(false);
  }
}
