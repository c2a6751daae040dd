import type { Database } from 'bun:sqlite';
import type { Placed, Sought, Store } from '../../directory/store.ts';
import { foldedKey } from '../../domain/folding.ts';
import { keyColumns, membersOf, type Resource } from '../../domain/resource.ts';
import { RESOURCES } from '../../domain/resources.ts';
import { checksum } from '../checksum.ts';
import {
  comparedColumn,
  type SqlValue,
  type Statements,
  statementsFor,
  summedColumn,
} from '../statements.ts';
import { readFrom } from './connection.ts';
import type { Snapshot } from './snapshot.ts';

type Row = Record<string, unknown>;
type Values = Sought['values'];

/** Answers rows that say what is sought; two of them are as good as more. */
type Seek = (realm: string, values: Values) => readonly Row[];

/** So many records of one checksum are looked at one by one; where there are more, somebody has made them. */
const SUMMED_ALIKE_MAX = 8;

/**
 * The reverse lookup of one connection, for each set of members that a record is found by. An index of numbers is found
 * through in fewer and smaller steps than one of texts (decision 0018), so a member that has a checksum is sought by that
 * first. The checksum decides nothing: every row is compared.
 */
export function openFinds(db: Database, snapshot: Snapshot): Store['find'] {
  const finders = new Map(RESOURCES.map((resource) => [resource, findersOf(db, resource)]));
  return (resource, realm, { members, values }) => {
    const find = finders.get(resource)?.get(members);
    if (!find) throw new Error(`${resource.name} is not found by ${members.join(' and ')}`);
    return readFrom(snapshot, () => find(realm, values));
  };
}

function findersOf(db: Database, resource: Resource) {
  const statements = statementsFor(resource, RESOURCES);
  const by = resource.finding?.by ?? [];
  return new Map(
    by.map((members) => {
      const seek = seekOf(db, resource, members, statements);
      return [members, soleOf(seek, statements)] as const;
    }),
  );
}

function soleOf(seek: Seek, { decodePlaced }: Statements) {
  return (realm: string, values: Values): Placed | undefined => {
    const [row, ...others] = seek(realm, values);
    return row && others.length === 0 ? decodePlaced(row) : undefined;
  };
}

function seekOf(
  db: Database,
  resource: Resource,
  members: readonly string[],
  { visible }: Pick<Statements, 'visible'>,
): Seek {
  const { table } = resource;
  const columns = [...keyColumns(resource).slice(0, -1), visible].join(', ');
  const said = ['realm_id', ...members.map((member) => comparedColumn(resource, member))];
  const where = said.map((column) => `${column} = ?`).join(' and ');
  const all = db.prepare<Row, SqlValue[]>(`select ${columns} from ${table} where ${where} limit 2`);
  const byTexts: Seek = (realm, values) => all.all(realm, ...values);

  const summed = membersOf(resource).find(
    ({ name, placement }) => placement.summed && members.includes(name),
  );
  if (!summed) return byTexts;
  const place = members.indexOf(summed.name);
  const says = comparisonOf(resource, members);
  const alike = db.prepare<Row, SqlValue[]>(
    `select ${columns} from ${table} where ${summedColumn(summed.name)} = ? limit ${SUMMED_ALIKE_MAX + 1}`,
  );
  return (realm, values) => {
    const rows = alike.all(checksum(values[place] as string));
    if (rows.length > SUMMED_ALIKE_MAX) return byTexts(realm, values);
    return rows.filter((row) => row.realm_id === realm && says(row, values));
  };
}

/** Whether a row says what is sought, by what its members are compared by. */
function comparisonOf(resource: Resource, members: readonly string[]) {
  const folded = new Set(
    membersOf(resource).flatMap(({ name, placement }) => (placement.folded ? [name] : [])),
  );
  return (row: Row, values: Values): boolean =>
    members.every((name, place) => {
      const said = row[name];
      return (folded.has(name) ? foldedKey(said as string) : said) === values[place];
    });
}
