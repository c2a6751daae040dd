import type { PurgeResult, Removal, RemoveResult } from '../../directory/store.ts';
import { changeOf } from '../../domain/change.ts';
import type { Uuid } from '../../domain/id.ts';
import { LIMITS } from '../../domain/limits.ts';
import { type AnyRecord, type Key, keyColumns, parentKey, type Resource } from '../../domain/resource.ts';
import { type ChangeEntry, entryOf } from '../audit/entry.ts';
import { TOUCH_ACCESS } from '../auth/access.ts';
import type { IdempotencyStore } from '../idempotency/idempotency_store.ts';
import { all, execute, executeAll, first, type Work, type WorkResult } from '../transaction_work.ts';
import { CASCADES } from './cascade.ts';
import type { Purges } from './purges.ts';
import { runPatch } from './row_write.ts';
import type { Statements } from './statements.ts';

/** Removes records: at once, or step by step. */
export interface Removals {
  /** All at once. */
  remove(removal: Removal): Work<WorkResult<RemoveResult>>;
  /** One step of many. */
  purge(removal: Omit<Removal, 'expectedRevision'>): Work<WorkResult<PurgeResult>>;
}

interface RemovalDeps {
  readonly of: (resource: Resource) => Statements;
  readonly purges: Purges;
  readonly idempotency: IdempotencyStore;
}

/** A record to be removed. */
interface RemovalTarget {
  readonly resource: Resource;
  readonly key: Key;
  /** As callers may see it. */
  readonly record: AnyRecord;
  /** The kind of the record above, if it stays and is touched. */
  readonly touchedParent: Resource | undefined;
}

/** The stored record, and whether its description protects it from removal. */
type RemovalRow = Readonly<Record<string, unknown>> & { readonly kept: number };

const REVOKE = 'delete from client_realm where realm_id = ?';

/** The rights to a realm end with it: one that is brought along later under its identifier is another one. */
function* revokeRealmRights(realm: Uuid): Work<void> {
  if ((yield* execute(REVOKE, realm)) > 0) yield* execute(TOUCH_ACCESS);
}

/** What goes along with a record, children before parents, at most `limit`. */
function* targetsOf(
  { resource: gone, key }: Pick<Removal, 'resource' | 'key'>,
  limit: number,
  of: RemovalDeps['of'],
): Work<readonly RemovalTarget[]> {
  const found: RemovalTarget[] = [];
  for (const { resource, select, touchedParent } of CASCADES.get(gone) ?? []) {
    const columns = keyColumns(resource);
    for (const row of yield* all(select, key[0], key.at(-1) as Uuid, limit - found.length)) {
      const own = columns.map((column) => row[column]) as unknown as Key;
      found.push({ resource, key: own, record: of(resource).decode(row), touchedParent });
    }
    if (found.length >= limit) break;
  }
  return found;
}

function targetOf(
  { resource, key }: Pick<Removal, 'resource' | 'key'>,
  { kept, ...row }: RemovalRow,
  of: RemovalDeps['of'],
): RemovalTarget {
  const record = of(resource).decode(row);
  return { resource, key, record, touchedParent: resource.parent?.parent && resource.parent };
}

export function openRemovals({ of, purges, idempotency }: RemovalDeps): Removals {
  /** Removes the rows in their order, then touches the users that lost one and stay. Returns the log entries. */
  function* removeRows(
    targets: readonly RemovalTarget[],
    by: Omit<Removal, 'expectedRevision'>,
  ): Work<ChangeEntry[]> {
    const entries: ChangeEntry[] = [];
    const areMarked = yield* purges.areUnderWay();
    yield* executeAll(targets.map(({ resource, key }) => ({ text: of(resource).remove, values: key })));
    for (const { resource, key, record } of targets) {
      if (areMarked) yield* purges.end(resource, key);
      if (!resource.parent) yield* revokeRealmRights(key[0]);
      const change = changeOf(resource, 'deleted', { key, revision: record.revision }, by.origin);
      entries.push(by.isErasure ? { change } : entryOf(change, resource, { before: record }));
    }
    entries.push(...(yield* touchParents(targets, by)));
    return entries;
  }

  function* touchParents(
    targets: readonly RemovalTarget[],
    { origin, mintRevision }: Omit<Removal, 'expectedRevision'>,
  ): Work<ChangeEntry[]> {
    const parents = new Map<string, { readonly resource: Resource; readonly key: Key }>();
    for (const { key, touchedParent } of targets) {
      const above = parentKey(key);
      if (touchedParent && above) parents.set(above.join(), { resource: touchedParent, key: above });
    }
    const entries: ChangeEntry[] = [];
    for (const { resource, key } of parents.values()) {
      const patch = { members: {}, revision: mintRevision(), at: origin.at };
      const touched = yield* runPatch({ op: 'patch', resource, key, patch }, of(resource));
      // One that is being purged is absent for everybody, and goes soon.
      if (touched)
        entries.push({ change: changeOf(resource, 'updated', { key, revision: patch.revision }, origin) });
    }
    return entries;
  }

  return {
    *remove(removal) {
      const { resource, key, expectedRevision } = removal;
      const stored = yield* first<RemovalRow>(of(resource).selectForRemoval, ...key);
      if (!stored) return refused('not_found');
      if ((yield* purges.areUnderWay()) && (yield* purges.isAbsent(resource, key)))
        return refused('not_found');
      if (stored.kept === 1) return refused('protected');
      const below = yield* targetsOf(removal, ROWS_MAX + 1, of);
      const rows = yield* idempotency.countOwned(resource, key, ROWS_MAX + 1);
      if (below.length > ROWS_MAX || rows > ROWS_MAX) return { ...refused('too_many'), rows: ROWS_MAX };
      if (expectedRevision !== undefined && expectedRevision !== stored.revision)
        return { ...refused('revision_mismatch'), rows: below.length + rows };
      const entries = yield* removeRows([...below, targetOf(removal, stored, of)], removal);
      yield* idempotency.deleteOwned(resource, key, ROWS_MAX);
      return { value: { kind: 'removed' }, keep: true, entries, rows };
    },

    *purge(removal) {
      const { resource, key, origin } = removal;
      const stored = yield* first<RemovalRow>(of(resource).selectForRemoval, ...key);
      if (!stored) return refused('not_found');
      if (stored.kept === 1) return refused('protected');
      yield* purges.begin(resource, key, origin.at);
      const targets = yield* targetsOf(removal, ROWS_MAX, of);
      // Idempotency records are deleted last; from the first step on they are no longer returned.
      const deleted = targets.length < ROWS_MAX ? yield* idempotency.deleteOwned(resource, key, ROWS_MAX) : 0;
      const isDone = targets.length < ROWS_MAX && deleted < ROWS_MAX;
      const going = isDone ? [...targets, targetOf(removal, stored, of)] : targets;
      const entries = yield* removeRows(going, removal);
      const rows = deleted + (yield* idempotency.deleteExpired(origin.at, ROWS_MAX));
      return { value: { kind: 'purged', records: going.length, isDone }, keep: true, entries, rows };
    },
  };
}

/** Records in one commit, and answers as well. */
const ROWS_MAX = LIMITS.cascadeRecordsMax;

function refused<K extends string>(kind: K): WorkResult<{ readonly kind: K }> {
  return { value: { kind }, keep: false };
}
