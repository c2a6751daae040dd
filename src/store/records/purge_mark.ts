import type { Resource } from '../../domain/resource.ts';

/**
 * SQL that selects a row if a record is being purged. A mark names the resource as well as the ID, because records of two
 * resources may have the same ID.
 */
export function selectPurgeMark(realm: string, id: string, resource: string): string {
  return `select 1 from purge where purge.realm_id = ${realm} and purge.id = ${id} and purge.resource = ${resource}`;
}

/** A condition that excludes a record that is being purged, to append to another condition. */
export function unlessPurged({ name }: Resource, realm: string, id: string): string {
  return ` and not exists (${selectPurgeMark(realm, id, `'${name}'`)})`;
}
