import type { SecretLocation } from '../access/store/sealed.ts';
import type { Uuid } from '../model/id.ts';
import { ancestry, type Key, membersOf, type Resource } from '../model/resource.ts';

/** The members of an import or export line that name parent records, by column. */
const ID_FIELDS = { realm_id: 'realm_id', user_id: 'user_authentication_info_id' } as const;

/** The members of a line that name its parents, realm first. */
export function parentFields(resource: Resource): readonly string[] {
  return ancestry(resource)
    .slice(0, -1)
    .map(({ foreignKey }) => ID_FIELDS[foreignKey ?? 'realm_id']);
}

/** The member in which a line may repeat its own ID. */
export function ownIdField(resource: Resource): string | undefined {
  return resource.foreignKey && ID_FIELDS[resource.foreignKey];
}

export function secretLocation(resource: Resource, name: string, key: Key): SecretLocation {
  return { table: resource.table, column: `${name}_sealed`, realm: key[0], id: key.at(-1) as Uuid };
}

/** Decrypts a secret. Throws if that fails. */
export type OpenSecret = (location: SecretLocation, sealed: Uint8Array) => string;

/** The members of a resource in one object of a line; undefined for the line itself. */
export function membersWithin(resource: Resource, within: 'meta' | 'relationships' | undefined) {
  return membersOf(resource).filter(({ annotation }) => annotation.within === within);
}
