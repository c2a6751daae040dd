import type { Database } from 'bun:sqlite';
import { readdirSync, readFileSync } from 'node:fs';
import type { AccessStore } from '../../access/port.ts';
import type { Loader, Store } from '../../directory/store.ts';
import type { Ambient } from '../../domain/id.ts';
import { LIMITS } from '../../domain/limits.ts';
import { openAccess } from './access.ts';
import { connect, retryWhileBusy } from './connection.ts';
import { copy, type MigrateMode, type Migration, migrate } from './migrate.ts';
import { openRecords } from './records.ts';
import { openSnapshot } from './snapshot.ts';
import { openWriter } from './writer.ts';

/** An open database: one port for records, one for filling, one for access. */
export interface Engine {
  readonly records: Store & Loader;
  readonly access: AccessStore;
  /** Copies everything into a new file, complete and consistent, while the service runs. */
  copyTo(path: string): Promise<void>;
  close(): void;
}

const MIGRATIONS_URL = new URL('./migrations/', import.meta.url);

/** The numbered files beside this one, in order. */
export function knownMigrations(): readonly Migration[] {
  return readdirSync(MIGRATIONS_URL)
    .sort()
    .map((file) => ({
      version: Number.parseInt(file, 10),
      name: file.replace(/^\d+_|\.sql$/g, ''),
      sql: readFileSync(new URL(file, MIGRATIONS_URL), 'utf8'),
    }));
}

/**
 * Opens a SQLite database, made if absent, and brings its schema up as `mode` says. Throws Refusal where the schema
 * cannot be served.
 */
export async function openSqlite(
  path: string,
  mode: MigrateMode,
  program: { readonly version: string; readonly ambient: Ambient },
): Promise<Engine> {
  return opening(path, async (db) => {
    await retryWhileBusy(() => db.run('pragma journal_mode = wal'), LIMITS.startWaitMsMax);
    await migrate(db, mode, knownMigrations(), program);
  });
}

/** Opens a database that another process has already made and migrated. */
export function reopenSqlite(path: string): Promise<Engine> {
  return opening(path, async () => undefined);
}

/**
 * Any first touch of the file, even preparing a statement, can meet the lock of another start: each step waits for it.
 */
async function opening(path: string, makeReady: (db: Database) => Promise<void>): Promise<Engine> {
  const db = await retryWhileBusy(() => connect(path), LIMITS.startWaitMsMax);
  try {
    await makeReady(db);
    return await retryWhileBusy(() => engineOver(db), LIMITS.startWaitMsMax);
  } catch (error) {
    db.close(false);
    throw error;
  }
}

function engineOver(db: Database): Engine {
  const snapshot = openSnapshot(db);
  const writer = openWriter(db, snapshot);
  return {
    records: openRecords(db, snapshot, writer),
    access: openAccess(db, snapshot, writer),
    copyTo: (path) =>
      retryWhileBusy(() => {
        snapshot.end();
        copy(db, path);
      }),
    close() {
      snapshot.close();
      db.close(false);
    },
  };
}
