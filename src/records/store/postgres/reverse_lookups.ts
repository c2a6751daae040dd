import { membersOf, type Resource } from '../../../model/resource.ts';
import { RESOURCES } from '../../../model/resources.ts';
import type { Store } from '../../../model/store.ts';
import type { Admission } from '../../../sql/admission.ts';
import type { ConnectionPool } from '../../../sql/postgres/pool.ts';
import { type LookupStatements, openBatchedLookups } from '../../../sql/postgres/query_batches.ts';
import { comparedColumn } from '../../../sql/tables/derived_columns.ts';
import { postgresStatements } from './dialect.ts';

/** Reverse lookups. Those by one set of members in one realm share a statement. */
export function openPostgresReverseLookups(pool: ConnectionPool, admission: Admission): Store['find'] {
  const lookups = new Map(
    RESOURCES.map((resource) => {
      const { decodeKeyed } = postgresStatements(resource);
      const lookupBy = (members: readonly string[]) =>
        openBatchedLookups(pool, admission, lookupStatements(resource, members), decodeKeyed);
      return [resource, new Map(resource.reverseLookup?.by.map((members) => [members, lookupBy(members)]))];
    }),
  );
  return (resource, realm, { members, values }) => {
    const find = lookups.get(resource)?.get(members);
    if (!find) throw new Error(`${resource.name} has no reverse lookup by ${members.join(' and ')}`);
    return find([realm, ...values.map(String)]);
  };
}

/** An array literal of texts. */
function textArray(texts: readonly string[]): string {
  return `{${texts.map((text) => `"${text.replace(/["\\]/g, '\\$&')}"`).join()}}`;
}

/** Two rows mean an ambiguous lookup. */
function lookupStatements(resource: Resource, members: readonly string[]): LookupStatements {
  const { table } = resource;
  const columns = postgresStatements(resource).visibleKeyed('realm_id');
  const conditions = (placeholder: (at: number) => string) =>
    members.map((member, at) => `and ${comparedColumn(resource, member)} = ${placeholder(at)}`).join(' ');
  const selectRows = (placeholder: (at: number) => string) =>
    `select ${columns} from ${table} where realm_id = $1 ${conditions(placeholder)} limit 2`;
  const arrays = members.map((member, at) => `$${at + 2}::${columnType(resource, member)}[]`).join(', ');
  const names = members.map((_, at) => `member_${at}`).join(', ');
  return {
    one: selectRows((at) => `$${at + 2}`),
    many: `select k.query_number::integer as query_number, found.*
      from unnest(${arrays}) with ordinality as k (${names}, query_number)
      join lateral (${selectRows((at) => `k.member_${at}`)}) as found on true`,
    arrayOf: textArray,
  };
}

/** References are UUID columns; all other members of a reverse lookup are text. */
function columnType(resource: Resource, member: string): 'uuid' | 'text' {
  const described = membersOf(resource).find(({ name }) => name === member);
  return described && !described.annotation.references ? 'text' : 'uuid';
}
