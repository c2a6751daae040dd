import type { KeyedRecord, Store } from '../../directory/store.ts';
import type { Clock, Uuid } from '../../domain/id.ts';
import { LIMITS } from '../../domain/limits.ts';
import type { Principal } from '../../domain/principal.ts';
import { realm as realms } from '../../domain/resources.ts';

/** Searches one realm. It returns one record more than the page holds, if there are as many. */
export type SearchRealm = (realm: Uuid) => Promise<readonly KeyedRecord[]>;

/** Realms that are searched concurrently. */
const REALMS_AT_ONCE = 8;
/** Milliseconds of searching without yielding to the event loop. */
const TURN_MS = 4;

/** The realms that a token may read, ordered by ID, after one of them. */
export async function* readableRealms(
  principal: Principal,
  after: Uuid | undefined,
  store: Pick<Store, 'list'>,
): AsyncGenerator<readonly Uuid[]> {
  if (principal.realms !== '*') {
    yield [...principal.realms].sort().filter((each) => each > (after ?? ''));
    return;
  }
  let last = after;
  for (;;) {
    const listed = await store.list(realms, [], {
      filter: [],
      sort: { by: 'id', isDescending: false },
      page: {
        kind: 'after',
        after: last === undefined ? undefined : { at: undefined, id: last },
        limit: LIMITS.pageRecordsMax,
      },
    });
    const ids = listed?.items.map(({ record }) => record.id) ?? [];
    yield ids;
    if (!listed?.hasMore) return;
    last = ids.at(-1);
  }
}

export interface RealmSearchResult {
  readonly items: readonly KeyedRecord[];
  readonly searched: number;
  /** The realm to continue after; null if all were searched. */
  readonly next: Uuid | null;
  /** The last realm searched, if it has more matches than fit; otherwise null. */
  readonly cut: Uuid | null;
}

/** Searches one realm after another until the page is full or the budget is spent. */
export async function searchRealmByRealm(
  order: AsyncIterable<readonly Uuid[]>,
  seek: SearchRealm,
  limit: number,
  { monotonic }: Pick<Clock, 'monotonic'>,
): Promise<RealmSearchResult> {
  const items: KeyedRecord[] = [];
  const startedAt = monotonic();
  let turnAt = startedAt;
  let searched = 0;
  let last: Uuid | null = null;
  let cut: Uuid | null = null;

  /** Collects the matches of some realms in order. Realms after the one that fills the page count as not searched. */
  function collect(group: readonly Uuid[], found: readonly (readonly KeyedRecord[])[]): boolean {
    for (const [place, each] of found.entries()) {
      if (items.length >= limit) return false;
      const remaining = limit - items.length;
      items.push(...each.slice(0, remaining));
      searched += 1;
      last = group[place] ?? last;
      if (each.length > remaining) cut = last;
    }
    return true;
  }

  const isBudgetSpent = () =>
    searched >= LIMITS.searchRealmsMax || monotonic() - startedAt >= LIMITS.searchMsMax;

  for await (const group of inGroups(order)) {
    if (searched > 0 && isBudgetSpent()) return { items, searched, next: last, cut };
    if (!collect(group, await Promise.all(group.map(seek)))) return { items, searched, next: last, cut };
    if (monotonic() - turnAt < TURN_MS) continue;
    await Bun.sleep(0);
    turnAt = monotonic();
  }
  return { items, searched, next: null, cut };
}

async function* inGroups(order: AsyncIterable<readonly Uuid[]>): AsyncGenerator<readonly Uuid[]> {
  for await (const page of order) {
    for (let start = 0; start < page.length; start += REALMS_AT_ONCE)
      yield page.slice(start, start + REALMS_AT_ONCE);
  }
}
