import type { Resource } from '../../domain/resource.ts';

/**
 * SQL that answers a row where a record is being purged. A mark names the kind beside the identifier, because records of
 * two kinds may share one.
 */
export function selectPurgeMark(realm: string, id: string, resource: string): string {
  return `select 1 from purge where purge.realm_id = ${realm} and purge.id = ${id} and purge.resource = ${resource}`;
}

/** What holds of a record unless it is being purged, to be put behind another condition. */
export function unlessPurged({ name }: Resource, realm: string, id: string): string {
  return ` and not exists (${selectPurgeMark(realm, id, `'${name}'`)})`;
}
