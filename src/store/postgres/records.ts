import type { Eraser } from '../../audit/port.ts';
import type { Loader, Scanner, Store } from '../../directory/store.ts';
import { openAdmission } from '../admission.ts';
import { openCountBelow } from '../lists/count_below.ts';
import { openProbe, openRecords } from '../records/records.ts';
import type { Transactions } from '../transactions.ts';
import { POSTGRES, postgresStatements } from './dialect.ts';
import type { IndexCatalog } from './indexes.ts';
import { openPostgresLists } from './lists.ts';
import type { LongReading } from './long_reads.ts';
import { openLookups } from './lookups.ts';
import type { ConnectionPool } from './pool.ts';
import { openPostgresReverseLookups } from './reverse_lookups.ts';
import type { PostgresSession } from './session.ts';
import { takePostgresSnapshot } from './snapshot.ts';
import { openPostgresReading } from './transactions.ts';

/** What waits apart: nobody who looks one record up stands behind a list or a write. */
export interface Pools {
  /** Of what every request asks first. */
  readonly access: ConnectionPool;
  readonly lookups: ConnectionPool;
  /** Of reverse lookups. */
  readonly finds: ConnectionPool;
  readonly transactions: ConnectionPool;
  /** Of lists that touch few rows. */
  readonly lists: ConnectionPool;
}

interface RecordDeps {
  readonly session: PostgresSession;
  readonly transactions: Transactions;
  readonly indexes: IndexCatalog;
  /** Of all that may take long. */
  readonly readLong: LongReading['read'];
}

/** Records and their changes in a PostgreSQL database. */
export function openPostgresRecords(
  pools: Pools,
  { session: { perform, forget }, transactions, indexes, readLong }: RecordDeps,
): Store & Loader & Scanner & Eraser {
  const readShort = openPostgresReading(pools.lists, perform);
  const gates = { lookups: openAdmission(), finds: openAdmission() };
  return {
    ...openRecords(postgresStatements, POSTGRES, transactions),
    get: openLookups(pools.lookups, gates.lookups),
    find: openPostgresReverseLookups(pools.finds, gates.finds),
    overloaded: {
      write: transactions.isOverloaded,
      get: gates.lookups.isOverloaded,
      find: gates.finds.isOverloaded,
    },
    list: openPostgresLists({ readShort, readLong, indexes, forget }),
    countBelow: openCountBelow({ read: readLong }),
    ready: openProbe({ read: openPostgresReading(pools.access, perform) }),
    openSnapshot: () => takePostgresSnapshot(pools.transactions),
  };
}
