import { LIMITS } from '../../../model/limits.ts';
import { withTimeout } from '../../../model/timeout.ts';
import { migrationsOf, type Program } from '../../../sql/migrations.ts';
import type { PostgresAddress } from '../../../sql/postgres/address.ts';
import { BEGIN_CITUS_WRITE, setLocal } from '../../../sql/postgres/begin_statements.ts';
import { BEGIN_READ_OF_NODES } from '../../../sql/postgres/citus.ts';
import { throwPostgresFault } from '../../../sql/postgres/connection.ts';
import { DatabaseError, ERROR_CODES } from '../../../sql/postgres/errors.ts';
import { assertPostgresSchema } from '../../../sql/postgres/migrate.ts';
import { connectToPrimary } from '../../../sql/postgres/primary.ts';
import { prepareSchema } from '../../../sql/postgres/schema_setup.ts';
import {
  assertNewest,
  COPIED_TABLES,
  type CopySource,
  type CopyTarget,
  PAGE_ROWS,
  type TextRow,
} from './side.ts';

/** A page takes a fraction of a second, so a server that takes this long has stalled. */
const STATEMENT_MS_MAX = 300_000;

const SETTINGS = {
  // Overrides timeouts of the role that a copy may exceed.
  statement_timeout: 0,
  idle_in_transaction_session_timeout: 0,
  // Forces reads by the index of the key. Without current statistics the planner may choose another plan.
  enable_seqscan: 'off',
  enable_bitmapscan: 'off',
  enable_sort: 'off',
  enable_incremental_sort: 'off',
  bytea_output: 'hex',
};

const TABLES = COPIED_TABLES.map(({ name }) => name).join(', ');

/** The settings of Citus have no effect without it. The nodes take their snapshots when all of them are read. */
const BEGIN_SOURCE = [...BEGIN_READ_OF_NODES, setLocal(SETTINGS), 'select count(*) from realm_clock'];
const BEGIN_TARGET = [
  ...BEGIN_CITUS_WRITE,
  setLocal({ ...SETTINGS, lock_timeout: LIMITS.migrationWaitMsMax }),
  // Blocks writers, also another copy.
  `lock table ${TABLES} in share row exclusive mode`,
  // The row that a migration inserts.
  'delete from instance',
];

/** A PostgreSQL source, read in one transaction; on a cluster, every node has a snapshot of its own. */
export async function openPostgresSource(address: PostgresAddress, program: Program): Promise<CopySource> {
  return sourceOver(await begin(address, program, BEGIN_SOURCE));
}

/** A PostgreSQL target. Its schema is created if it does not exist. */
export async function openPostgresTarget(address: PostgresAddress, program: Program): Promise<CopyTarget> {
  await prepareSchema(await connectToPrimary(address), 'check', program, undefined);
  const transaction = await begin(address, program, BEGIN_TARGET);
  const { run } = transaction;
  return {
    ...sourceOver(transaction),
    async write(table, rows) {
      const { name, copied } = table;
      const columns = [...copied.keys()];
      const records = rows.map((row) => Object.fromEntries(columns.map((column, at) => [column, row[at]])));
      const from = `json_populate_recordset(null::${name}, $1::text::json)`;
      await run(`insert into ${name} (${columns.join()}) select ${columns.join()} from ${from}`, [
        JSON.stringify(records),
      ]);
    },
    async commit() {
      await run('commit');
      // Citus refuses it in the transaction. Where it fails, autovacuum does it later.
      await run(`analyze ${TABLES}`).catch(() => undefined);
    },
  };
}

type CopyTransaction = Awaited<ReturnType<typeof begin>>;

async function begin(address: PostgresAddress, program: Program, statements: readonly string[]) {
  const client = await connectToPrimary(address);
  /** Rolls back, without waiting for a statement, which never ends on a stalled connection. */
  const close = () => client.close({ timeout: 0 }).catch(() => undefined);
  try {
    const migrations = migrationsOf('postgres');
    const schema = await assertPostgresSchema(client, 'auto', migrations, program);
    assertNewest(schema, migrations.at(-1)?.version ?? 0);
    // The client would open another connection if this one ends, and run the next statement outside of the transaction.
    const connection = await client.reserve();
    const run = (text: string, values: TextRow = []): Promise<readonly object[]> =>
      withTimeout(connection.unsafe(text, [...values]), STATEMENT_MS_MAX, () => {
        throw new DatabaseError(ERROR_CODES.timeout);
      }).catch(throwPostgresFault);
    for (const text of statements) await run(text);
    return { run, close };
  } catch (error) {
    await close();
    throw error;
  }
}

function sourceOver({ run, close }: CopyTransaction): CopySource {
  return {
    async read(table, last) {
      const { name, key, copied } = table;
      const values = [...copied.keys()].map((column) => `t.${column}::text`);
      // With the name of the table, because the values have the names of the columns.
      const order = key.map((column) => `t.${column}`).join();
      const where = last ? `where (${order}) > (${key.map((_, at) => `$${at + 1}`).join()})` : '';
      const rows = await run(
        `select ${values.join()} from ${name} t ${where} order by ${order} limit ${PAGE_ROWS}`,
        last && table.keyOf(last),
      );
      return rows.map((row) => Object.values(row));
    },
    close,
  };
}
