import { LIMITS } from '../../../model/limits.ts';
import { RESOURCES } from '../../../model/resources.ts';
import type { Dialect, RealmRows } from '../../../sql/dialect.ts';
import { statementsOver } from '../statements.ts';

function asLong(transaction: string): string {
  return `${transaction}::text::bigint`;
}

/**
 * Rounded, because each new number rewrites an index entry: a realm with frequent writes keeps its number for a while.
 */
function roundedDown(transaction: string): string {
  return `${asLong(transaction)} & -64`;
}

const REALM_ROWS: RealmRows = {
  source: (table) => table,
  id: () => 'realm_id',
  realm: 'realm_id',
  compared: (id) => id,
  isAfter: (_, realm, column, value) => `(realm_id, ${column}) > (${realm}, ${value})`,
};

export const POSTGRES: Dialect = {
  position: 'strpos',
  greatest: 'greatest',
  hasHashColumns: false,
  hexAfterFirst: (value) => `encode(substr(${value}, 2, 8), 'hex')`,
  id: (text) => text,
  realm: (id) => id,
  isMisplaced: 'false',
  // The lock of a scope does.
  createClock: undefined,
  foundRows: REALM_ROWS,
  orderedRows: REALM_ROWS,
  insertion({ table }, columns) {
    const placeholders = columns.map(() => '?').join(', ');
    return { text: `insert into ${table} (${columns.join(', ')}) values (${placeholders})`, lead: () => [] };
  },
  returnsLongsAsText: true,
  lists: {
    indexHint: () => '',
    isAmong: (column) => `${column} = any(?::uuid[])`,
    among: (values) => `{${values.join()}}`,
    // Their rows cross the network.
    gatheredMax: LIMITS.pageRecordsMax,
  },
  words: {
    // The expression of the index: the planner uses the index for the same expression alone.
    source: () => `array_to_tsvector(string_to_array(words, ' '))`,
    match: (source) => `${source} @@ ?::tsquery`,
    // No word has a quote or a backslash.
    values: (words) => [words.map((word) => `'${word}':*`).join(' & ')],
    choice: undefined,
  },
  rowLocks: { exclusive: ' for update', skipLocked: ' for update skip locked', shared: ' for share' },
  lockClocks: 'lock table realm_clock in exclusive mode',
  // A transaction that a snapshot does not see has an ID no lower than the oldest one that ran at that time.
  clockOrder: {
    now: `(${roundedDown('pg_current_xact_id()')})`,
    bounds: `select ${roundedDown('pg_snapshot_xmin(s)')} as begins, ${asLong('pg_snapshot_xmax(s)')} as ends
      from pg_current_snapshot() s`,
  },
};

export const postgresStatements = statementsOver(RESOURCES, POSTGRES);

/** The clocks of two nodes may differ by this, less the time that a transaction takes until its commit. */
const CLOCK_WINDOW_S = 60;

const EPOCH_SECONDS = 'floor(extract(epoch from clock_timestamp()))::bigint';

/**
 * PostgreSQL with Citus. Transaction IDs of two nodes are not comparable, so realm clocks are ordered by the time of the node that
 * routed the write, and a realm is read again for CLOCK_WINDOW_S after its last change.
 */
export const CITUS: Dialect = {
  ...POSTGRES,
  // Two transactions with shared locks on a table that every node has would end in a deadlock: Citus takes another lock later.
  rowLocks: { ...POSTGRES.rowLocks, shared: POSTGRES.rowLocks.exclusive },
  clockOrder: {
    now: `(${EPOCH_SECONDS})`,
    bounds: `select ${EPOCH_SECONDS} - ${CLOCK_WINDOW_S} as begins, ${EPOCH_SECONDS} + ${CLOCK_WINDOW_S} as ends`,
  },
};
