import type { Purged, Removal, Removed } from '../../directory/store.ts';
import { changeOf } from '../../domain/change.ts';
import type { Uuid } from '../../domain/id.ts';
import { LIMITS } from '../../domain/limits.ts';
import { type AnyRecord, type Key, keyColumns, parentKey, type Resource } from '../../domain/resource.ts';
import { type Entry, entryOf } from '../audit/entry.ts';
import { TOUCH_ACCESS } from '../auth/access.ts';
import type { Memories } from '../idempotency/idempotency_store.ts';
import { all, first, type Outcome, run, runAll, type Work } from '../work.ts';
import { CASCADES } from './cascade.ts';
import type { Purges } from './purges.ts';
import type { Statements } from './statements.ts';
import { runPatch } from './verdicts.ts';

/** What removing a record takes: two ways to do it. */
export interface Removals {
  /** All at once. */
  remove(removal: Removal): Work<Outcome<Removed>>;
  /** One step of many. */
  purge(removal: Omit<Removal, 'seen'>): Work<Outcome<Purged>>;
}

interface Rooms {
  readonly of: (resource: Resource) => Statements;
  readonly purges: Purges;
  readonly memories: Memories;
}

/** A record that goes. */
interface Victim {
  readonly resource: Resource;
  readonly key: Key;
  /** As callers may see it. */
  readonly record: AnyRecord;
  /** The kind of record above that stays. */
  readonly bereaves: Resource | undefined;
}

/** What is there of a record that is to go, and whether it is kept. */
type Held = Readonly<Record<string, unknown>> & { readonly kept: number };

const WITHDRAW = 'delete from client_realm where realm_id = ?';

/** The rights to a realm end with it: one that is brought along later under its identifier is another one. */
function* withdrawRights(realm: Uuid): Work<void> {
  if ((yield* run(WITHDRAW, realm)) > 0) yield* run(TOUCH_ACCESS);
}

/** What goes along with a record, children before parents, at most `limit`. */
function* victimsOf(
  { resource: gone, key }: Pick<Removal, 'resource' | 'key'>,
  limit: number,
  of: Rooms['of'],
): Work<readonly Victim[]> {
  const found: Victim[] = [];
  for (const { resource, select, bereaves } of CASCADES.get(gone) ?? []) {
    const columns = keyColumns(resource);
    for (const row of yield* all(select, key[0], key.at(-1) as Uuid, limit - found.length)) {
      const own = columns.map((column) => row[column]) as unknown as Key;
      found.push({ resource, key: own, record: of(resource).decode(row), bereaves });
    }
    if (found.length >= limit) break;
  }
  return found;
}

export function openRemovals({ of, purges, memories }: Rooms): Removals {
  function itself({ resource, key }: Pick<Removal, 'resource' | 'key'>, { kept, ...row }: Held): Victim {
    const record = of(resource).decode(row);
    return { resource, key, record, bereaves: resource.parent?.parent && resource.parent };
  }

  /** Removes the rows in their order, then touches the users that lost one and stay. Answers what the log tells of it. */
  function* take(victims: readonly Victim[], by: Omit<Removal, 'seen'>): Work<Entry[]> {
    const entries: Entry[] = [];
    const areMarked = yield* purges.areUnderWay();
    yield* runAll(victims.map(({ resource, key }) => ({ text: of(resource).remove, values: key })));
    for (const { resource, key, record } of victims) {
      if (areMarked) yield* purges.end(resource, key);
      if (!resource.parent) yield* withdrawRights(key[0]);
      const change = changeOf(resource, 'deleted', { key, revision: record.revision }, by.origin);
      entries.push(by.isErasure ? { change } : entryOf(change, resource, { before: record }));
    }
    entries.push(...(yield* touch(victims, by)));
    return entries;
  }

  function* touch(
    victims: readonly Victim[],
    { origin, mintRevision }: Omit<Removal, 'seen'>,
  ): Work<Entry[]> {
    const bereft = new Map<string, { readonly resource: Resource; readonly key: Key }>();
    for (const { key, bereaves } of victims) {
      const above = parentKey(key);
      if (bereaves && above) bereft.set(above.join(), { resource: bereaves, key: above });
    }
    const entries: Entry[] = [];
    for (const { resource, key } of bereft.values()) {
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
      const { resource, key, seen } = removal;
      const held = yield* first<Held>(of(resource).selectHeld, ...key);
      if (!held) return nothing('absent');
      if ((yield* purges.areUnderWay()) && (yield* purges.isAbsent(resource, key))) return nothing('absent');
      if (held.kept === 1) return nothing('kept');
      const below = yield* victimsOf(removal, MOST + 1, of);
      const rows = yield* memories.count(resource, key, MOST + 1);
      if (below.length > MOST || rows > MOST) return { ...nothing('crowded'), rows: MOST };
      if (seen !== undefined && seen !== held.revision)
        return { ...nothing('stale'), rows: below.length + rows };
      const entries = yield* take([...below, itself(removal, held)], removal);
      yield* memories.forget(resource, key, MOST);
      return { value: { kind: 'removed' }, keep: true, entries, rows };
    },

    *purge(removal) {
      const { resource, key, origin } = removal;
      const held = yield* first<Held>(of(resource).selectHeld, ...key);
      if (!held) return nothing('absent');
      if (held.kept === 1) return nothing('kept');
      yield* purges.begin(resource, key, origin.at);
      const victims = yield* victimsOf(removal, MOST, of);
      // What is remembered goes last, some in each step as well: from the first one on nobody is told of it.
      const forgotten = victims.length < MOST ? yield* memories.forget(resource, key, MOST) : 0;
      const isDone = victims.length < MOST && forgotten < MOST;
      const going = isDone ? [...victims, itself(removal, held)] : victims;
      const entries = yield* take(going, removal);
      const rows = forgotten + (yield* memories.sweep(origin.at, MOST));
      return { value: { kind: 'purged', records: going.length, isDone }, keep: true, entries, rows };
    },
  };
}

/** Records in one commit, and answers as well. */
const MOST = LIMITS.cascadeRecordsMax;

function nothing<K extends string>(kind: K): Outcome<{ readonly kind: K }> {
  return { value: { kind }, keep: false };
}
