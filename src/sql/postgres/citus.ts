import type { SQL } from 'bun';
import { Refusal } from '../../model/fault.ts';
import { NIL_UUID } from '../../model/id.ts';
import { LIMITS } from '../../model/limits.ts';
import type { NodeCounts } from '../../model/store.ts';
import { realmClockTable } from '../tables/realm_data.ts';
import { engineKey } from '../tables/schema.ts';
import type { Table } from '../tables/table.ts';
import { tablesOn } from '../tables/tables.ts';
import { BEGIN_READ, type BeginStatements, setLocal } from './begin_statements.ts';
import { isCancelled, isRetryableConflict, SCHEMA_CONFLICTS_MAX } from './connection.ts';
import type { ConnectionPool } from './pool.ts';
import type { SqlClient } from './sql_client.ts';

/** The first version whose single-shard tables and reference tables work as this program needs them. */
const VERSION_MIN = 12;

const SELECT_VERSION = `select extversion as version from pg_extension where extname = 'citus'`;

/** Whether the database has the Citus extension. Throws Refusal where it is too old. */
export async function isCitus(sql: SqlClient): Promise<boolean> {
  const [found] = await sql.unsafe<readonly { readonly version: string }[]>(SELECT_VERSION);
  if (!found) return false;
  if (Number.parseInt(found.version, 10) >= VERSION_MIN) return true;
  throw new Refusal(
    `the database has Citus ${found.version}, and this program needs ${VERSION_MIN} or later: update the packages on every ` +
      'node, then run alter extension citus update on each',
  );
}

const [firstSingle, ...otherSingles] = tablesOn('one node') as [Table, ...Table[]];

/**
 * The call that distributes each table, in the order of foreign keys, and clocks before other tables of realms: Citus locks the tables
 * of a shard in this order, and writers take the lock of clocks first (scope_locks.ts).
 */
const DISTRIBUTIONS: ReadonlyMap<string, string> = new Map([
  ...tablesOn('every node').map(({ name }) => [name, `create_reference_table('${name}')`] as const),
  distributed(realmClockTable, 'none'),
  ...tablesOn('by realm')
    .filter((table) => table !== realmClockTable)
    .map((table) => distributed(table, realmClockTable.name)),
  distributed(firstSingle, 'none'),
  ...otherSingles.map((table) => distributed(table, firstSingle.name)),
]);

/** By the first column of its key, so that all rows of a realm are on one node; or as a whole on one node. */
function distributed(table: Table, colocated: string): readonly [table: string, call: string] {
  const { name, placement } = table;
  const column = placement === 'by realm' ? `'${engineKey(table, 'postgres')[0]}'` : 'null';
  return [name, `create_distributed_table('${name}', ${column}, colocate_with => '${colocated}')`];
}

/** The catalogue also lists a local table that a reference table refers to, as one that is not replicated. */
const SELECT_UNDISTRIBUTED = `select t.name, to_regclass(t.name) is not null as is_created
  from unnest(array[${[...DISTRIBUTIONS.keys()].map((table) => `'${table}'`).join()}]) with ordinality as t (name, place)
  where not exists (select 1 from pg_dist_partition
    where logicalrelid = to_regclass(t.name) and (partmethod = 'h' or repmodel = 't' or (partmethod = 'n' and colocationid > 0)))
  order by t.place`;

/** The tables that are not distributed: those that exist, or all. */
async function undistributed(sql: SqlClient, withMissing = false): Promise<readonly string[]> {
  const rows = await sql.unsafe<readonly { name: string; is_created: boolean }[]>(SELECT_UNDISTRIBUTED);
  return rows.filter(({ is_created }) => withMissing || is_created).map(({ name }) => name);
}

/** Only one process at a time distributes tables. The number is arbitrary. */
const LOCK = 'select pg_advisory_xact_lock(7260241)';

/**
 * Moves the tables on one node to the node with the log of the installation, so that a grant, or the record of a delivery,
 * needs one node.
 */
const GATHER = `select citus_move_shard_placement(own.shardid, own.nodename, own.nodeport, home.nodename, home.nodeport,
    'block_writes')
  from pg_dist_shard_placement own, pg_dist_shard_placement home
  where own.shardid = (select shardid from pg_dist_shard where logicalrelid = '${firstSingle.name}'::regclass)
    and home.shardid = get_shard_id_for_distribution_column('realm_clock', '${NIL_UUID}'::uuid)
    and (own.nodename, own.nodeport) <> (home.nodename, home.nodeport)`;

/**
 * Distributes the tables of the schema that are not distributed yet: those of a new schema, or of a migration. Each is a
 * transaction of its own; one process does it. `sql` has one connection, to the coordinator.
 */
