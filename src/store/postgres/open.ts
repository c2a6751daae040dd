import { LIMITS } from '../../domain/limits.ts';
import { openAccess } from '../access.ts';
import type { Engine } from '../engine.ts';
import { type MigrateMode, migrationsIn, type Program } from '../migrations.ts';
import { openSealed } from '../sealed.ts';
import type { PostgresAddress } from './address.ts';
import { openClient } from './client.ts';
import { POSTGRES } from './dialect.ts';
import { type Indexes, readIndexes } from './indexes.ts';
import { judgeSchema, migrate } from './migrate.ts';
import { openPool } from './pool.ts';
import { openPostgresRecords } from './records.ts';
import { openSession } from './session.ts';
import { openTransactions } from './transactions.ts';

const MIGRATIONS_URL = new URL('./migrations/', import.meta.url);

/** Opens a PostgreSQL database and brings its schema up as `mode` says. Throws Refusal where it cannot be served. */
export async function openPostgres(
  address: PostgresAddress,
  mode: MigrateMode,
  program: Program,
): Promise<Engine> {
  const migrations = migrationsIn(MIGRATIONS_URL);
  const owner = openClient(address, 1);
  let indexes: Indexes;
  try {
    await judgeSchema(owner, mode, migrations, program);
    if (mode !== 'off') await migrate(owner, migrations, program);
    indexes = await readIndexes(owner);
  } finally {
    await owner.close();
  }
  return engineOver(address, indexes);
}

function engineOver(address: PostgresAddress, indexes: Indexes): Engine {
  const open = (from: PostgresAddress, connectionsMax: number) =>
    openPool(() => openClient(from, connectionsMax), LIMITS.storeWaitMsMax);
  // Callers choose the shapes of lists, so there is no end to what would be kept prepared.
  const unprepared = { ...address, isPrepared: false };
  const pools = {
    lookups: open(address, LIMITS.lookupConnectionsMax),
    transactions: open(address, LIMITS.transactionConnectionsMax),
    lists: open(unprepared, LIMITS.listConnectionsMax),
    long: open(unprepared, LIMITS.readersMax),
  };
  const session = openSession(indexes.columnsOf);
  const transactions = openTransactions(pools.transactions, session.perform);
  const records = openPostgresRecords(pools, { session, transactions, indexes });
  return {
    records,
    access: openAccess(transactions),
    sealed: openSealed(transactions, POSTGRES),
    embedded: undefined,
    close: async (): Promise<void> => {
      await Promise.all(Object.values(pools).map((pool) => pool.close()));
    },
  };
}
