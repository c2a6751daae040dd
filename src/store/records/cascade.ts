import { ancestry, isVisible, keyColumns, membersOf, type Resource } from '../../domain/resource.ts';
import { RESOURCES } from '../../domain/resources.ts';

/** Records of one resource that go along with a record of another one, and every SQL text about them. */
export interface Dependent {
  readonly resource: Resource;
  /** Parameters: realm, identifier of the record that goes, limit. Answers keys, and what callers may see. */
  readonly select: string;
  /** Parameters: realm, identifier. Answers `n`, how many there are. */
  readonly count: string;
  /** The kind of record above that stays, and is touched because it loses this one. */
  readonly touchedParent: Resource | undefined;
}

/** The columns by which records of a resource hang on others: those of its address, and those that refer. */
function referencingColumns(
  resource: Resource,
  all: readonly Resource[],
): readonly { readonly column: string; readonly target: Resource }[] {
  const above = ancestry(resource).slice(0, -1);
  const columns = keyColumns(resource);
  return [
    ...above.map((target, at) => ({ column: columns[at] as string, target })),
    ...membersOf(resource).flatMap(({ name, annotation }) => {
      const target = all.find((other) => other.name === annotation.references);
      return target ? [{ column: name, target }] : [];
    }),
  ];
}

/**
 * What goes along with a record, by the descriptions alone: what hangs below it, what refers to it, and what hangs on
 * those; with a realm everything in it. Children before parents, so that each can be removed in this order.
 */
export function dependentsOf(gone: Resource, all: readonly Resource[]): readonly Dependent[] {
  const conditions = new Map<Resource, string>();
  for (const resource of all) {
    const condition = resource === gone ? '' : conditionOf({ resource, gone, all, conditions });
    if (condition !== '') conditions.set(resource, condition);
  }
  return [...conditions]
    .map(([resource, condition]) => {
      const { parent, table } = resource;
      const isBereft = parent?.parent && parent !== gone && !conditions.has(parent);
      return {
        resource,
        select: `select ${columnsOf(resource).join(', ')} from ${table} where ${condition} limit ?3`,
        count: `select count(*) as n from ${table} where ${condition}`,
        touchedParent: isBereft ? parent : undefined,
      };
    })
    .toReversed();
}

/** The columns of an address, and of what callers may see: each member in one of its own name. */
function columnsOf(resource: Resource): readonly string[] {
  const members = membersOf(resource).filter(isVisible);
  return [
    ...keyColumns(resource),
    ...members.map(({ name }) => name),
    ...['created_at', 'updated_at', 'revision'],
  ];
}

/** Empty for a resource whose records all stay. */
function conditionOf({
  resource,
  gone,
  all,
  conditions,
}: {
  readonly resource: Resource;
  readonly gone: Resource;
  readonly all: readonly Resource[];
  readonly conditions: ReadonlyMap<Resource, string>;
}): string {
  // Nothing of a realm hangs on anything outside it.
  if (gone.parent === undefined) return 'realm_id = ?1 and realm_id = ?2';
  const ties = referencingColumns(resource, all).flatMap(({ column, target }) => {
    const condition = conditions.get(target);
    if (target === gone) return [`${column} = ?2`];
    return condition ? [`${column} in (select id from ${target.table} where ${condition})`] : [];
  });
  if (ties.length === 0) return '';
  return `realm_id = ?1 and ${ties.length === 1 ? ties[0] : `(${ties.join(' or ')})`}`;
}

/** The columns that refer to records of a resource, as SQL that asks whether one refers to the row `t`. */
export function isReferredTo(resource: Resource, all: readonly Resource[]): string {
  const referrers = all.flatMap((other) =>
    membersOf(other).flatMap(({ name, annotation }) =>
      annotation.references === resource.name
        ? [`exists (select 1 from ${other.table} r where r.realm_id = t.realm_id and r.${name} = t.id)`]
        : [],
    ),
  );
  return referrers.length === 0 ? 'false' : `(${referrers.join(' or ')})`;
}

/** What goes along with a record of each resource. */
export const CASCADES: ReadonlyMap<Resource, readonly Dependent[]> = new Map(
  RESOURCES.map((resource) => [resource, dependentsOf(resource, RESOURCES)]),
);
