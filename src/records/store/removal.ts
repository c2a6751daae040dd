import { TOUCH_ACCESS } from '../../access/store/access_version.ts';
import { entryOf } from '../../log/store/entry.ts';
import type { Uuid } from '../../model/id.ts';
import { LIMITS } from '../../model/limits.ts';
import { type ChangeEntry, changeOf } from '../../model/log/change.ts';
import { type AnyRecord, type Key, parentKey, type Resource } from '../../model/resource.ts';
import type { PageRemovalResult, Removal, RemovalRefusal } from '../../model/store.ts';
import { deleteBudgets } from '../../sign_in/store/budgets.ts';
import type { Dialect } from '../../sql/dialect.ts';
import { all, execute, first, type Work, type WorkResult } from '../../sql/transaction_work.ts';
import { openCascades } from './cascade.ts';
import { touchRow } from './row_write.ts';
import type { Statements } from './statements.ts';

export type Removals = ReturnType<typeof openRemovals>;

type Of = (resource: Resource) => Statements;

/** A record to delete. */
interface RemovalTarget {
  readonly resource: Resource;
  readonly key: Key;
  /** With its visible members. */
  readonly record: AnyRecord;
  /** The parent resource, if its record stays and gets a new `updated_at`. */
  readonly touchedParent: Resource | undefined;
}

/** The stored record, and whether its description protects it from removal. */
type RemovalRow = Readonly<Record<string, unknown>> & { readonly is_protected: number };

const REVOKE = 'delete from client_realm where realm_id = ?';

/** Deletes the rights to a realm with it: a realm that is imported later with the same ID is another one. */
function* revokeRealmRights(realm: Uuid): Work<void> {
  if ((yield* execute(REVOKE, realm)) > 0) yield* execute(TOUCH_ACCESS);
}

/** The dependents of a record, children before parents, at most `limit`. */
export function* readDependents(
  { resource: removed, key }: Pick<Removal, 'resource' | 'key'>,
  limit: number,
  of: Of,
  cascadeOf: ReturnType<typeof openCascades>,
): Work<readonly RemovalTarget[]> {
  const found: RemovalTarget[] = [];
  for (const { resource, select, touchedParent } of cascadeOf(removed)) {
    for (const row of yield* all(select, key[0], key.at(-1) as Uuid, limit - found.length)) {
      const { key: below, record } = of(resource).decodeKeyed(row);
      found.push({ resource, key: [key[0], ...below] as unknown as Key, record, touchedParent });
    }
    if (found.length >= limit) break;
  }
  return found;
}

function targetOf(
  { resource, key }: Pick<Removal, 'resource' | 'key'>,
  { is_protected: _, ...row }: RemovalRow,
  of: Of,
): RemovalTarget {
  const record = of(resource).decode(row);
  return { resource, key, record, touchedParent: resource.parent?.parent && resource.parent };
}

/** The IDs of each resource in the realm of all targets, children before parents. */
function groupsOf(targets: readonly RemovalTarget[]): readonly [Resource, Uuid, readonly Uuid[]][] {
  return [...Map.groupBy(targets, (target) => target.resource)].map(([resource, group]) => {
    const keys = group.map(({ key }) => key);
    return [resource, (keys[0] as Key)[0], keys.map((key) => key.at(-1) as Uuid)];
  });
}

/** Updates the parents that lost a child and stay. Returns their log entries. */
function* touchParents(
  targets: readonly RemovalTarget[],
  { origin, mintRevision }: Omit<Removal, 'expectedRevision'>,
  of: Of,
): Work<ChangeEntry[]> {
  const parents = new Map<string, { readonly resource: Resource; readonly key: Key }>();
  for (const { key, touchedParent } of targets) {
    const above = parentKey(key);
    if (touchedParent && above) parents.set(above.join(), { resource: touchedParent, key: above });
  }
  const entries: ChangeEntry[] = [];
  for (const { resource, key } of parents.values()) {
    const patch = { members: {}, revision: mintRevision(), at: origin.at };
    if (yield* touchRow({ resource, key, patch }, of))
      entries.push({ change: changeOf(resource, 'updated', { key, revision: patch.revision }, origin) });
  }
  return entries;
}

/**
 * Deletes at most ROWS_MAX sign-in budgets of a realm with it. There may be more, because anybody can make budgets; the sweep deletes
 * those that are left once they are full.
 */
function* deleteOwned({ resource, key }: Pick<Removal, 'resource' | 'key'>): Work<number> {
  return resource.parent ? 0 : yield* deleteBudgets(key[0], ROWS_MAX);
}

/** Deletes records: in one commit, or in pages. */
export function openRemovals(of: Of, dialect: Dialect) {
  const { among } = dialect.lists;
  const cascadeOf = openCascades(dialect);

  /** Deletes the rows in their order, and updates the users that lost one and stay. Returns the log entries. */
  function* removeRows(
    targets: readonly RemovalTarget[],
    by: Omit<Removal, 'expectedRevision'>,
  ): Work<ChangeEntry[]> {
    const entries: ChangeEntry[] = [];
    for (const [resource, realm, ids] of groupsOf(targets))
      yield* execute(of(resource).removeAmong, realm, among(ids));
    for (const { resource, key, record } of targets) {
      if (!resource.parent) yield* revokeRealmRights(key[0]);
      const change = changeOf(resource, 'deleted', { key, revision: record.revision }, by.origin);
      entries.push(by.isErasure ? { change } : entryOf(change, resource, { before: record }));
    }
    entries.push(...(yield* touchParents(targets, by, of)));
    return entries;
  }

  return {
    *remove(removal: Removal): Work<WorkResult<{ readonly kind: 'removed' } | RemovalRefusal>> {
      const { resource, key, expectedRevision } = removal;
      const stored = yield* first<RemovalRow>(of(resource).selectForRemoval, ...key);
      if (!stored) return refused('not_found');
      if (stored.is_protected === 1) return refused('protected');
      const below = yield* readDependents(removal, ROWS_MAX + 1, of, cascadeOf);
      if (below.length > ROWS_MAX) return { ...refused('too_many'), rows: ROWS_MAX };
      if (expectedRevision !== undefined && expectedRevision !== stored.revision)
        return { ...refused('revision_mismatch'), rows: below.length };
      const entries = yield* removeRows([...below, targetOf(removal, stored, of)], removal);
      const rows = yield* deleteOwned(removal);
      return { value: { kind: 'removed' }, keep: true, entries, rows };
    },

    *removePage(removal: Omit<Removal, 'expectedRevision'>): Work<WorkResult<PageRemovalResult>> {
      const { resource, key } = removal;
      const stored = yield* first<RemovalRow>(of(resource).selectForRemoval, ...key);
      if (!stored) return refused('not_found');
      if (stored.is_protected === 1) return refused('protected');
      const targets = yield* readDependents(removal, ROWS_MAX, of, cascadeOf);
      const isDone = targets.length < ROWS_MAX;
      const rows = isDone ? yield* deleteOwned(removal) : 0;
      const rowsToRemove = isDone ? [...targets, targetOf(removal, stored, of)] : targets;
      const entries = yield* removeRows(rowsToRemove, removal);
      const value = { kind: 'removed', records: rowsToRemove.length, isDone } as const;
      return { value, keep: true, entries, rows };
    },
  };
}

/** Maximum records, and maximum budgets that go with them, in one commit. */
const ROWS_MAX = LIMITS.cascadeRecordsMax;

function refused<K extends string>(kind: K): WorkResult<{ readonly kind: K }> {
  return { value: { kind }, keep: false };
}
