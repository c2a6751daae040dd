import { openFeedStore } from '../../../deliver/store/feed.ts';
import type { AuditLog } from '../../../log/store/log.ts';
import { LIMITS } from '../../../model/limits.ts';
import { openCountBelow } from '../../../records/store/lists/count_below.ts';
import { openListReading, openLists } from '../../../records/store/lists/lists.ts';
import { openRealmSearches, openSearchRealms } from '../../../records/store/lists/realm_search.ts';
import { CITUS, postgresStatements } from '../../../records/store/postgres/dialect.ts';
import { openLookups } from '../../../records/store/postgres/lookups.ts';
import { openPostgresReverseLookups } from '../../../records/store/postgres/reverse_lookups.ts';
import { takePostgresSnapshot } from '../../../records/store/postgres/snapshot.ts';
import { openRecords, PROBE } from '../../../records/store/records.ts';
import { openBudgetStore } from '../../../sign_in/store/budgets.ts';
import { openCredentialStore } from '../../../sign_in/store/credentials.ts';
import { openAdmission } from '../../../sql/admission.ts';
import type { Dialect } from '../../../sql/dialect.ts';
import { BEGIN_READ_OF_NODES, openNodeCounts } from '../../../sql/postgres/citus.ts';
import { throwPostgresFault } from '../../../sql/postgres/connection.ts';
import { openGroupCommit } from '../../../sql/postgres/group_commit.ts';
import { postgresIndexesOf } from '../../../sql/postgres/indexes.ts';
import { openLongReads } from '../../../sql/postgres/long_reads.ts';
import type { ConnectionPool } from '../../../sql/postgres/pool.ts';
import { openPostgresReading } from '../../../sql/postgres/reading.ts';
import { CITUS_WRITE, POSTGRES_WRITE } from '../../../sql/postgres/scope_locks.ts';
import type { PostgresSession } from '../../../sql/postgres/session.ts';
import { openPostgresWriter } from '../../../sql/postgres/writer.ts';
import type { Transactions } from '../../../sql/transactions.ts';
import type { Engine } from '../engine.ts';

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
      await Promise.all(probed).catch(throwPostgresFault);
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
