import type { Database } from 'bun:sqlite';
import type { Purged, Removal, Removed } from '../../directory/store.ts';
import { type Change, changeOf } from '../../domain/change.ts';
import type { Revision, Uuid } from '../../domain/id.ts';
import { LIMITS } from '../../domain/limits.ts';
import { type Key, keyColumns, parentKey, type Resource } from '../../domain/resource.ts';
import { RESOURCES } from '../../domain/resources.ts';
import { dependentsOf } from '../cascade.ts';
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

  /** What goes along, children before parents, at most `limit`. */
  return function victimsOf(gone: Resource, key: Key, limit: number): readonly Victim[] {
    const found: Victim[] = [];
    for (const { resource, select, bereaves } of cascades.get(gone) ?? []) {
      const rows = lazily(select).all(key[0], key.at(-1) as Uuid, limit - found.length);
      const columns = keyColumns(resource);
      for (const row of rows) {
        const own = columns.map((column) => row[column]) as unknown as Key;
        found.push({ resource, key: own, revision: row.revision as Revision, bereaves });
      }
      if (found.length >= limit) break;
    }
    return found;
  };
}

export function openRemovals(db: Database, { of, purges, memories }: Rooms): Removals {
  const victimsOf = openCascades(db);
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
      // One that is being purged is absent for everybody, and goes soon.
      return touched ? [changeOf(resource, 'updated', { key, revision: patch.revision }, origin)] : [];
    });
  }

  function remove(removal: Removal): Outcome<Removed> {
    const { resource, key, seen } = removal;
    const held = of(resource).selectHeld.get(...key);
    if (!held || (purges.areUnderWay() && purges.isAbsent(resource, key))) return nothing('absent');
    if (held.kept === 1) return nothing('kept');
    const below = victimsOf(resource, key, MOST + 1);
    const rows = memories.count(resource, key, MOST + 1);
    if (below.length > MOST || rows > MOST) return { ...nothing('crowded'), rows: MOST };
    if (seen !== undefined && seen !== held.revision)
      return { ...nothing('stale'), rows: below.length + rows };
    const changes = take([...below, itself(removal, held.revision)], removal);
    memories.forget(resource, key, MOST);
    return { value: { kind: 'removed' }, keep: true, changes, rows };
  }

  function purge(removal: Omit<Removal, 'seen'>): Outcome<Purged> {
    const { resource, key, origin } = removal;
    const held = of(resource).selectHeld.get(...key);
    if (!held) return nothing('absent');
    if (held.kept === 1) return nothing('kept');
    purges.begin(resource, key, origin.at);
    const victims = victimsOf(resource, key, MOST);
    // What is remembered goes last, some in each step as well: from the first one on nobody is told of it.
    const forgotten = victims.length < MOST ? memories.forget(resource, key, MOST) : 0;
    const isDone = victims.length < MOST && forgotten < MOST;
    const going = isDone ? [...victims, itself(removal, held.revision)] : victims;
    const changes = take(going, removal);
    const rows = forgotten + memories.sweep(origin.at, MOST);
    return { value: { kind: 'purged', records: going.length, isDone }, keep: true, changes, rows };
  }

  return { remove, purge };
}

/** Records in one commit, and answers as well. */
const MOST = LIMITS.cascadeRecordsMax;

function nothing<K extends string>(kind: K): Outcome<{ readonly kind: K }> {
  return { value: { kind }, keep: false };
}
