import type { Database } from 'bun:sqlite';
import type { KeyedRecord, Store } from '../../directory/store.ts';
import { type Key, keyColumns, type LookupKey, membersOf, type Resource } from '../../domain/resource.ts';
import { RESOURCES } from '../../domain/resources.ts';
import { comparedColumn, hashColumn, type SqlValue } from '../records/statements.ts';
import { textHash } from '../records/text_hash.ts';
import { readRetrying } from './connection.ts';
import { sqliteStatements } from './dialect.ts';
import type { SharedReadTransaction } from './shared_read_transaction.ts';

type Row = Record<string, unknown>;
type Values = LookupKey['values'];

/** Answers the row that says what is sought; undefined where there is none, or more than one. */
type Seek = (realm: string, values: Values) => Row | undefined;

/**
 * The reverse lookup of one connection, for each set of members that a record is found by. An index of numbers is found
 * through in fewer and smaller steps than one of texts (decision 0006), so a member that has a checksum is sought by that
 * first. The checksum decides nothing: every row is compared.
 */
export function openSqliteReverseLookups(db: Database, sharedReads: SharedReadTransaction): Store['find'] {
  const finders = new Map(RESOURCES.map((resource) => [resource, findersOf(db, resource)]));
  return (resource, realm, { members, values }) => {
    const find = finders.get(resource)?.get(members);
    if (!find) throw new Error(`${resource.name} is not found by ${members.join(' and ')}`);
    return readRetrying(sharedReads, () => find(realm, values));
  };
}

function findersOf(db: Database, resource: Resource) {
  const by = resource.reverseLookup?.by ?? [];
  return new Map(by.map((members) => [members, finderOf(db, resource, members)] as const));
}

function finderOf(db: Database, resource: Resource, members: readonly string[]) {
  const { visible, decode } = sqliteStatements(resource);
  // What is the same code point for code point is in the question already.
  const exact = members.flatMap((member, place) =>
    comparedColumn(resource, member) === member ? [{ member, place }] : [],
  );
  const told = visible.filter((column) => !exact.some(({ member }) => member === column));
  const above = keyColumns(resource).slice(1, -1);
  const seek = seekOf(db, resource, members, [...told, ...above]);
  return (realm: string, values: Values): KeyedRecord | undefined => {
    const row = seek(realm, values);
    if (row === undefined) return undefined;
    const key = [realm];
    // The row becomes the record: to take off the columns it ends with costs less than to copy the others.
    for (const column of above) {
      key.push(row[column] as string);
      delete row[column];
    }
    for (const { member, place } of exact) row[member] = values[place];
    const record = decode(row);
    key.push(record.id);
    return { key: key as unknown as Key, record };
  };
}

/** So many rows of one checksum are compared one by one; where there are more, somebody has made them. */
const SUMMED_ALIKE_MAX = 8;

function seekOf(
  db: Database,
  resource: Resource,
  members: readonly string[],
  columns: readonly string[],
): Seek {
  const { table } = resource;
  const compared = ['realm_id', ...members.map((member) => comparedColumn(resource, member))];
  const isSought = compared.map((column, index) => `${column} = ?${index + 1}`).join(' and ');
  const byTexts = db.prepare<Row, SqlValue[]>(
    `select ${columns.join(', ')} from ${table} where ${isSought} limit 2`,
  );

  const summed = membersOf(resource).find(
    ({ name, annotation }) => annotation.hashColumn && members.includes(name),
  );
  if (!summed) return (realm, values) => soleOf(byTexts.all(realm, ...values));
  const place = members.indexOf(summed.name);
  const bySum = db.prepare<Row, SqlValue[]>(
    `select ${columns.join(', ')}, ${isSought} as is_sought from ${table}
     where ${hashColumn(summed.name)} = ?${compared.length + 1} limit ${SUMMED_ALIKE_MAX + 1}`,
  );
  const isUnique = resource.unique.some(
    (set) => new Set(set).symmetricDifference(new Set(members)).size === 0,
  );
  return (realm, values) => {
    const sum = textHash(values[place] as string);
    // Mostly the only row of its checksum, and then the only answer. A subject that another realm has as well is asked
    // for twice.
    const first = isUnique ? bySum.get(realm, ...values, sum) : undefined;
    if (first === null) return undefined;
    if (first?.is_sought === 1) return unmarked(first);
    const rows = bySum.all(realm, ...values, sum);
    if (rows.length > SUMMED_ALIKE_MAX) return soleOf(byTexts.all(realm, ...values));
    const row = soleOf(rows.filter(({ is_sought }) => is_sought === 1));
    return row && unmarked(row);
  };
}

/** A row without the column that the search added. */
function unmarked(row: Row): Row {
  delete row.is_sought;
  return row;
}

function soleOf(rows: readonly Row[]): Row | undefined {
  return rows.length === 1 ? rows[0] : undefined;
}
