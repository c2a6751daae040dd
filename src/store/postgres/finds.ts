import type { Placed, Store } from '../../directory/store.ts';
import { keyColumns, type Resource } from '../../domain/resource.ts';
import { RESOURCES } from '../../domain/resources.ts';
import { comparedColumn } from '../statements.ts';
import { asFault } from './connection.ts';
import { statementsOf } from './dialect.ts';
import type { Pool } from './pool.ts';

/** The reverse lookup: one statement for each set of members that a record is found by. */
export function openFinds(pool: Pool): Store['find'] {
  const texts = new Map(
    RESOURCES.map((resource) => [
      resource,
      new Map((resource.finding?.by ?? []).map((members) => [members, textOf(resource, members)])),
    ]),
  );
  return async (resource, realm, { members, values }): Promise<Placed | undefined> => {
    const text = texts.get(resource)?.get(members);
    if (text === undefined) throw new Error(`${resource.name} is not found by ${members.join(' and ')}`);
    try {
      const { rows } = await pool.ask(text, [realm, ...values.map(String)]);
      const [row] = rows;
      return row && rows.length === 1 ? statementsOf(resource).decodePlaced(row) : undefined;
    } catch (error) {
      throw asFault(error);
    }
  };
}

function textOf(resource: Resource, members: readonly string[]): string {
  const above = keyColumns(resource).slice(0, -1);
  const columns = [...above, ...statementsOf(resource).visible];
  const compared = ['realm_id', ...members.map((member) => comparedColumn(resource, member))];
  const isSought = compared.map((column, at) => `${column} = $${at + 1}`).join(' and ');
  return `select ${columns.join(', ')} from ${resource.table} where ${isSought} limit 2`;
}
