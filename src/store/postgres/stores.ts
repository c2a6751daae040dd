import { LIMITS } from '../../domain/limits.ts';
import { openAdmission } from '../admission.ts';
import { openFeedStore } from '../audit/feed.ts';
import type { AuditLog } from '../audit/log.ts';
import { openBudgetStore } from '../auth/budgets.ts';
import { openCredentialStore } from '../auth/credentials.ts';
import type { Dialect } from '../dialect.ts';
import type { Engine } from '../engine.ts';
import { openCountBelow } from '../lists/count_below.ts';
import { openListReading, openLists } from '../lists/lists.ts';
import { openRealmSearches, openSearchRealms } from '../lists/realm_search.ts';
import { openRecords, PROBE } from '../records/records.ts';
import type { Transactions } from '../transactions.ts';
import { BEGIN_READ_OF_NODES, openNodeCounts } from './citus.ts';
import { postgresFault } from './connection.ts';
import { CITUS, postgresStatements } from './dialect.ts';
import { openGroupCommit } from './group_commit.ts';
import { postgresIndexesOf } from './indexes.ts';
import { openLongReads } from './long_reads.ts';
import { openLookups } from './lookups.ts';
import type { ConnectionPool } from './pool.ts';
import { openPostgresReading } from './reading.ts';
import { openPostgresReverseLookups } from './reverse_lookups.ts';
import { CITUS_WRITE, POSTGRES_WRITE } from './scope_locks.ts';
import type { PostgresSession } from './session.ts';
import { takePostgresSnapshot } from './snapshot.ts';
import { openPostgresWriter } from './writer.ts';

/** The stores that read and write realms. */
export type RealmStores = Pick<Engine, 'records' | 'credentials' | 'feed' | 'budgets'>;

/** Opens these stores with a pool of connections for each kind of work, so that lookups never wait behind lists or writes. */
export function openPostgresStores(
  openPool: (connectionsMax: number, options?: { readonly isPrepared: boolean }) => ConnectionPool,
  { perform, forget }: PostgresSession,
  dialect: Dialect,
  log: AuditLog,
) {
  const lookupPool = openPool(LIMITS.lookupConnectionsMax);
  const reverseLookupPool = openPool(LIMITS.reverseLookupConnectionsMax);
  const pool = openPool(LIMITS.transactionConnectionsMax);
  // Callers choose filters and sorts of lists, so the number of prepared statements would be unlimited.
  const listPool = openPool(LIMITS.listConnectionsMax, { isPrepared: false });
  const long = openLongReads(openPool(LIMITS.readersMax, { isPrepared: false }), perform);
  const isDistributed = dialect === CITUS;
  const beginning = isDistributed ? CITUS_WRITE : POSTGRES_WRITE;
  const writer = openPostgresWriter(openGroupCommit(pool, beginning, perform, log));
  const transactions: Transactions = {
    read: openPostgresReading(pool, perform),
    write: writer.write,
    isOverloaded: writer.isOverloaded,
    // Writers queue for row locks in the server, so the end of a transaction already lets the next one run.
    yieldToWriters: () => new Promise((resolve) => setImmediate(resolve)),
  };
  const readShort = openPostgresReading(listPool, perform);
  const listing = openListReading({ of: postgresStatements, dialect, indexesOf: postgresIndexesOf, forget });
  const searches = openRealmSearches(postgresStatements, dialect);
  const [lookups, reverseLookups] = [openAdmission(), openAdmission()];
  const countNodes = isDistributed ? openNodeCounts(listPool) : undefined;
  const records: RealmStores['records'] = {
    ...openRecords(postgresStatements, dialect, transactions, log.rowMacs),
    ...openLookups(lookupPool, lookups),
    find: openPostgresReverseLookups(reverseLookupPool, reverseLookups),
    overloaded: { write: writer.isOverloaded, get: lookups.isOverloaded, find: reverseLookups.isOverloaded },
    list: openLists(listing, readShort).delegating(openLists(listing, long.read).serve),
    searchRealms: openSearchRealms(searches, readShort, (resource, search) =>
      long.read(() => searches.whole(resource, search)),
    ),
    countBelow: openCountBelow({ read: long.read }, dialect),
    async ready() {
      const probed = [lookupPool, reverseLookupPool].map((each) => each.query(PROBE, []));
      await Promise.all(probed).catch((error) => {
        throw postgresFault(error);
      });
      return countNodes?.();
    },
    openSnapshot: () => takePostgresSnapshot(pool, isDistributed ? BEGIN_READ_OF_NODES : undefined),
  };
  return {
    transactions,
    records,
    credentials: openCredentialStore(transactions, dialect, log.rowMacs),
    feed: openFeedStore(transactions, dialect),
    budgets: openBudgetStore(transactions, dialect),
    figures: () => ({ ...writer.figures(), lists: long.figures() }),
  };
}
