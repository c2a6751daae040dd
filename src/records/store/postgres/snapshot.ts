import { NIL_UUID } from '../../../model/id.ts';
import type { Resource } from '../../../model/resource.ts';
import type { RecordSnapshot } from '../../../model/store.ts';
import { BEGIN_READ } from '../../../sql/postgres/begin_statements.ts';
import { type Connection, postgresFault, throwPostgresFault } from '../../../sql/postgres/connection.ts';
import { numberParameters, parameterValues } from '../../../sql/postgres/parameters.ts';
import type { ConnectionPool } from '../../../sql/postgres/pool.ts';
import type { Scan } from '../statements.ts';
import { postgresStatements } from './dialect.ts';

/**
 * Opens a snapshot of the records: a read transaction that stays open until the snapshot is closed. `begin` starts it; each
 * node of a cluster has its own.
 */
export function takePostgresSnapshot(pool: ConnectionPool, begin = BEGIN_READ): Promise<RecordSnapshot> {
  return new Promise<RecordSnapshot>((resolve, reject) => {
    pool
      .transaction(begin, async (connection) => {
        // The first statement of the transaction takes its snapshot, on every node that it reads.
        await connection.query('select 1 from realm limit 1', []);
        await new Promise<void>((end) => resolve(snapshotOver(connection, end)));
      })
      .catch((error) => reject(postgresFault(error)));
  });
}

function snapshotOver(connection: Connection, end: () => void): RecordSnapshot {
  async function read(resource: Resource, scan: Scan, ...values: (string | number)[]) {
    const { [scan]: statement, decodeKeyed } = postgresStatements(resource);
    const { text, order } = numberParameters(statement);
    const found = connection.query(text, parameterValues(values, order)).catch(throwPostgresFault);
    return (await found).rows.map(decodeKeyed);
  }
  return {
    scan: (resource, { realm, id }, limit, within) =>
      read(resource, within ? 'scanRealm' : 'scan', within ?? (realm || NIL_UUID), id || NIL_UUID, limit),
    scanBelow: (resource, ...range) => read(resource, 'scanBelow', ...range),
    close: end,
  };
}
