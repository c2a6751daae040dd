import { NIL_UUID } from '../domain/id.ts';
import { membersOf, type Resource } from '../domain/resource.ts';
import { RESOURCES } from '../domain/resources.ts';

/** A column that holds ciphertexts, and the columns that say where a row belongs. */
export interface SealedColumn {
  readonly table: string;
  readonly column: string;
  readonly realm: string;
  readonly id: string;
}

/** Those of the descriptions, and the one of an instance table. */
export const SEALED_COLUMNS: readonly SealedColumn[] = [
  { table: 'signing_key', column: 'private_sealed', realm: `'${NIL_UUID}'`, id: 'kid' },
  ...RESOURCES.flatMap((resource) =>
    sealedMembers(resource).map((name) => ({
      table: resource.table,
      column: `${name}_sealed`,
      realm: 'realm_id',
      id: resource.parent ? 'id' : 'realm_id',
    })),
  ),
];

/** The members of a resource that are kept as ciphertexts. */
export function sealedMembers(resource: Resource): readonly string[] {
  return membersOf(resource).flatMap(({ name, placement }) => (placement.secret === 'sealed' ? [name] : []));
}
