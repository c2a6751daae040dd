import type { Database } from 'bun:sqlite';
import { type StoredId, type Uuid, uuidText } from '../../../model/id.ts';
import { type Key, keyColumns, type LookupKey, membersOf, type Resource } from '../../../model/resource.ts';
import { RESOURCES } from '../../../model/resources.ts';
import type { KeyedRecord, Store } from '../../../model/store.ts';
import { readRetrying, type SharedReadTransaction } from '../../../sql/sqlite/shared_read_transaction.ts';
import { comparedColumn, hashColumn } from '../../../sql/tables/derived_columns.ts';
import { parametersOf } from '../../../sql/tables/records.ts';
import type { SqlValue } from '../../../sql/transaction_work.ts';
import { SQLITE, sqliteStatements } from './dialect.ts';
import type { RealmNumbers } from './realm_numbers.ts';

type Row = Record<string, unknown>;
type LookupValues = LookupKey['values'];

/** Returns the row with these values in a realm, by its number; undefined where there is none or more than one. `is_match` may be added. */
type FindRow = (realm: number, values: LookupValues) => Row | undefined;

/**
 * Reverse lookups over one connection, for each set of members that a resource can be looked up by. A member with a
 * hash column is searched by its hash first, because an index of numbers is smaller and faster than one of texts
 * (decision 0006). Every row is still compared with the values.
 */
export function openSqliteReverseLookups(
  db: Database,
  sharedReads: SharedReadTransaction,
  numbers: RealmNumbers,
): Store['find'] {
  const lookups = new Map(RESOURCES.map((resource) => [resource, lookupsOf(db, resource)]));
  return (resource, realm, { members, values }) => {
    const find = lookups.get(resource)?.get(members);
    if (!find) throw new Error(`${resource.name} has no reverse lookup by ${members.join(' and ')}`);
    return readRetrying(sharedReads, () =>
      find(realm, numbers.known.get(realm) ?? numbers.find(realm), values),
    );
  };
}

function lookupsOf(db: Database, resource: Resource) {
  const by = resource.reverseLookup?.by ?? [];
  return new Map(by.map((members) => [members, lookupBy(db, resource, members)] as const));
}

function lookupBy(db: Database, resource: Resource, members: readonly string[]) {
  const { visible, decode } = sqliteStatements(resource);
  // Members that are compared exactly are not selected: the query already holds their values.
  const exact = members.flatMap((member, index) =>
    comparedColumn(resource, member) === member ? [{ member, index }] : [],
  );
  const selected = visible.filter((column) => !exact.some(({ member }) => member === column));
  const parents = keyColumns(resource).slice(1, -1);
  const findRow = rowFinder(db, resource, members, [...selected, ...parents]);
  const added = [...parents, 'is_match'];
  return (realm: Uuid, number: number | undefined, values: LookupValues): KeyedRecord | undefined => {
    const row = number === undefined ? undefined : findRow(number, values);
    if (row === undefined) return undefined;
    const key = [realm, ...parents.map((column) => uuidText(row[column] as StoredId))];
    for (const { member, index } of exact) row[member] = values[index];
    const record = decode(row);
    key.push(record.id);
    // The row becomes the record: deleting its last columns is cheaper than copying the others, and makes it slower to read.
    for (const column of added) delete row[column];
    return { key: key as unknown as Key, record };
  };
}

/** The number of rows with one hash that are compared here. More of them suggest deliberate collisions. */
const EQUAL_HASHES_MAX = 8;

function rowFinder(
  db: Database,
  resource: Resource,
  members: readonly string[],
  columns: readonly string[],
): FindRow {
  const { table } = resource;
  const parameter = parametersOf(resource, SQLITE);
  const compared = members.map((member) => comparedColumn(resource, member));
  const matches = [
    'realm_id = ?1',
    ...compared.map((column, index) => `${column} = ${parameter(column, `?${index + 2}`)}`),
  ].join(' and ');
  const selectByTexts = db.prepare<Row, SqlValue[]>(
    `select ${columns.join(', ')} from ${table} where ${matches} limit 2`,
  );

  const hashed = membersOf(resource).find(
    ({ name, annotation }) => annotation.hashColumn && members.includes(name),
  );
  if (!hashed) return (realm, values) => onlyRow(selectByTexts.all(realm, ...values));
  const index = members.indexOf(hashed.name);
  const selectByHash = db.prepare<Row, SqlValue[]>(
    `select ${columns.join(', ')}, ${matches} as is_match from ${table}
     where ${hashColumn(hashed.name)} = ?${compared.length + 2} limit ${EQUAL_HASHES_MAX + 1}`,
  );
  const isUnique = resource.unique.some(
    (set) => new Set(set).symmetricDifference(new Set(members)).size === 0,
  );
  return (realm, values) => {
    const hash = Bun.hash.crc32(values[index] as string);
    // Usually the only row with this hash. Where another realm has the same subject, a second query may be needed.
    const first = isUnique ? selectByHash.get(realm, ...values, hash) : undefined;
    if (first === null) return undefined;
    if (first?.is_match === 1) return first;
    const rows = selectByHash.all(realm, ...values, hash);
    if (rows.length > EQUAL_HASHES_MAX) return onlyRow(selectByTexts.all(realm, ...values));
    return onlyRow(rows.filter(({ is_match }) => is_match === 1));
  };
}

function onlyRow(rows: readonly Row[]): Row | undefined {
  return rows.length === 1 ? rows[0] : undefined;
}
