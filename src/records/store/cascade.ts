import { ancestry, isVisible, keyColumns, membersOf, type Resource } from '../../model/resource.ts';
import { RESOURCES } from '../../model/resources.ts';
import type { Dialect } from '../../sql/dialect.ts';

/** Records of one resource that are deleted with a record of another one, and the SQL about them. */
export interface Dependent {
  readonly resource: Resource;
  /** Parameters: realm, ID of the deleted record, limit. Selects keys and visible members. */
  readonly select: string;
  /** Parameters: realm, ID. Selects `n`, their number. */
  readonly count: string;
  /** The parent resource, if its record stays and gets a new `updated_at` because it loses this one. */
  readonly touchedParent: Resource | undefined;
}

/** The columns by which records of a resource depend on others: key columns and references. */
function referencingColumns(
  resource: Resource,
  all: readonly Resource[],
): readonly { readonly column: string; readonly target: Resource }[] {
  const parents = ancestry(resource).slice(0, -1);
  const columns = keyColumns(resource);
  return [
    ...parents.map((target, at) => ({ column: columns[at] as string, target })),
    ...membersOf(resource).flatMap(({ name, annotation }) => {
      const target = all.find((other) => other.name === annotation.references);
      return target ? [{ column: name, target }] : [];
    }),
  ];
}

/**
 * The records that are deleted with a record, derived from the descriptions: those below it, those that refer to it, and
 * their dependents; with a realm everything in it. Children before parents: the order in which they can be deleted.
 */
export function dependentsOf(
  removed: Resource,
  all: readonly Resource[],
  dialect: Dialect,
): readonly Dependent[] {
  const { id, realm } = dialect;
  const conditions = new Map<Resource, string>();

  /** Empty for a resource without dependents of the record. */
  function conditionOf(resource: Resource): string {
    // All dependents of a realm's records are in the realm.
    if (removed.parent === undefined) return `realm_id = ${realm('?1')} and realm_id = ${realm('?2')}`;
    const parts = referencingColumns(resource, all).flatMap(({ column, target }) => {
      const condition = conditions.get(target);
      if (target === removed) return [`${column} = ${id('?2')}`];
      return condition ? [`${column} in (select id from ${target.table} where ${condition})`] : [];
    });
    if (parts.length === 0) return '';
    return `realm_id = ${realm('?1')} and ${parts.length === 1 ? parts[0] : `(${parts.join(' or ')})`}`;
  }

  for (const resource of all) {
    const condition = resource === removed ? '' : conditionOf(resource);
    if (condition !== '') conditions.set(resource, condition);
  }
  return [...conditions]
    .map(([resource, condition]) => {
      const { parent, table } = resource;
      const losesChild = parent?.parent && parent !== removed && !conditions.has(parent);
      return {
        resource,
        select: `select ${columnsOf(resource).join(', ')} from ${table} where ${condition} limit ?3`,
        count: `select count(*) as n from ${table} where ${condition}`,
        touchedParent: losesChild ? parent : undefined,
      };
    })
    .toReversed();
}

/** The key columns below the realm and the columns of visible members. */
function columnsOf(resource: Resource): readonly string[] {
  const members = membersOf(resource).filter(isVisible);
  return [
    ...keyColumns(resource).slice(1),
    ...members.map(({ name }) => name),
    ...['created_at', 'updated_at', 'revision'],
  ];
}

/** The dependents of each resource, derived at its first deletion or count: no lookup needs them. */
export function openCascades(dialect: Dialect): (resource: Resource) => readonly Dependent[] {
  const cascades = new Map<Resource, readonly Dependent[]>();
  const derive = (removed: Resource) => dependentsOf(removed, RESOURCES, dialect);
  return (resource) => cascades.getOrInsertComputed(resource, derive);
}
