import type { Change } from '../../model/log/change.ts';
import type { Resource } from '../../model/resource.ts';
import { RESOURCES } from '../../model/resources.ts';

/**
 * The number of records of a realm in each table, in the clock of the realm: the total of a list without a filter
 * (docs/decisions/0015-lists-and-search.md).
 */

/** The resources directly below a realm. Those of a user are few. */
export const COUNTED_RESOURCES: readonly Resource[] = RESOURCES.filter(
  ({ parent }) => parent !== undefined && parent.parent === undefined,
);

/** The columns of the counts, in the order of `countChanges`. */
export const COUNT_COLUMNS: readonly string[] = COUNTED_RESOURCES.map(countColumn);

/** The column of `realm_clock` with the number of records of a resource. */
export function countColumn({ table }: Resource): string {
  return `${table}_count`;
}

/** SQL for the number of records of a resource in the realm `?1`. Null if it is not counted. */
export function storedTotal(resource: Resource): string {
  if (!COUNTED_RESOURCES.includes(resource)) return 'null';
  return `(select ${countColumn(resource)} from realm_clock where realm_id = ?1)`;
}

/** What an event adds to the count of its resource. */
const EFFECTS = new Map(
  COUNTED_RESOURCES.flatMap(({ name }, index) => [
    [`${name}.created`, { index, difference: 1 }],
    [`${name}.deleted`, { index, difference: -1 }],
  ]),
);

/** What no entry adds to each count. */
export const NO_COUNTS: readonly number[] = COUNTED_RESOURCES.map(() => 0);

/** What these entries add to each count. */
export function countChanges(
  entries: readonly { readonly change: Pick<Change, 'event'> }[],
): readonly number[] {
  const changes = [...NO_COUNTS];
  for (const { change } of entries) {
    const effect = EFFECTS.get(change.event);
    if (effect) changes[effect.index] = (changes[effect.index] as number) + effect.difference;
  }
  return changes;
}
