import { NIL_UUID } from '../../domain/id.ts';
import { membersOf, type Resource } from '../../domain/resource.ts';
import { RESOURCES } from '../../domain/resources.ts';

/** A column of ciphertexts, with the columns of the location that they are bound to. */
export interface SealedColumn {
  readonly table: string;
  readonly column: string;
  readonly realm: string;
  readonly id: string;
  /** The first schema with this column; default: 1. */
  readonly since?: number;
}

/** The columns of the descriptions and of instance tables. */
export const SEALED_COLUMNS: readonly SealedColumn[] = [
  { table: 'signing_key', column: 'private_sealed', realm: `'${NIL_UUID}'`, id: 'kid' },
  { table: 'instance_secret', column: 'sealed', realm: `'${NIL_UUID}'`, id: 'name', since: 2 },
  { table: 'webhook', column: 'secret_sealed', realm: `'${NIL_UUID}'`, id: 'webhook_id', since: 2 },
  { table: 'webhook', column: 'previous_sealed', realm: `'${NIL_UUID}'`, id: 'webhook_id', since: 2 },
  ...RESOURCES.flatMap((resource) =>
    sealedMembers(resource).map((name) => ({
      table: resource.table,
      column: `${name}_sealed`,
      realm: 'realm_id',
      id: resource.parent ? 'id' : 'realm_id',
    })),
  ),
];

/** The sealed columns of a schema. */
export function sealedColumnsIn(schema: number): readonly SealedColumn[] {
  return SEALED_COLUMNS.filter(({ since = 1 }) => since <= schema);
}

/** The members of a resource that are stored encrypted. */
export function sealedMembers(resource: Resource): readonly string[] {
  return membersOf(resource).flatMap(({ name, annotation }) =>
    annotation.secret === 'sealed' ? [name] : [],
  );
}
