import type { Clock, Uuid } from '../../model/id.ts';
import { LIMITS } from '../../model/limits.ts';
import type { SequencedChange } from '../../model/log/change.ts';
import { pagesOf } from '../../model/pages.ts';
import type { Store } from '../../model/store.ts';
import type { FeedStore, RealmHead } from '../store/feed.ts';
import type { SearchPosition } from './cursor.ts';

/** What a change must match. An absent member matches every change; `from` and `to` are RFC 3339. */
export type ChangeConditions = {
  readonly [name in 'kind' | 'event' | 'actor' | 'user' | 'record' | 'from' | 'to']?: string | undefined;
};

interface ChangeSearch extends ChangeConditions {
  /** All by default. */
  readonly realms: readonly Uuid[] | undefined;
  readonly position?: SearchPosition | undefined;
  readonly limit: number;
}

interface SearchDeps {
  readonly store: Pick<Store, 'changes'>;
  readonly feed: FeedStore;
  readonly loopBudget: { readonly turn: () => Promise<void> };
  readonly clock: Pick<Clock, 'monotonic'>;
}

/**
 * Searches changes backwards. `isLimited`: it ends after LIMITS.changesSearchedMax changes or LIMITS.changesSearchMsMax. `next`: where to
 * continue; undefined if all changes were searched.
 */
export async function searchChanges(deps: SearchDeps, search: ChangeSearch, isLimited: boolean) {
  const endsAt = deps.clock.monotonic() + LIMITS.changesSearchMsMax;
  const changes: SequencedChange[] = [];
  let searched = 0;
  for await (const { change, at } of changesBackwards(deps, search)) {
    const isSpent =
      searched >= LIMITS.changesSearchedMax || (searched > 0 && deps.clock.monotonic() > endsAt);
    if (changes.length === search.limit || (isLimited && isSpent))
      return { changes, next: { ...change, at } };
    if (isMatch(change, search)) changes.push(change);
    searched += 1;
  }
  return { changes, next: undefined };
}

/** The changes of a realm that are not searched yet. */
interface UnsearchedRealm {
  readonly realm: Uuid;
  /** None of them counts as later. */
  at: number;
  /** The newest of them, once it is read. */
  next?: SequencedChange | undefined;
  readonly older: AsyncIterator<SequencedChange, undefined>;
}

/**
 * Changes by time, then realm, then sequence number, backwards. Clocks differ: `at` is the time as of which a change counts, which is
 * no later than that of the changes after it in its realm.
 */
async function* changesBackwards(deps: SearchDeps, search: ChangeSearch) {
  const pages = pagesOf<RealmHead>(async (last) => {
    await deps.loopBudget.turn();
    return deps.feed.heads(last?.realm, LIMITS.exportPageRecords, search.realms);
  });
  const heads = (await Array.fromAsync(pages)).flat();
  const realms = heads.map((head) => openRealm(head, deps, search)).sort(inSearchOrder);
  const endsAt = Date.parse(search.from ?? '') - LIMITS.clockLeewayMs;
  for (let first = realms.shift(); first && !(first.at < endsAt); first = realms.shift()) {
    const { at, older } = first;
    const change = first.next ?? (await older.next()).value;
    if (!change) continue;
    first.next = change;
    first.at = Math.min(at, change.at);
    if (first.at === at) {
      yield { change, at };
      first.next = undefined;
    }
    const place = realms.findIndex((other) => inSearchOrder(first as UnsearchedRealm, other) < 0);
    realms.splice(place < 0 ? realms.length : place, 0, first);
  }
}

function inSearchOrder(one: UnsearchedRealm, other: UnsearchedRealm): number {
  return other.at - one.at || (one.realm < other.realm ? -1 : 1);
}

function openRealm(head: RealmHead, deps: SearchDeps, search: ChangeSearch): UnsearchedRealm {
  const { realm } = head;
  const { position, to } = search;
  if (realm === position?.realm)
    return { realm, at: position.at, older: changesOfRealm(position, false, deps, search) };
  const latest = position?.at ?? (to === undefined ? head.at : Date.parse(to));
  const at = Math.min(head.at, position && realm < position.realm ? latest - 1 : latest);
  return { realm, at, older: changesOfRealm({ ...head, at }, at < head.at, deps, search) };
}

/** The changes of a realm up to a position, newest first. `isLater`: those that count as later than its time are left out. */
async function* changesOfRealm(
  position: SearchPosition,
  isLater: boolean,
  deps: SearchDeps,
  { user, realms }: ChangeSearch,
): AsyncGenerator<SequencedChange, undefined> {
  const { realm, seq, at } = position;
  const end = isLater ? await endOf(deps, position) : seq + 1;
  let size: number = LIMITS.pageRecordsMax;
  const pages = pagesOf<SequencedChange>(async (last) => {
    const before = last?.seq ?? end;
    // An index has the changes of a user in one realm.
    if (user && realms?.length === 1) return deps.feed.userChanges({ realm, id: user as Uuid }, before, size);
    const changes = await deps.store.changes(realm, Math.max(before - 1 - size, 0), size);
    return changes.filter(({ seq }) => seq < before).reverse();
  });
  let skips = isLater;
  for await (const page of pages) {
    for (const change of page) {
      skips &&= change.at > at;
      if (!skips) yield change;
    }
    size = Math.min(size * 4, LIMITS.exportPageRecords);
    await deps.loopBudget.turn();
  }
}

/** Finds where all changes are later than a time, by bisection from the newest one on: most realms have few later ones. */
async function endOf({ store }: SearchDeps, { realm, seq, at }: SearchPosition): Promise<number> {
  let [earlier, later] = [0, seq + 1];
  for (let step = 1; later - earlier > 1; step *= 2) {
    const middle = Math.max(later - step, Math.ceil((earlier + later) / 2));
    const [change] = await store.changes(realm, middle - 1, 1);
    if (change && change.at > at + LIMITS.clockLeewayMs) later = middle;
    else earlier = middle;
  }
  return later;
}

function isMatch(change: SequencedChange, conditions: ChangeConditions): boolean {
  const { kind, event, actor, user, record, from, to } = conditions;
  return (
    (kind === undefined || change.event.startsWith(`${kind}.`)) &&
    (event === undefined || change.event.endsWith(`.${event}`)) &&
    (actor === undefined || change.actor === actor) &&
    (user === undefined || change.user === user) &&
    (record === undefined || change.id === record) &&
    (from === undefined || change.at >= Date.parse(from)) &&
    (to === undefined || change.at <= Date.parse(to))
  );
}
