import { Database } from 'bun:sqlite';
import type { Resource } from '../../../model/resource.ts';
import type { KeyedRecord, RecordSnapshot } from '../../../model/store.ts';
import { retryWhileBusy, sqliteFault, throwSqliteFault } from '../../../sql/sqlite/connection.ts';
import type { Scan } from '../statements.ts';
import { sqliteStatements } from './dialect.ts';
import { connectToRead } from './reader.ts';

/**
 * Opens a snapshot of the records: a read transaction on its own connection, concurrent with lookups and commits. Until
 * it is closed, the write-ahead log cannot be checkpointed completely, and grows with every write.
 */
export async function takeSqliteSnapshot(db: Database): Promise<RecordSnapshot> {
  return snapshotOver(await retryWhileBusy(() => openReadTransaction(db)).catch(throwSqliteFault));
}

/** Opens a read transaction on a new connection. */
function openReadTransaction(db: Database): Database {
  // Only its own connection can read a database in memory, so its snapshot is a copy.
  if (db.filename === '' || db.filename === ':memory:') return Database.deserialize(db.serialize());
  const connection = connectToRead(db.filename);
  try {
    connection.run('begin');
    // The first read of the transaction takes its snapshot.
    connection.query('select count(*) from sqlite_schema').get();
    return connection;
  } catch (error) {
    connection.close(false);
    throw error;
  }
}

function snapshotOver(db: Database): RecordSnapshot {
  function read(resource: Resource, scan: Scan, ...values: (string | number)[]): readonly KeyedRecord[] {
    const { [scan]: text, decodeKeyed } = sqliteStatements(resource);
    try {
      return db
        .query<Record<string, unknown>, (string | number)[]>(text)
        .all(...values)
        .map(decodeKeyed);
    } catch (error) {
      throw sqliteFault(error);
    }
  }
  return {
    scan: (resource, after, limit, within) =>
      read(resource, within ? 'scanRealm' : 'scan', within ?? after.realm, after.id, limit),
    scanBelow: (resource, ...range) => read(resource, 'scanBelow', ...range),
    close: () => db.close(false),
  };
}
