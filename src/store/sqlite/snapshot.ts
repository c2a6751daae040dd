import { Database } from 'bun:sqlite';
import type { RecordSnapshot } from '../../directory/store.ts';
import { MAPPED_BYTES_MAX, retryWhileBusy, sqliteFault } from './connection.ts';
import { sqliteStatements } from './dialect.ts';

/**
 * Takes a picture of a database: one read transaction on a connection of its own, so that lookups and commits go on
 * beside it. Until it is closed the write-ahead log cannot be folded back, and grows with what is written.
 */
export async function takeSqliteSnapshot(db: Database): Promise<RecordSnapshot> {
  try {
    const own = await retryWhileBusy(() => openReadTransaction(db));
    return over(own);
  } catch (error) {
    throw sqliteFault(error);
  }
}

/** A read transaction on a connection of its own. */
export function openReadTransaction(db: Database): Database {
  // Nothing but its own connection reaches a database in memory: its picture is a copy.
  if (db.filename === '' || db.filename === ':memory:') return Database.deserialize(db.serialize());
  const own = new Database(db.filename, { readonly: true });
  try {
    own.run('pragma busy_timeout = 0');
    own.run(`pragma mmap_size = ${MAPPED_BYTES_MAX}`);
    own.run('begin');
    // A transaction sees the moment of its first read.
    own.query('select count(*) from sqlite_schema').get();
    return own;
  } catch (error) {
    own.close(false);
    throw error;
  }
}

function over(db: Database): RecordSnapshot {
  return {
    scan: (resource, after, limit, within) =>
      reading(() => {
        const { scan, scanRealm, decodePlaced } = sqliteStatements(resource);
        const rows = db.query<Record<string, unknown>, [string, string, number]>(within ? scanRealm : scan);
        return rows.all(within ?? after.realm, after.id, limit).map(decodePlaced);
      }),
    count: (resource, within) =>
      reading(() => {
        const { count, countRealm } = sqliteStatements(resource);
        const row = within
          ? db.query<{ n: number }, [string]>(countRealm).get(within)
          : db.query<{ n: number }, []>(count).get();
        return row?.n ?? 0;
      }),
    close: () => db.close(false),
  };
}

function reading<T>(work: () => T): T {
  try {
    return work();
  } catch (error) {
    throw sqliteFault(error);
  }
}
