import type { Uuid } from '../domain/id.ts';
import { ancestry, type Key, membersOf, type Resource } from '../domain/resource.ts';

/** How a line of an import or export names the records above its own, by the column that holds them. */
const ID_FIELDS = { realm_id: 'realm_id', user_id: 'user_authentication_info_id' } as const;

/** The members of a line that name the records above, realm first. */
export function parentFields(resource: Resource): readonly string[] {
  return ancestry(resource)
    .slice(0, -1)
    .map(({ foreignKey }) => ID_FIELDS[foreignKey ?? 'realm_id']);
}

/** The member by which a line may name its own record a second time. */
export function ownIdField(resource: Resource): string | undefined {
  return resource.foreignKey && ID_FIELDS[resource.foreignKey];
}

/** The one place where a sealed secret belongs. */
export interface RecordSecretLocation {
  readonly table: string;
  readonly column: string;
  readonly realm: Uuid;
  readonly id: Uuid;
}

export function secretLocation(resource: Resource, name: string, key: Key): RecordSecretLocation {
  return { table: resource.table, column: `${name}_sealed`, realm: key[0], id: key.at(-1) as Uuid };
}

/** Opens a secret. Throws where the ciphertext does not open. */
export type OpenSecret = (place: RecordSecretLocation, sealed: Uint8Array) => string;

/** The members of a resource as a line holds them: in `data` itself, or in an object inside it. */
export function membersWithin(resource: Resource, within: 'meta' | 'relationships' | undefined) {
  return membersOf(resource).filter(({ annotation }) => annotation.within === within);
}
