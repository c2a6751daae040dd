import { onAllNodes } from '../../../sql/postgres/citus.ts';
import type { InspectionQuery } from '../../../sql/postgres/reading.ts';

/** A commit takes less: an older prepared transaction was left by a failure. */
const PREPARED_SECONDS_MAX = 10;
/** Well below the 30 s that webhooks tolerate (docs/guides/citus.md#every-node-routes). */
const CLOCK_SECONDS_MAX = 10;

const IS_CLUSTER = `select to_regclass('pg_dist_node') is not null as is_cluster`;

const NODE = `nodename || ':' || nodeport as node`;

const SELECT_PREPARED = onAllNodes(
  `select count(*) from pg_prepared_xacts where database = current_database() and gid like 'citus_%'
     and prepared < now() - interval '${PREPARED_SECONDS_MAX} s'`,
  `${NODE}, result::integer as count`,
);

const SELECT_CLOCKS = onAllNodes(
  'select extract(epoch from clock_timestamp())',
  `${NODE}, round(result::numeric - extract(epoch from now()))::integer as seconds`,
);

/** Problems of the nodes of a Citus cluster; none if the database is not on a cluster. */
export async function clusterFindings(rows: InspectionQuery): Promise<readonly string[]> {
  const [found] = await rows<{ is_cluster: boolean }>(IS_CLUSTER);
  if (!found?.is_cluster) return [];
  const prepared = await rows<{ node: string; count: number }>(SELECT_PREPARED);
  const clocks = await rows<{ node: string; seconds: number }>(SELECT_CLOCKS);
  return [
    ...prepared
      .filter(({ count }) => count > 0)
      .map(
        ({ node, count }) =>
          `node ${node} has prepared transactions that an interrupted commit left (${count}), which block writers of their ` +
          'rows: run select recover_prepared_transactions() on every node, or set citus.recover_2pc_interval there',
      ),
    ...clocks
      .filter(({ seconds }) => Math.abs(seconds) > CLOCK_SECONDS_MAX)
      .map(
        ({ node, seconds }) =>
          `the clock of node ${node} differs by ${Math.abs(seconds)} s from that of the node that routes: synchronize both`,
      ),
  ];
}
