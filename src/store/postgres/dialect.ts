import { RESOURCES } from '../../domain/resources.ts';
import type { Dialect } from '../dialect.ts';
import { statementsOver } from '../records/statements.ts';

function longOf(transaction: string): string {
  return `${transaction}::text::bigint`;
}

/** An index is written anew with each number: a realm that is written again and again keeps the same one for a while. */
function rounded(transaction: string): string {
  return `${longOf(transaction)} & -64`;
}

export const POSTGRES: Dialect = {
  position: 'strpos',
  greatest: 'greatest',
  hasHashColumns: false,
  hexBehindFirst: (value) => `encode(substr(${value}, 2, 8), 'hex')`,
  insertion({ table }, columns) {
    const places = columns.map(() => '?').join(', ');
    return { text: `insert into ${table} (${columns.join(', ')}) values (${places})`, lead: () => [] };
  },
  insertsTogether: 100,
  returnsLongsAsText: true,
  lists: {
    indexHint: () => '',
    isAmong: (column) => `${column} = any(?::uuid[])`,
    among: (values) => `{${values.join()}}`,
    few: (source, most) => `select count(*) as n from (select 1 ${source} limit ${most}) as few`,
    isInRowIds: undefined,
  },
  rowLocks: { exclusive: ' for update', skipLocked: ' for update skip locked', shared: ' for share' },
  // A transaction that was not visible to a look has no lesser identifier than the oldest one that ran then.
  clockOrder: {
    now: `(${rounded('pg_current_xact_id()')})`,
    bounds: `select ${rounded('pg_snapshot_xmin(s)')} as begins, ${longOf('pg_snapshot_xmax(s)')} as ends
      from pg_current_snapshot() s`,
  },
};

export const postgresStatements = statementsOver(RESOURCES, POSTGRES);
