import type { Database } from 'bun:sqlite';
import { renameSync, rmSync } from 'node:fs';
import { Refusal } from '../../domain/fault.ts';
import type { Ambient } from '../../domain/id.ts';
import { LIMITS } from '../../domain/limits.ts';
import { createPrivately, retryWhileBusy } from './connection.ts';

export interface Migration {
  readonly version: number;
  readonly name: string;
  readonly sql: string;
}

/** What to do about a schema that is older than the program: bring it up, refuse to start, or trust the operator. */
export type MigrateMode = 'auto' | 'check' | 'off';

interface Applied {
  readonly version: number;
  readonly program_version: string;
}

/**
 * Brings the schema to the newest migration, each applied once however many processes try: the check and the rows
 * stand in one transaction that holds the write lock. A file that already holds data is copied first.
 */
export async function migrate(
  db: Database,
  mode: MigrateMode,
  migrations: readonly Migration[],
  program: { readonly version: string; readonly ambient: Ambient },
): Promise<void> {
  const newest = migrations.at(-1)?.version ?? 0;
  const found = await retryWhileBusy(() => newestApplied(db), LIMITS.startWaitMsMax);
  if (found && found.version > newest) throw tooNew(found, newest, program.version);
  if (mode === 'off' || found?.version === newest) return;
  if (mode === 'check') {
    throw new Refusal(
      `the database has schema ${found?.version ?? 0}, this program needs ${newest}: start it once with --migrate auto`,
    );
  }
  if (found)
    await retryWhileBusy(() => copy(db, `${db.filename}.schema-${found.version}`), LIMITS.startWaitMsMax);
  await retryWhileBusy(() => applyPending(db, migrations, program), LIMITS.startWaitMsMax);
}

function newestApplied(db: Database): Applied | undefined {
  const tables = db.query<{ name: string }, []>(`select name from sqlite_schema where type = 'table'`).all();
  if (tables.some(({ name }) => name === 'migration')) {
    return db.query<Applied, []>('select * from migration order by version desc limit 1').get() ?? undefined;
  }
  if (tables.length === 0) return undefined;
  throw new Refusal('the database file belongs to another program: it has tables, but none of authrealm');
}

function tooNew(found: Applied, newest: number, version: string): Refusal {
  return new Refusal(
    `the database has schema ${found.version}, made by authrealm ${found.program_version}; this is authrealm ` +
      `${version}, which knows schemas up to ${newest}: install authrealm ${found.program_version} or newer`,
  );
}

function applyPending(
  db: Database,
  migrations: readonly Migration[],
  { version, ambient }: { readonly version: string; readonly ambient: Ambient },
): void {
  db.run('begin immediate');
  try {
    db.run(`create table if not exists migration (
      version integer not null primary key, name text not null, applied_at integer not null,
      program_version text not null) strict`);
    const insert = db.prepare('insert into migration values (?, ?, ?, ?)');
    const done = newestApplied(db)?.version ?? 0;
    for (const migration of migrations.filter((each) => each.version > done)) {
      db.run(migration.sql);
      insert.run(migration.version, migration.name, ambient.now(), version);
    }
    db.prepare('insert or ignore into instance values (1, ?, 1)').run(ambient.mintId());
    db.run('commit');
  } catch (error) {
    if (db.inTransaction) db.run('rollback');
    throw error;
  }
}

/** Copies a live database into a new file, complete and consistent; the file appears only when it is whole. */
export function copy(db: Database, path: string): void {
  const partial = `${path}.partial`;
  rmSync(partial, { force: true });
  createPrivately(partial);
  db.prepare('vacuum into ?').run(partial);
  renameSync(partial, path);
}
