import { NIL_UUID } from '../../../model/id.ts';
import type { KeyedRecord, RecordSnapshot } from '../../../model/store.ts';
import { BEGIN_READ } from '../../../sql/postgres/begin_statements.ts';
import { type Connection, postgresFault, throwPostgresFault } from '../../../sql/postgres/connection.ts';
import { numberParameters, parameterValues } from '../../../sql/postgres/parameters.ts';
import type { ConnectionPool } from '../../../sql/postgres/pool.ts';
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
  return {
    async scan(resource, after, limit, within): Promise<readonly KeyedRecord[]> {
      const { scan, scanRealm, decodeKeyed } = postgresStatements(resource);
      const { text, order } = numberParameters(within ? scanRealm : scan);
      const values = [within ?? (after.realm || NIL_UUID), after.id || NIL_UUID, limit];
      const found = connection.query(text, parameterValues(values, order)).catch(throwPostgresFault);
      return (await found).rows.map(decodeKeyed);
    },
    close: end,
  };
}
