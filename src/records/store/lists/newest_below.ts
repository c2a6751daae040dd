import { LIMITS } from '../../../model/limits.ts';
import { type AnyRecord, keyColumns, type Resource } from '../../../model/resource.ts';
import type { IncludedRecords } from '../../../model/store.ts';

/**
 * Selects the newest records of a resource below one parent, one more than LIMITS.includedRecordsMax, along the index of
 * their list. `parent` is SQL for each column of the parent's key.
 */
export function newestBelowText(
  resource: Resource,
  visible: readonly string[],
  parent: readonly string[],
): string {
  const where = keyColumns(resource)
    .slice(0, -1)
    .map((column, depth) => `${column} = ${parent[depth]}`)
    .join(' and ');
  return `select ${visible.join(', ')} from ${resource.table} where ${where}
    order by created_at desc, id desc limit ${LIMITS.includedRecordsMax + 1}`;
}

/** The records of that select. */
export function newestOf(resource: Resource, records: readonly AnyRecord[]): IncludedRecords {
  const most = LIMITS.includedRecordsMax;
  return { resource, records: records.slice(0, most), hasMore: records.length > most };
}
