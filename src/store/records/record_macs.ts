import type { Patch } from '../../directory/store.ts';
import type { Uuid } from '../../domain/id.ts';
import type { Resource } from '../../domain/resource.ts';
import type { RowMacs } from '../auth/row_macs.ts';
import type { SqlValue } from '../transaction_work.ts';
import { macColumn, macMembers } from './derived_columns.ts';
import type { Statements } from './statements.ts';

/** Adds the MACs of a record, or of the patched members of one, as members with the names of their columns. */
export type AddMacs = <M extends Patch['members']>(resource: Resource, id: Uuid, members: M) => M;

export function openRecordMacs(macs: RowMacs): AddMacs {
  const known = new Map<Resource, readonly string[]>();
  return (resource, id, members) => {
    const names = known.get(resource) ?? macMembers(resource);
    known.set(resource, names);
    if (names.length === 0) return members;
    const found = names.map((name) => {
      const value = members[name];
      const mac = value === undefined ? null : macs.of(resource.table, id, name, value as SqlValue);
      return [macColumn(name), mac];
    });
    return { ...members, ...Object.fromEntries(found) };
  };
}

/** Statements whose values have the MACs of records. */
export function withRecordMacs(
  of: (resource: Resource) => Statements,
  macs: RowMacs,
): (resource: Resource) => Statements {
  const addMacs = openRecordMacs(macs);
  const cache = new Map<Resource, Statements>();
  return (resource) => {
    const known = cache.get(resource);
    if (known) return known;
    const texts = of(resource);
    const statements: Statements =
      macMembers(resource).length === 0
        ? texts
        : {
            ...texts,
            insertValues: (key, record) => texts.insertValues(key, addMacs(resource, record.id, record)),
            replaceValues: (record) => texts.replaceValues(addMacs(resource, record.id, record)),
            patchStatements: (members) => {
              const patched = texts.patchStatements(members);
              const values: typeof patched.values = (patch, id) =>
                patched.values({ ...patch, members: addMacs(resource, id, patch.members) }, id);
              return { ...patched, values };
            },
          };
    cache.set(resource, statements);
    return statements;
  };
}
