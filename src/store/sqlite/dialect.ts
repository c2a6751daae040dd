import { uuidBytes } from '../../domain/id.ts';
import { LIMITS } from '../../domain/limits.ts';
import { RESOURCES } from '../../domain/resources.ts';
import type { Dialect } from '../dialect.ts';
import { successor } from '../lists/filters.ts';
import { statementsOver } from '../records/statements.ts';
import { idColumns } from '../tables/records.ts';
import { rowIdOf } from './row_id.ts';

const NEXT_MOVE = 'coalesce(max(moved), 0) + 1';

export const SQLITE: Dialect = {
  position: 'instr',
  greatest: 'max',
  hasHashColumns: true,
  hexAfterFirst: (value) => `lower(hex(substr(${value}, 2, 8)))`,
  id,
  /** Where the row ID is used already, the engine chooses another. */
  insertion(resource, columns) {
    const { table } = resource;
    const isUsed = `exists (select 1 from ${table} where slot = ?1)`;
    const ids = idColumns(resource);
    const placeholders = columns
      .map((column, index) => (ids.has(column) ? id(`?${index + 2}`) : `?${index + 2}`))
      .join(', ');
    return {
      text: `insert into ${table} (slot, ${columns.join(', ')})
        values (case when ${isUsed} then null else ?1 end, ${placeholders})`,
      lead: (own) => [rowIdOf(uuidBytes(own))],
    };
  },
  returnsLongsAsText: false,
  lists: {
    indexHint: (index) => ` indexed by ${index}`,
    isAmong: (column, stored = (text) => text) =>
      `${column} in (select ${stored('value')} from json_each(?))`,
    among: (values) => JSON.stringify(values),
    gatheredMax: LIMITS.listRecordsInlineMax,
  },
  words: {
    source: (table) => table,
    match: (table, [first = '', ...others]) =>
      [
        `slot in (select slot from ${table}_word where ${prefixRange(first)})`,
        ...others.map(() => hasWord(table)),
      ].join(' and '),
    values: ([first = '', ...others]) => [...prefixBounds(first), ...others],
    choice: {
      probe: (table, word, most) =>
        `select count(*) as n from (select 1 from ${table}_word where ${prefixRange(word)} limit ${most})`,
      broad: {
        match: (table, words) => words.map(() => hasWord(table)).join(' and '),
        values: (words) => words,
      },
    },
  },
  rowLocks: { exclusive: '', skipLocked: '', shared: '' },
  lockClocks: undefined,
  // With one writer at a time, transactions that are not visible yet get greater numbers.
  clockOrder: {
    now: `(select ${NEXT_MOVE} from realm_clock)`,
    bounds: `select n as begins, n as ends from (select ${NEXT_MOVE} as n from realm_clock)`,
  },
};

/** 16 bytes. */
function id(text: string): string {
  return `unhex(${text}, '-')`;
}

/** Searches the words of the record: that is faster than a set of all records with the word, if they are many. */
function hasWord(table: string): string {
  return `instr(' ' || ${table}.words, ' ' || ?) > 0`;
}

function prefixBounds(word: string): readonly string[] {
  const end = successor(word);
  return end === undefined ? [word] : [word, end];
}

function prefixRange(word: string): string {
  return successor(word) === undefined ? 'word >= ?' : 'word >= ? and word < ?';
}

export const sqliteStatements = statementsOver(RESOURCES, SQLITE);
