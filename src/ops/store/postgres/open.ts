import { openAuthStore } from '../../../access/store/access.ts';
import { openSealedStore } from '../../../access/store/sealed.ts';
import { openWebhookStore } from '../../../deliver/store/webhooks.ts';
import { openAuditLog } from '../../../log/store/log.ts';
import { openLogStore } from '../../../log/store/reading.ts';
import { LIMITS } from '../../../model/limits.ts';
import { CITUS, POSTGRES } from '../../../records/store/postgres/dialect.ts';
import { openLeaseStore } from '../../../sql/leases.ts';
import type { MigrateMode, Program } from '../../../sql/migrations.ts';
import type { PostgresAddress } from '../../../sql/postgres/address.ts';
import { openClient } from '../../../sql/postgres/client.ts';
import { type ConnectionPool, openConnectionPool } from '../../../sql/postgres/pool.ts';
import { assertNoSharedStatementNames } from '../../../sql/postgres/pooler.ts';
import { connectToPrimary, openPrimary, type Primary } from '../../../sql/postgres/primary.ts';
import { openPostgresReading } from '../../../sql/postgres/reading.ts';
import { assertServable, prepareSchema } from '../../../sql/postgres/schema_setup.ts';
import { openPostgresSession } from '../../../sql/postgres/session.ts';
import { TABLES } from '../../../sql/tables/tables.ts';
import type { Engine, EngineFigures } from '../engine.ts';
import { openBulkheads, openRealmNodes } from './bulkheads.ts';
import { openPostgresStores } from './stores.ts';

/**
 * Opens a PostgreSQL database and migrates its schema as `mode` says, as the role of `owner` where one is given. Throws
 * Refusal where it cannot be served.
 */
export async function openPostgres(
  address: PostgresAddress,
  mode: MigrateMode,
  program: Program,
  owner?: PostgresAddress,
): Promise<Engine> {
  const primary = await openPrimary(address);
  await assertNoSharedStatementNames(address, '--database', primary);
  const serving = openClient(address, 1, primary.current());
  const isDistributed = await prepareSchema(serving, mode, program, owner);
  return openPrepared(address, isDistributed, primary, owner);
}

/** Opens a database that another process has created and migrated. */
export async function reopenPostgres(address: PostgresAddress): Promise<Engine> {
  const primary = await openPrimary(address);
  const serving = openClient(address, 1, primary.current());
  const isDistributed = await assertServable(serving).finally(() => serving.close());
  return openPrepared(address, isDistributed, primary);
}

async function openPrepared(
  address: PostgresAddress,
  isDistributed: boolean,
  first: Primary,
  owner = address,
): Promise<Engine> {
  // The nodes of a cluster are known once its tables exist.
  const isFinal = !isDistributed && !address.isBalanced;
  const primary = isFinal ? first : await openPrimary(balanced(address));
  const dialect = isDistributed ? CITUS : POSTGRES;
  const pools: ConnectionPool[] = [];
  function openPool(connectionsMax: number, options: Partial<PostgresAddress> = {}): ConnectionPool {
    const pool = openConnectionPool({ ...address, ...options }, connectionsMax, primary);
    pools.push(pool);
    return pool;
  }
  // Every request authenticates first, and must not wait behind writes that wait for locks.
  const access = openPool(LIMITS.accessConnectionsMax);
  const session = openPostgresSession();
  const log = openAuditLog(dialect);
  const opened: ReturnType<typeof openPostgresStores>[] = [];

  function openStores() {
    const stores = openPostgresStores(openPool, session, dialect, log);
    opened.push(stores);
    return stores;
  }

  const { transactions, ...shared } = openStores();
  const { records, credentials, feed, budgets } = isDistributed
    ? openBulkheads(shared, openRealmNodes(access), openStores)
    : shared;
  return {
    figures: () => sumOfFigures(opened.map(({ figures }) => figures())),
    workMs: session.workMs,
    records,
    access: openAuthStore(transactions, log.rowMacs, openPostgresReading(access, session.perform)),
    credentials,
    sealed: openSealedStore(transactions, dialect),
    budgets,
    log: openLogStore(transactions, log, dialect),
    leases: openLeaseStore(transactions),
    removeErasedBytes: async () => 'archived',
    async updateStatistics() {
      try {
        const client = await connectToPrimary(owner);
        const analyzing = client.unsafe(`analyze ${TABLES.map(({ name }) => name).join()}`);
        await analyzing.finally(() => client.close());
      } catch {
        // Autovacuum does it later.
      }
    },
    feed,
    webhooks: openWebhookStore(transactions, dialect, log.rowMacs),
    embedded: undefined,
    close: async (): Promise<void> => {
      await Promise.all(pools.map((pool) => pool.close()));
      primary.close();
    },
  };
}

/** The address with its hosts in another order where connections are to be balanced. */
function balanced(address: PostgresAddress): PostgresAddress {
  if (!address.isBalanced) return address;
  const first = Math.floor(Math.random() * address.hosts.length);
  return { ...address, hosts: [...address.hosts.slice(first), ...address.hosts.slice(0, first)] };
}

function sumOfFigures(all: readonly EngineFigures[]): EngineFigures {
  const sum = (of: (figures: EngineFigures) => number | undefined) =>
    all.reduce((total, each) => total + (of(each) ?? 0), 0);
  return {
    writesWaiting: sum((each) => each.writesWaiting),
    commits: sum((each) => each.commits),
    retries: sum((each) => each.retries),
    lists: { waiting: sum((each) => each.lists?.waiting), working: sum((each) => each.lists?.working) },
  };
}
