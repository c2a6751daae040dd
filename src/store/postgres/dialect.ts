import { RESOURCES } from '../../domain/resources.ts';
import type { Dialect } from '../dialect.ts';
import { statementsOver } from '../statements.ts';

export const POSTGRES: Dialect = {
  position: 'strpos',
  greatest: 'greatest',
  hasChecksums: false,
  hexBehindFirst: (value) => `encode(substr(${value}, 2, 8), 'hex')`,
  insertion({ table }, columns) {
    const places = columns.map(() => '?').join(', ');
    return { text: `insert into ${table} (${columns.join(', ')}) values (${places})`, lead: () => [] };
  },
  insertsTogether: 100,
  tellsLongsAsText: true,
  lists: {
    by: () => '',
    isAmong: (column) => `${column} = any(?::uuid[])`,
    among: (values) => `{${values.join()}}`,
    few: (source, most) => `select count(*) as n from (select 1 ${source} limit ${most}) as few`,
    isInSlots: undefined,
  },
  claims: { alone: ' for update', free: ' for update skip locked', together: ' for share' },
};

export const statementsOf = statementsOver(RESOURCES, POSTGRES);