export async function distributeTables(sql: SQL, own: SqlClient): Promise<void> {
  const local = await undistributed(own);
  for (const table of local) {
    await repeatOnConflict(() =>
      // Without a timeout: the table may have many rows.
      sql.begin(async (transaction) => {
        await transaction.unsafe(LOCK);
        const isLocal = (await undistributed(transaction)).includes(table);
        if (isLocal) await transaction.unsafe(`select ${DISTRIBUTIONS.get(table)}`);
      }),
    );
  }
  if (local.includes(firstSingle.name)) await sql.unsafe(GATHER);
}

/** The call locks the tables that its table references, in another order than a writer on a worker: the server rolls one back. */
async function repeatOnConflict(work: () => Promise<void>): Promise<void> {
  for (let attempt = 1; ; attempt += 1) {
    try {
      return await work();
    } catch (error) {
      if (!isRetryableConflict(error) || attempt === SCHEMA_CONFLICTS_MAX) throw error;
    }
  }
}

/** Throws Refusal where a table is not distributed: each node would have rows of its own, or no such table. */
export async function assertDistributed(sql: SqlClient): Promise<void> {
  const local = await undistributed(sql, true);
  if (local.length === 0) return;
  throw new Refusal(
    `these tables are not distributed with Citus: ${local.join(', ')}. Run authrealm migrate as their owner, connected to ` +
      'the coordinator',
  );
}

/**
 * One snapshot of each node for all statements of a read: a second connection to a node would have another one. The nodes
 * take their snapshots at the first statement that reads all of them.
 */
export const BEGIN_READ_OF_NODES: BeginStatements = [
  ...BEGIN_READ,
  'set local citus.max_adaptive_executor_pool_size = 1',
];

/** Selects from the nodes that are reachable; `result` is that of the command on each. */
export const onAllNodes = (command: string, columns: string) => `select ${columns}
  from pg_dist_node join run_command_on_all_nodes($$${command}$$) using (nodeid)
  where success and noderole = 'primary' order by nodeid`;

const SELECT_OTHER_VERSIONS = onAllNodes(
  SELECT_VERSION,
  'nodename as host, nodeport::text as port, result as version',
);

/** Throws Refusal where a node of the cluster lacks the extension, or has one that is too old. */
export async function assertNodesHaveCitus(sql: SqlClient): Promise<void> {
  for (const { host, port, version } of await otherVersions(sql)) {
    if (Number.parseInt(version, 10) >= VERSION_MIN) continue;
    const lacks = version === '' ? 'no Citus extension in this database' : `Citus ${version}`;
    throw new Refusal(
      `node ${host}:${port} of the cluster has ${lacks}, and this program needs ${VERSION_MIN} or later: ` +
        `run ${version === '' ? 'create extension citus' : 'alter extension citus update'} there, then ` +
        `select start_metadata_sync_to_node('${host}', ${port}) on the coordinator`,
    );
  }
}

/** Of the nodes that answer within a time limit: a process can start while a node is down. */
async function otherVersions(sql: SqlClient) {
  for (const text of BEGIN_CHECK) await sql.unsafe(text);
  try {
    return await sql.unsafe<{ host: string; port: string; version: string }[]>(SELECT_OTHER_VERSIONS);
  } catch (error) {
    if (isCancelled(error)) return [];
    throw error;
  } finally {
    await sql.unsafe('rollback');
  }
}

const SELECT_NODES = `select nodename as host, nodeport::text as port from pg_dist_node
  where noderole = 'primary' and isactive order by nodeid`;
const CHECK = 'select citus_check_connection_to_node($1::text, $2::integer) as is_reachable';
const BEGIN_CHECK: BeginStatements = [
  'begin read only',
  setLocal({ statement_timeout: LIMITS.nodeCheckMsMax }),
];

/**
 * Counts the nodes of the cluster, and those that the connected node reaches; undefined where these connections are busy.
 * Concurrent callers share one count.
 */
export function openNodeCounts(pool: ConnectionPool): () => Promise<NodeCounts | undefined> {
  let counting: Promise<NodeCounts | undefined> | undefined;

  async function isReachable(values: readonly string[]): Promise<boolean> {
    try {
      return await pool.transaction(BEGIN_CHECK, async (connection) => {
        const { rows } = await connection.query(CHECK, values);
        return rows[0]?.is_reachable === true;
      });
    } catch {
      return false;
    }
  }

  async function count(): Promise<NodeCounts> {
    const { rows } = await pool.query(SELECT_NODES, []);
    const found = await Promise.all(rows.map(({ host, port }) => isReachable([String(host), String(port)])));
    return { reachable: found.filter(Boolean).length, total: found.length };
  }

  return () => {
    counting ??= count()
      .catch(() => undefined)
      .finally(() => {
        counting = undefined;
      });
    return counting;
  };
}
