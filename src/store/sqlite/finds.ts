import type { Database } from 'bun:sqlite';
import type { Placed, Store } from '../../directory/store.ts';
import { type Key, keyColumns, membersOf, type Resource, type Sought } from '../../domain/resource.ts';
import { RESOURCES } from '../../domain/resources.ts';
import { checksum } from '../checksum.ts';
import { comparedColumn, type SqlValue, type Statements, summedColumn } from '../statements.ts';
import { readFrom } from './connection.ts';
import type { Prepared } from './prepared.ts';
import type { Snapshot } from './snapshot.ts';

type Row = Record<string, unknown>;
type Values = Sought['values'];

/** Answers rows that say what is sought; two of them are as good as more. */
type Seek = (realm: string, values: Values) => readonly Row[];

/**
 * The reverse lookup of one connection, for each set of members that a record is found by. An index of numbers is found
 * through in fewer and smaller steps than one of texts (decision 0018), so a member that has a checksum is sought by that
 * first. The checksum decides nothing: every row is compared.
 */
export function openFinds(
  db: Database,
  snapshot: Snapshot,
  of: (resource: Resource) => Pick<Prepared, 'texts'>,
): Store['find'] {
  const finders = new Map(
    RESOURCES.map((resource) => [resource, findersOf(db, resource, of(resource).texts)]),
  );
  return (resource, realm, { members, values }) => {
    const find = finders.get(resource)?.get(members);
    if (!find) throw new Error(`${resource.name} is not found by ${members.join(' and ')}`);
    return readFrom(snapshot, () => find(realm, values));
  };
}

function findersOf(db: Database, resource: Resource, statements: Statements) {
  const by = resource.finding?.by ?? [];
  return new Map(by.map((members) => [members, finderOf(db, resource, members, statements)] as const));
}

function finderOf(
  db: Database,
  resource: Resource,
  members: readonly string[],
  { visible, decode }: Statements,
) {
  // What is the same code point for code point is in the question already.
  const exact = members.filter((member) => comparedColumn(resource, member) === member);
  const told = visible.filter((column) => !exact.includes(column));
  const above = keyColumns(resource).slice(1, -1);
  const seek = seekOf(db, resource, members, [...above, ...told]);
  return (realm: string, values: Values): Placed | undefined => {
    const rows = seek(realm, values);
    const [row] = rows;
    if (row === undefined || rows.length > 1) return undefined;
    const said: Row = {};
    for (const column of told) said[column] = row[column];
    for (const member of exact) said[member] = values[members.indexOf(member)];
    const record = decode(said);
    return { key: [realm, ...above.map((column) => row[column]), record.id] as unknown as Key, record };
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
    ({ name, placement }) => placement.summed && members.includes(name),
  );
  if (!summed) return (realm, values) => byTexts.all(realm, ...values);
  const place = members.indexOf(summed.name);
  const bySum = db.prepare<Row, SqlValue[]>(
    `select ${isSought} as is_sought, ${columns.join(', ')} from ${table}
     where ${summedColumn(summed.name)} = ?${compared.length + 1} limit ${SUMMED_ALIKE_MAX + 1}`,
  );
  return (realm, values) => {
    const rows = bySum.all(realm, ...values, checksum(values[place] as string));
    if (rows.length > SUMMED_ALIKE_MAX) return byTexts.all(realm, ...values);
    return rows.filter(({ is_sought }) => is_sought === 1);
  };
}
