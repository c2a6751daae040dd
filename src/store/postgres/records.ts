import { openAdmission } from '../admission.ts';
import type { RowMacs } from '../auth/row_macs.ts';
import type { Dialect } from '../dialect.ts';
import { openCountBelow } from '../lists/count_below.ts';
import { openRealmSearches, openSearchRealms } from '../lists/realm_search.ts';
import { openRecords, PROBE } from '../records/records.ts';
import type { Transactions } from '../transactions.ts';
import type { RealmStores } from './bulkheads.ts';
import { BEGIN_READ_OF_NODES, openNodeCounts } from './citus.ts';
import { postgresFault } from './connection.ts';
import { CITUS, postgresStatements } from './dialect.ts';
import { openPostgresLists } from './lists.ts';
import type { LongReads } from './long_reads.ts';
import { openLookups } from './lookups.ts';
import type { ConnectionPool } from './pool.ts';
import { openPostgresReverseLookups } from './reverse_lookups.ts';
import type { PostgresSession } from './session.ts';
import { takePostgresSnapshot } from './snapshot.ts';
import { openPostgresReading } from './transactions.ts';

/** Separate pools, so that lookups never wait behind lists or writes. */
export interface Pools {
  /** For authentication, which every request needs first. */
  readonly access: ConnectionPool;
  readonly lookups: ConnectionPool;
  readonly reverseLookups: ConnectionPool;
  readonly transactions: ConnectionPool;
  /** For lists that touch few rows. */
  readonly lists: ConnectionPool;
}

interface RecordDeps {
  readonly session: PostgresSession;
  readonly transactions: Transactions;
  /** For reads that may take long. */
  readonly readLong: LongReads['read'];
  readonly dialect: Dialect;
  readonly macs: RowMacs;
}

/** Records and their changes in a PostgreSQL database. */
export function openPostgresRecords(
  pools: Pools,
  { session: { perform, forget }, transactions, readLong, dialect, macs }: RecordDeps,
): RealmStores['records'] {
  const readShort = openPostgresReading(pools.lists, perform);
  const searches = openRealmSearches(postgresStatements, dialect);
  const admissions = { lookups: openAdmission(), reverseLookups: openAdmission() };
  const isDistributed = dialect === CITUS;
  const countNodes = isDistributed ? openNodeCounts(pools.lists) : undefined;
  const beginSnapshot = isDistributed ? BEGIN_READ_OF_NODES : undefined;
  return {
    ...openRecords(postgresStatements, dialect, transactions, macs),
    ...openLookups(pools.lookups, admissions.lookups),
    find: openPostgresReverseLookups(pools.reverseLookups, admissions.reverseLookups),
    overloaded: {
      write: transactions.isOverloaded,
      get: admissions.lookups.isOverloaded,
      find: admissions.reverseLookups.isOverloaded,
    },
    list: openPostgresLists({ readShort, readLong, forget }),
    searchRealms: openSearchRealms(searches, readShort, (resource, search) =>
      readLong(() => searches.whole(resource, search)),
    ),
    countBelow: openCountBelow({ read: readLong }),
    async ready() {
      const connections = [pools.lookups, pools.reverseLookups];
      await Promise.all(connections.map((pool) => pool.query(PROBE, []))).catch((error) => {
        throw postgresFault(error);
      });
      return countNodes?.();
    },
    openSnapshot: () => takePostgresSnapshot(pools.transactions, beginSnapshot),
  };
}
