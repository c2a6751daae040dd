import type { Database } from 'bun:sqlite';
import type { Purged, Removal, Removed } from '../../directory/store.ts';
import { type Change, changeOf } from '../../domain/change.ts';
import type { Revision, Uuid } from '../../domain/id.ts';
import { LIMITS } from '../../domain/limits.ts';
import { type Key, keyColumns, parentKey, type Resource } from '../../domain/resource.ts';
import { RESOURCES } from '../../domain/resources.ts';
import { type Dependent, dependentsOf } from '../cascade.ts';
import type { Memories } from './memories.ts';
import { lazyStatements, type Prepared, runPatch } from './prepared.ts';
import type { Purges } from './purges.ts';
import type { Outcome } from './writer.ts';

/** What removing a record takes: two ways to do it, each a piece of work for the writer. */
export interface Removals {
  /** All at once. */
  remove(removal: Removal): Outcome<Removed>;
  /** One step of many. */
  purge(removal: Omit<Removal, 'seen'>): Outcome<Purged>;
  /** The texts and parameters that find what goes along. */
  dependents(resource: Resource): readonly Dependent[];
}

/** A record that goes. */
interface Victim {
  readonly resource: Resource;
  readonly key: Key;
  readonly revision: Revision;
  /** The kind of record above that stays. */
  readonly bereaves: Resource | undefined;
}

interface Rooms {
  readonly of: (resource: Resource) => Prepared;
  readonly purges: Purges;
  readonly memories: Memories;
}

/** What goes along with a record, found on one connection. */
function openCascades(db: Database) {
  const lazily = lazyStatements(db);
  const cascades = new Map(RESOURCES.map((resource) => [resource, dependentsOf(resource, RESOURCES)]));
  const dependents = (resource: Resource): readonly Dependent[] => cascades.get(resource) ?? [];

  /** What goes along, children before parents, at most `limit`. */
  function victimsOf(gone: Resource, key: Key, limit: number): readonly Victim[] {
    const found: Victim[] = [];
    for (const { resource, select, bereaves } of dependents(gone)) {
      const rows = lazily(select).all(key[0], key.at(-1) as Uuid, limit - found.length);
      const columns = keyColumns(resource);
      for (const row of rows) {
        const own = columns.map((column) => row[column]) as unknown as Key;
        found.push({ resource, key: own, revision: row.revision as Revision, bereaves });
      }
      if (found.length >= limit) break;
    }
    return found;
  }

  return { dependents, victimsOf };
}

export function openRemovals(db: Database, { of, purges, memories }: Rooms): Removals {
  const { dependents, victimsOf } = openCascades(db);
  const withdraw = db.prepare('delete from client_realm where realm_id = ?');
  const tellAccess = db.prepare('update instance set access_version = access_version + 1');

  /** The rights to a realm end with it: one that is brought along later under its identifier is another one. */
  function withdrawRights(realm: Uuid): void {
    if (withdraw.run(realm).changes > 0) tellAccess.run();
  }

  function itself({ resource, key }: Pick<Removal, 'resource' | 'key'>, revision: Revision): Victim {
    return { resource, key, revision, bereaves: resource.parent?.parent && resource.parent };
  }

  /** Removes the rows in their order, then touches the users that lost one and stay. Answers all of their changes. */
  function take(victims: readonly Victim[], by: Omit<Removal, 'seen'>): Change[] {
    const changes: Change[] = [];
    const areMarked = purges.areUnderWay();
    for (const { resource, key, revision } of victims) {
      of(resource).remove.run(...key);
      if (areMarked) purges.end(resource, key);
      if (!resource.parent) withdrawRights(key[0]);
      if (resource.foreignKey === 'user_id') memories.forgetUser(key[0], key.at(-1) as Uuid, ALL);
      changes.push(changeOf(resource, 'deleted', { key, revision }, by.origin));
    }
    changes.push(...touch(victims, by));
    return changes;
  }

  function touch(victims: readonly Victim[], { origin, mintRevision }: Omit<Removal, 'seen'>): Change[] {
    const bereft = new Map<string, { readonly resource: Resource; readonly key: Key }>();
    for (const { key, bereaves } of victims) {
      const above = parentKey(key);
      if (bereaves && above) bereft.set(above.join(), { resource: bereaves, key: above });
    }
    return [...bereft.values()].flatMap(({ resource, key }) => {
      const patch = { members: {}, revision: mintRevision(), at: origin.at };
      const touched = runPatch(of(resource), { op: 'patch', resource, key, patch });
      const moved = { key, revision: patch.revision, members: ['updated_at'] };
      // One that is being purged is absent for everybody, and goes soon.
      return touched ? [changeOf(resource, 'updated', moved, origin)] : [];
    });
  }

  function remove(removal: Removal): Outcome<Removed> {
    const { resource, key, seen } = removal;
    const held = of(resource).selectHeld.get(...key);
    if (!held || purges.has(resource, key)) return nothing('absent');
    if (held.kept === 1) return nothing('kept');
    const below = victimsOf(resource, key, LIMITS.cascadeRecordsMax + 1);
    if (below.length > LIMITS.cascadeRecordsMax) return nothing('crowded');
    if (seen !== undefined && seen !== held.revision) return nothing('stale');
    const changes = take([...below, itself(removal, held.revision)], removal);
    if (!resource.parent) memories.forgetRealm(key[0], ALL);
    return { value: { kind: 'removed' }, keep: true, changes };
  }

  function purge(removal: Omit<Removal, 'seen'>): Outcome<Purged> {
    const { resource, key, origin } = removal;
    const held = of(resource).selectHeld.get(...key);
    if (!held) return nothing('absent');
    if (held.kept === 1) return nothing('kept');
    purges.begin(resource, key, origin.at);
    const victims = victimsOf(resource, key, LIMITS.cascadeRecordsMax);
    const isDone = victims.length < LIMITS.cascadeRecordsMax && isForgotten(resource, key);
    const going = isDone ? [...victims, itself(removal, held.revision)] : victims;
    const changes = take(going, removal);
    return { value: { kind: 'purged', records: going.length, isDone }, keep: true, changes };
  }

  /** Forgets some of what is remembered about a realm or user. Answers whether that was all: a step ends somewhere. */
  function isForgotten(resource: Resource, key: Key): boolean {
    const most = LIMITS.cascadeRecordsMax;
    if (!resource.parent) return memories.forgetRealm(key[0], most) < most;
    return resource.foreignKey !== 'user_id' || memories.forgetUser(key[0], key.at(-1) as Uuid, most) < most;
  }

  return { remove, purge, dependents };
}

/** As many as there are. */
const ALL = Number.MAX_SAFE_INTEGER;

function nothing<K extends string>(kind: K): Outcome<{ readonly kind: K }> {
  return { value: { kind }, keep: false };
}
