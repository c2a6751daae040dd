import { NIL_UUID, uuidBytes } from '../../../model/id.ts';
import { LIMITS } from '../../../model/limits.ts';
import { RESOURCES } from '../../../model/resources.ts';
import type { Dialect, RealmRows } from '../../../sql/dialect.ts';
import { parametersOf } from '../../../sql/tables/records.ts';
import { successor } from '../lists/filters.ts';
import { statementsOver } from '../statements.ts';
import { rowIdOf } from './row_id.ts';

const NEXT_MOVE = 'coalesce(max(moved), 0) + 1';

const FOUND_ROWS: RealmRows = {
  source: (table) => table,
  id: realmIdOf,
  realm: 'realm_id',
  compared: realm,
  isAfter: (table, after, column, value) => `(${realmIdOf(table)}, ${column}) > (${after}, ${value})`,
};

/** Clocks come first in the join, so that their index and that of the table give the order. */
const ORDERED_ROWS: RealmRows = {
  source: (table) => `realm_clock k cross join ${table} on ${table}.realm_id = k.number`,
  id: () => 'k.realm_id',
  realm: 'k.realm_id',
  compared: (text) => text,
  // Both conditions are bounds of an index. Every number and every ID is greater than -1.
  isAfter: (_, after, column, value) =>
    `k.realm_id >= ${after} and ${column} > iif(k.realm_id = ${after}, ${value}, -1)`,
};

export const SQLITE: Dialect = {
  position: 'instr',
  greatest: 'max',
  hasHashColumns: true,
  hexAfterFirst: (value) => `lower(hex(substr(${value}, 2, 8)))`,
  id,
  realm,
  isMisplaced: `slot is not ${realm('?1')}`,
  createClock: 'insert into realm_clock (realm_id, seq) values (?, 0) on conflict do nothing',
  foundRows: FOUND_ROWS,
  orderedRows: ORDERED_ROWS,
  /**
   * The slot of a realm is its number, and that of another record its row ID. Where the row ID is used already, the engine chooses
   * another. A realm gets another one only where its ID exists, which violates the index of IDs: no lookup finds a realm elsewhere.
   */
  insertion(resource, columns) {
    const { table } = resource;
    const [slot, used] = resource.parent ? ['?1', 'slot = ?1'] : [realm('?1'), `realm_id = ${id('?1')}`];
    const isUsed = `exists (select 1 from ${table} where ${used})`;
    // No realm has the number 0: one without a number is a missing reference.
    const parameter = parametersOf(resource, { id, realm: (text) => `coalesce(${realm(text)}, 0)` });
    const placeholders = columns.map((column, index) => parameter(column, `?${index + 2}`)).join(', ');
    return {
      text: `insert into ${table} (slot, ${columns.join(', ')})
        values (case when ${isUsed} then null else ${slot} end, ${placeholders})`,
      lead: (own) => [resource.parent ? rowIdOf(uuidBytes(own)) : own],
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

/** The number of a realm belongs to its ID for ever: no clock is ever deleted. */
function realm(id: string): string {
  return `(select number from realm_clock where realm_id = ${id})`;
}

/** The ID of the realm of a row; the nil UUID where another program wrote a number that no realm has. */
function realmIdOf(table: string): string {
  return `coalesce((select k.realm_id from realm_clock k where k.number = ${table}.realm_id), '${NIL_UUID}')`;
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
