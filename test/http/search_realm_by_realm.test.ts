import { describe, expect, test } from 'bun:test';
import type { KeyedRecord } from '../../src/directory/store.ts';
import type { Revision, Uuid } from '../../src/domain/id.ts';
import { LIMITS } from '../../src/domain/limits.ts';
import { searchRealmByRealm } from '../../src/http/operations/search_realm_by_realm.ts';

/** How far one search of many realms goes, by a clock that each realm moves on. */

const GROUP = 8;

interface Going {
  readonly realms: number;
  /** Records of each realm. */
  readonly each?: number;
  readonly limit?: number;
  /** Milliseconds that it takes to know the realms, and to ask one. */
  readonly knownMs?: number;
  readonly askedMs?: number;
}

async function go({ realms, each = 0, limit = 100, knownMs = 0, askedMs = 0 }: Going) {
  let now = 0;
  const all = Array.from({ length: realms }, () => crypto.randomUUID() as Uuid);
  async function* order() {
    now += knownMs;
    yield all;
  }
  const seek = async (realm: Uuid) => {
    now += askedMs;
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

describe('where there are many realms', () => {
  test('all of them are asked, if nothing is against it', async () => {
    expect(await go({ realms: 20, each: 1 })).toEqual({ found: upTo(20), searched: 20, at: null });
    expect(await go({ realms: 2 * GROUP, each: 1 })).toEqual({ found: upTo(16), searched: 16, at: null });
    expect(await go({ realms: 0 })).toEqual({ found: [], searched: 0, at: null });
  });

  test.each([1, GROUP - 1, GROUP, GROUP + 1, 19])(
    'it ends behind the realm in which the last of %d records was found',
    async (limit) => {
      const all = { found: upTo(limit), searched: limit, at: limit - 1 };
      expect(await go({ realms: 20, each: 1, limit })).toEqual(all);
    },
  );

  test('what a realm has beyond the last record is not answered', async () => {
    expect(await go({ realms: 20, each: 3, limit: 4 })).toEqual({ found: [0, 0, 0, 1], searched: 2, at: 1 });
  });

  test('no more than a thousand are asked', async () => {
    const max = LIMITS.searchRealmsMax;
    expect(await go({ realms: max + 1 })).toEqual({ found: [], searched: max, at: max - 1 });
    expect(await go({ realms: max })).toEqual({ found: [], searched: max, at: null });
  });

  test('after a second no more are asked, and the first of them in any case', async () => {
    const askedMs = LIMITS.searchMsMax / GROUP;
    expect(await go({ realms: 20, askedMs })).toEqual({ found: [], searched: GROUP, at: GROUP - 1 });
    const earlier = await go({ realms: 20, askedMs: askedMs - 1 });
    expect(earlier).toEqual({ found: [], searched: 2 * GROUP, at: 2 * GROUP - 1 });
    const late = await go({ realms: 20, knownMs: 2 * LIMITS.searchMsMax });
    expect(late).toEqual({ found: [], searched: GROUP, at: GROUP - 1 });
  });

  test('others are answered meanwhile', async () => {
    let isAnswered = false;
    setImmediate(() => {
      isAnswered = true;
    });
    await go({ realms: 200, askedMs: 1 });
    expect(isAnswered).toBe(true);
  });
});
