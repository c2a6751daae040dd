import { describe, expect, test } from 'bun:test';
import type { KeyedRecord } from '../../src/directory/store.ts';
import type { Revision, Uuid } from '../../src/domain/id.ts';
import { LIMITS } from '../../src/domain/limits.ts';
import { searchRealmByRealm } from '../../src/http/operations/search_realm_by_realm.ts';

/** The budget of a search of many realms, with a clock that each realm advances. */

const GROUP = 8;

interface SearchOptions {
  readonly realms: number;
  /** Records of each realm. */
  readonly each?: number;
  readonly limit?: number;
  /** The milliseconds to list the realms, and to search one. */
  readonly listMs?: number;
  readonly searchMs?: number;
}

async function runSearch({ realms, each = 0, limit = 100, listMs = 0, searchMs = 0 }: SearchOptions) {
  let now = 0;
  const all = Array.from({ length: realms }, () => crypto.randomUUID() as Uuid);
  async function* order() {
    now += listMs;
    yield all;
  }
  const seek = async (realm: Uuid) => {
    now += searchMs;
    const record = { id: realm, created_at: 0, updated_at: 0, revision: '' as Revision };
    return Array.from({ length: each }, (): KeyedRecord => ({ key: [realm, realm], record }));
  };
  const { items, searched, next } = await searchRealmByRealm(order(), seek, limit, { monotonic: () => now });
  return {
    found: items.map(({ key: [realm] }) => all.indexOf(realm)),
    searched,
    at: next && all.indexOf(next),
  };
}

const upTo = (count: number) => Array.from({ length: count }, (_, place) => place);

describe('searchRealmByRealm', () => {
  test('searchRealmByRealm searches all realms within its budget', async () => {
    expect(await runSearch({ realms: 20, each: 1 })).toEqual({ found: upTo(20), searched: 20, at: null });
    expect(await runSearch({ realms: 2 * GROUP, each: 1 })).toEqual({
      found: upTo(16),
      searched: 16,
      at: null,
    });
    expect(await runSearch({ realms: 0 })).toEqual({ found: [], searched: 0, at: null });
  });

  test.each([1, GROUP - 1, GROUP, GROUP + 1, 19])(
    'searchRealmByRealm stops after the realm that fills a page of %d records',
    async (limit) => {
      const all = { found: upTo(limit), searched: limit, at: limit - 1 };
      expect(await runSearch({ realms: 20, each: 1, limit })).toEqual(all);
    },
  );

  test('searchRealmByRealm omits the matches of a realm that do not fit', async () => {
    expect(await runSearch({ realms: 20, each: 3, limit: 4 })).toEqual({
      found: [0, 0, 0, 1],
      searched: 2,
      at: 1,
    });
  });

  test('searchRealmByRealm searches at most searchRealmsMax realms', async () => {
    const max = LIMITS.searchRealmsMax;
    expect(await runSearch({ realms: max + 1 })).toEqual({ found: [], searched: max, at: max - 1 });
    expect(await runSearch({ realms: max })).toEqual({ found: [], searched: max, at: null });
  });

  test('searchRealmByRealm stops after searchMsMax, but searches at least one group', async () => {
    const searchMs = LIMITS.searchMsMax / GROUP;
    expect(await runSearch({ realms: 20, searchMs })).toEqual({ found: [], searched: GROUP, at: GROUP - 1 });
    const earlier = await runSearch({ realms: 20, searchMs: searchMs - 1 });
    expect(earlier).toEqual({ found: [], searched: 2 * GROUP, at: 2 * GROUP - 1 });
    const late = await runSearch({ realms: 20, listMs: 2 * LIMITS.searchMsMax });
    expect(late).toEqual({ found: [], searched: GROUP, at: GROUP - 1 });
  });

  test('searchRealmByRealm yields to the event loop', async () => {
    let isAnswered = false;
    setImmediate(() => {
      isAnswered = true;
    });
    await runSearch({ realms: 200, searchMs: 1 });
    expect(isAnswered).toBe(true);
  });
});
