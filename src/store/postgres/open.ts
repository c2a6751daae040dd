import { LIMITS } from '../../domain/limits.ts';
import { openFeedStore } from '../audit/feed.ts';
import { openAuditLog } from '../audit/log.ts';
import { openLogStore } from '../audit/log_reading.ts';
import { openAuthStore } from '../auth/access.ts';
import type { Engine } from '../engine.ts';
import { openSealedStore } from '../idempotency/sealed.ts';
import { openLeaseStore } from '../leases.ts';
import type { MigrateMode, Program } from '../migrations.ts';
import { openWebhookStore } from '../webhooks/webhooks.ts';
import type { PostgresAddress } from './address.ts';
import { BEGIN_CITUS_WRITE, BEGIN_WRITE } from './begin_statements.ts';
import { openClient } from './client.ts';
import { CITUS, POSTGRES } from './dialect.ts';
import { openLongReads } from './long_reads.ts';
import { openConnectionPool } from './pool.ts';
import { assertNoSharedStatementNames } from './pooler.ts';
import { openPrimary, type Primary } from './primary.ts';
import { openPostgresRecords } from './records.ts';
import { type PreparedSchema, prepareSchema } from './schema_setup.ts';
import { scrubPostgres } from './scrub.ts';
import { openPostgresSession } from './session.ts';
import { openPostgresReading, openPostgresTransactions } from './transactions.ts';
import { openPostgresWriter } from './writer.ts';

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
  await assertNoSharedStatementNames(address, '--database');
  if (owner && mode !== 'off') await assertNoSharedStatementNames(owner, '--migrate-database');
  const schema = await prepareSchema(address, mode, program, owner);
  return engineOver(address, schema, await openPrimary(balanced(address)));
}

/** The address with its hosts in another order where connections are to be balanced. */
function balanced(address: PostgresAddress): PostgresAddress {
  if (!address.isBalanced) return address;
  const first = Math.floor(Math.random() * address.hosts.length);
  return { ...address, hosts: [...address.hosts.slice(first), ...address.hosts.slice(0, first)] };
}

function engineOver(
  address: PostgresAddress,
  { indexes, isDistributed }: PreparedSchema,
  primary: Primary,
): Engine {
  const dialect = isDistributed ? CITUS : POSTGRES;
  const open = (from: PostgresAddress, connectionsMax: number) =>
    openConnectionPool((host) => openClient(from, connectionsMax, host), LIMITS.storeWaitMsMax, primary);
  // Callers choose filters and sorts of lists, so the number of prepared statements would be unlimited.
  const unprepared = { ...address, isPrepared: false };
  const pools = {
    // Every request authenticates first, and must not wait behind writes that wait for locks.
    access: open(address, LIMITS.accessConnectionsMax),
    lookups: open(address, LIMITS.lookupConnectionsMax),
    reverseLookups: open(address, LIMITS.reverseLookupConnectionsMax),
    transactions: open(address, LIMITS.transactionConnectionsMax),
    lists: open(unprepared, LIMITS.listConnectionsMax),
    long: open(unprepared, LIMITS.readersMax),
  };
  const session = openPostgresSession(indexes.columnsOf);
  const log = openAuditLog(dialect);
  const begin = isDistributed ? BEGIN_CITUS_WRITE : BEGIN_WRITE;
  const writer = openPostgresWriter(pools.transactions, begin, session.perform, log);
  const transactions = openPostgresTransactions(pools.transactions, session.perform, writer);
  const long = openLongReads(pools.long, session.perform);
  const deps = { session, transactions, indexes, readLong: long.read, dialect };
  const records = openPostgresRecords(pools, deps);
  return {
    figures: () => ({ ...writer.figures(), lists: long.figures() }),
    records,
    access: openAuthStore({ ...transactions, read: openPostgresReading(pools.access, session.perform) }),
    sealed: openSealedStore(transactions, dialect),
    log: openLogStore(transactions, log, dialect),
    leases: openLeaseStore(transactions),
    scrub: () => scrubPostgres(address),
    feed: openFeedStore(transactions, dialect),
    webhooks: openWebhookStore(transactions, dialect),
    embedded: undefined,
    close: async (): Promise<void> => {
      await Promise.all(Object.values(pools).map((pool) => pool.close()));
      primary.close();
    },
  };
}
