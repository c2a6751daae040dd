import { Database } from 'bun:sqlite';
import type { Erasure } from '../../domain/erasure.ts';
import { user } from '../../domain/resources.ts';
import type { Program } from '../migrations.ts';
import { rowsOnce } from '../sqlite/connection.ts';
import { openSqlite } from '../sqlite/open.ts';

/** Erasures that a database knows of; none where its schema is older than they are. */
export function readErasures(db: Database): readonly Erasure[] {
  if (!hasErasures(db)) return [];
  return rowsOnce<Erasure>(db, 'select realm_id as realm, user_id as user, at from erasure');
}

/**
 * Applies the erasures that a database does not know of: the user with everything below it and every answer that tells of
 * it, the salt of its values, and the row that says so. One that it knows of was applied there, and whoever came under
 * that identifier afterwards is another one. Nobody else may have the database open; its schema is brought up. Answers how
 * many erasures were new to it, and how many users were there.
 */
export async function applyErasures(
  path: string,
  erasures: readonly Erasure[],
  program: Program,
): Promise<{ readonly applied: number; readonly users: number }> {
  const missing = missingIn(path, erasures);
  if (missing.length === 0) return { applied: 0, users: 0 };
  const engine = await openSqlite(path, 'auto', program);
  let users = 0;
  try {
    for (const { realm, user: id } of missing) {
      const wanted = {
        resource: user,
        key: [realm, id],
        mintRevision: program.ambient.mintRevision,
      } as const;
      let isThere = false;
      for (let isDone = false; !isDone; ) {
        const origin = {
          actor: 'restore',
          requestId: undefined,
          address: undefined,
          at: program.ambient.now(),
        };
        const step = await engine.records.purge({ ...wanted, origin });
        isThere ||= step.kind === 'purged';
        isDone = step.kind !== 'purged' || step.isDone;
      }
      if (isThere) users += 1;
    }
  } finally {
    await engine.close();
  }
  noteErasures(path, missing);
  return { applied: missing.length, users };
}

function missingIn(path: string, erasures: readonly Erasure[]): readonly Erasure[] {
  const db = new Database(path, { readonly: true });
  try {
    const known = new Map(readErasures(db).map(({ realm, user: id, at }) => [`${realm} ${id}`, at]));
    return erasures.filter(({ realm, user: id, at }) => (known.get(`${realm} ${id}`) ?? -1) < at);
  } finally {
    db.close(false);
  }
}

const FORGET_SALT = 'delete from user_salt where realm_id = ? and user_id = ?';
const NOTE = `insert into erasure (realm_id, user_id, at) values (?, ?, ?)
  on conflict (realm_id, user_id) do update set at = excluded.at, scrubbed_at = null`;

function noteErasures(path: string, erasures: readonly Erasure[]): void {
  const db = new Database(path, { readwrite: true });
  try {
    if (!hasErasures(db)) return;
    const [forgetSalt, note] = [db.prepare(FORGET_SALT), db.prepare(NOTE)];
    db.transaction(() => {
      for (const { realm, user: id, at } of erasures) {
        forgetSalt.run(realm, id);
        note.run(realm, id, at);
      }
    })();
  } finally {
    db.close(false);
  }
}

function hasErasures(db: Database): boolean {
  return rowsOnce(db, `select 1 from sqlite_schema where type = 'table' and name = 'erasure'`).length > 0;
}
