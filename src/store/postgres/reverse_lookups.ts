import type { KeyedRecord, Store } from '../../directory/store.ts';
import { keyColumns, type LookupKey, membersOf, type Resource } from '../../domain/resource.ts';
import { RESOURCES } from '../../domain/resources.ts';
import type { Admission } from '../admission.ts';
import { comparedColumn } from '../records/statements.ts';
import { postgresStatements } from './dialect.ts';
import type { ConnectionPool } from './pool.ts';
import { openQueryBatches, uniqueRowPerQuery } from './query_batches.ts';

type Values = LookupKey['values'];

interface LookupDeps {
  readonly pool: ConnectionPool;
  readonly gate: Admission;
}

/** The reverse lookup: those by one set of members in one realm travel together. */
export function openPostgresReverseLookups(pool: ConnectionPool, gate: Admission): Store['find'] {
  const finders = new Map(
    RESOURCES.map((resource) => [
      resource,
      new Map(
        (resource.reverseLookup?.by ?? []).map((members) => [
          members,
          finderOf(resource, members, { pool, gate }),
        ]),
      ),
    ]),
  );
  return (resource, realm, { members, values }) => {
    const find = finders.get(resource)?.get(members);
    if (!find) throw new Error(`${resource.name} is not found by ${members.join(' and ')}`);
    return find(realm, values);
  };
}

function finderOf(resource: Resource, members: readonly string[], { pool, gate }: LookupDeps) {
  const { one, many } = textsOf(resource, members);
  const { decodePlaced } = postgresStatements(resource);
  return openQueryBatches<Values, KeyedRecord | undefined>(gate, async (realm, questions) => {
    if (questions.length === 1) {
      const { rows } = await pool.query(one, [realm, ...(questions[0] as Values).map(String)]);
      const [row] = rows;
      return [row && rows.length === 1 ? decodePlaced(row) : undefined];
    }
    const arrays = members.map((_, at) => arrayOf(questions.map((values) => String(values[at]))));
    const { rows } = await pool.query(many, [realm, ...arrays]);
    return uniqueRowPerQuery(rows, questions.length).map((row) => row && decodePlaced(row));
  });
}

/** Texts as the one value of an array. */
function arrayOf(texts: readonly string[]): string {
  return `{${texts.map((text) => `"${text.replace(/["\\]/g, '\\$&')}"`).join()}}`;
}

/** Of one question, and of many: then each row says in `place` which one it answers. A second row says that none does. */
function textsOf(resource: Resource, members: readonly string[]) {
  const { table } = resource;
  const columns = [...keyColumns(resource).slice(0, -1), ...postgresStatements(resource).visible];
  const soughtBy = (place: (at: number) => string) =>
    members.map((member, at) => `and ${comparedColumn(resource, member)} = ${place(at)}`).join(' ');
  const rowsBy = (place: (at: number) => string) =>
    `select ${columns.join(', ')} from ${table} where realm_id = $1 ${soughtBy(place)} limit 2`;
  const arrays = members.map((member, at) => `$${at + 2}::${typeOf(resource, member)}[]`).join(', ');
  const names = members.map((_, at) => `sought_${at}`).join(', ');
  return {
    one: rowsBy((at) => `$${at + 2}`),
    many: `select k.place::integer as place, found.*
      from unnest(${arrays}) with ordinality as k (${names}, place)
      join lateral (${rowsBy((at) => `k.sought_${at}`)}) as found on true`,
  };
}

/** Identifiers are kept as such, whatever else a record is found by is text. */
function typeOf(resource: Resource, member: string): 'uuid' | 'text' {
  const described = membersOf(resource).find(({ name }) => name === member);
  return described && !described.annotation.references ? 'text' : 'uuid';
}
