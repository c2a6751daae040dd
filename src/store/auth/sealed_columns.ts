import { NIL_UUID } from '../../domain/id.ts';
import { membersOf, type Resource } from '../../domain/resource.ts';
import { RESOURCES } from '../../domain/resources.ts';

/** A column of ciphertexts, with the columns of the location that they are bound to. */
export interface SealedColumn {
  readonly table: string;
  readonly column: string;
  readonly realm: string;
  readonly id: string;
}

/** The columns of the descriptions and of instance tables. */
export const SEALED_COLUMNS: readonly SealedColumn[] = [
  { table: 'signing_key', column: 'private_sealed', realm: `'${NIL_UUID}'`, id: 'kid' },
  { table: 'instance_secret', column: 'sealed', realm: `'${NIL_UUID}'`, id: 'name' },
  { table: 'webhook', column: 'secret_sealed', realm: `'${NIL_UUID}'`, id: 'webhook_id' },
  { table: 'webhook', column: 'previous_sealed', realm: `'${NIL_UUID}'`, id: 'webhook_id' },
  ...RESOURCES.flatMap((resource) =>
    sealedMembers(resource).map((name) => ({
      table: resource.table,
      column: `${name}_sealed`,
      realm: 'realm_id',
      id: resource.parent ? 'id' : 'realm_id',
    })),
  ),
];

/** The members of a resource that are stored encrypted. */
export function sealedMembers(resource: Resource): readonly string[] {
  return membersOf(resource).flatMap(({ name, annotation }) =>
    annotation.secret === 'sealed' ? [name] : [],
  );
}
