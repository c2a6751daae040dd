import { afterAll, describe, expect, test } from 'bun:test';
import { parseFilter } from '../../src/model/filter/filter.ts';
import type { Uuid } from '../../src/model/id.ts';
import { LIMITS } from '../../src/model/limits.ts';
import type { Resource } from '../../src/model/resource.ts';
import { oidcProfileInfo, passwordProfile, passwordProfileInfo, user } from '../../src/model/resources.ts';
import type { RealmSearch, RealmSearchPage } from '../../src/model/store.ts';
import { foldedKey } from '../../src/model/text/folded_key.ts';
import { freshDatabase } from '../support/database.ts';
import { ISSUER, userMembers } from '../support/service.ts';
import {
  commitWrites,
  insert,
  mintId,
  oidcLink,
  type RealmFixture,
  realmFixtureWrites,
  usernameLink,
  WRITTEN,
} from './contract/store_fixtures.ts';

/** The store's searches of all realms: what they find, in which order, and how far one of them reaches. */

const REALMS = LIMITS.searchRealmsMax + 2;
/** A username and subject of every realm: more records than one turn reads. */
const COMMON = 'in every realm';
/** A username that each of FEW realms has twice. */
const RARE = 'twice in a few realms';
const FEW = 5;
const COMMITS_AT_ONCE = 100;

const randomId = () => crypto.randomUUID() as Uuid;
const byRealm = (one: RealmFixture, other: RealmFixture) => (one.realm < other.realm ? -1 : 1);

const engine = await (await freshDatabase()).open();
const created = Array.from({ length: REALMS }, () => ({
  ...{ realm: randomId(), user: randomId(), oidc: mintId(), passwords: mintId() },
}));
for (let start = 0; start < REALMS; start += COMMITS_AT_ONCE) {
  const batch = created.slice(start, start + COMMITS_AT_ONCE);
  await Promise.all(
    batch.map((home) =>
      write(...realmFixtureWrites(home), usernameLink(home, COMMON), oidcLink(home, COMMON)),
    ),
  );
}
const links: Uuid[][] = [];
for (const home of created.slice(0, FEW)) {
  // A profile has a username once.
  const passwords = mintId();
  const profile = { name: 'More', username_format: 'any', enable_one_time_password_token: false };
  const ids = [randomId(), randomId()] as const;
  await write(
    insert(passwordProfile, [home.realm, passwords], profile),
    usernameLink(home, RARE, ids[0]),
    usernameLink({ ...home, passwords }, RARE, ids[1]),
  );
  links.push([home.realm, ...ids.toSorted()]);
}
/** In the order of a search, which is not the order in which they were created. */
const homes = created.toSorted(byRealm);
const few = created.slice(0, FEW).sort(byRealm);
const rareLinks = links.sort().flatMap(([, ...ids]) => ids);
afterAll(() => engine.close());

async function write(...writes: Parameters<typeof commitWrites>[1][]): Promise<void> {
  expect(await commitWrites(engine.records, ...writes)).toEqual(WRITTEN);
}

/** Searches all realms; `more`: what is not the default. */
async function search(
  resource: Resource,
  text: string,
  more: Partial<RealmSearch> = {},
): Promise<RealmSearchPage> {
  const filter = text === '' ? [] : parseFilter(text, resource.searchAllRealms?.filterables ?? {});
  const request = { filter, only: undefined, after: undefined, limit: 2 * REALMS, ...more };
  return engine.records.searchRealms(resource, request);
}

const realmsOf = ({ items }: RealmSearchPage) => items.map(({ key: [realm] }) => realm);
const idsOf = ({ items }: RealmSearchPage) => items.map(({ record }) => record.id);
const realmIds = (of: readonly RealmFixture[]) => of.map(({ realm }) => realm);

describe.each([
  ['a username that a few realms have twice', RARE, () => few, 2],
  ['a username that every realm has', COMMON, () => homes, 1],
] as const)('a search by %s', (_, username, having, each) => {
  const find = (more: Partial<RealmSearch> = {}) =>
    search(passwordProfileInfo, `eq(username,"${username}")`, more);
  const expected = () => realmIds(having()).flatMap((realm) => Array<Uuid>(each).fill(realm));

  test('finds every link once, in the order of realms', async () => {
    const page = await find();
    expect([realmsOf(page), page.through]).toEqual([expected(), undefined]);
  });

  test('finds as many links as its limit, from the first realm on', async () => {
    for (const limit of [1, 2, 3])
      expect(realmsOf(await find({ limit }))).toEqual([...expected()].slice(0, limit));
  });

  test('continues after a realm', async () => {
    const [first, second] = realmIds(having());
    expect(realmsOf(await find({ after: first }))).toEqual(expected().slice(each));
    expect(realmsOf(await find({ after: second, limit: 1 }))).toEqual(
      expected().slice(2 * each, 2 * each + 1),
    );
    expect(realmsOf(await find({ after: realmIds(having()).at(-1) }))).toEqual([]);
  });

  test('finds links of the realms of the token only', async () => {
    const [first, second, third] = realmIds(having());
    const only = [third, first, randomId()] as Uuid[];
    const found = expected().filter((realm) => only.includes(realm));
    expect(realmsOf(await find({ only }))).toEqual(found);
    expect(realmsOf(await find({ only, after: first }))).toEqual(found.slice(each));
    expect(realmsOf(await find({ only: [second as Uuid], after: second }))).toEqual([]);
    expect(realmsOf(await find({ only: [] }))).toEqual([]);
  });
});

test('a search by a username returns the links of one realm in the order of their IDs', async () => {
  expect(idsOf(await search(passwordProfileInfo, `eq(username,"${RARE}")`))).toEqual(rareLinks);
});

test('a search by subject and issuer is one search of all realms, in either order of the two', async () => {
  for (const text of [
    `eq(subject,"${COMMON}"):eq(issuer,"${ISSUER}")`,
    `eq(issuer,"${ISSUER}"):eq(subject,"${COMMON}")`,
  ]) {
    const page = await search(oidcProfileInfo, text);
    expect([realmsOf(page), page.through]).toEqual([realmIds(homes), undefined]);
  }
  const elsewhere = `eq(subject,"${COMMON}"):eq(issuer,"https://other.example/")`;
  expect((await search(oidcProfileInfo, elsewhere)).items).toEqual([]);
});

test('a search by a username does not find a username with the same hash', async () => {
  // A known pair of words with one CRC-32.
  const [one, other] = ['plumless', 'buckeroo'] as const;
  expect([foldedKey(one), foldedKey(other)]).toEqual([one, other]);
  expect(Bun.hash.crc32(one)).toBe(Bun.hash.crc32(other));
  const [home] = homes as [RealmFixture];
  const ids = [mintId(), mintId()] as const;
  await write(usernameLink(home, one, ids[0]), usernameLink(home, other, ids[1]));
  expect(idsOf(await search(passwordProfileInfo, `eq(username,${one})`))).toEqual([ids[0]]);
  expect(idsOf(await search(passwordProfileInfo, `eq(username,${other})`))).toEqual([ids[1]]);
});

describe('a search by a name', () => {
  const find = (more: Partial<RealmSearch> = {}) => search(user, 'eq(name,"Jane Doe")', more);
  const covered = () => realmIds(homes.slice(0, LIMITS.searchRealmsMax));

  test('covers the first searchRealmsMax realms, and names the last of them', async () => {
    const page = await find();
    expect([realmsOf(page), page.through]).toEqual([covered(), covered().at(-1)]);
    expect(realmsOf(await find({ limit: 3 }))).toEqual(covered().slice(0, 3));
  });

  test('continues after a realm, and names none when no realm is left', async () => {
    const rest = realmIds(homes.slice(LIMITS.searchRealmsMax));
    const page = await find({ after: covered().at(-1) });
    expect([realmsOf(page), page.through]).toEqual([rest, undefined]);
    const last = await find({ after: realmIds(homes)[REALMS - LIMITS.searchRealmsMax - 1] });
    expect([last.items.length, last.through]).toEqual([LIMITS.searchRealmsMax, undefined]);
  });

  test('covers the first searchRealmsMax realms of the token, whatever their order', async () => {
    const only = realmIds(homes.slice(1)).toReversed();
    const page = await find({ only });
    expect([realmsOf(page), page.through]).toEqual([
      realmIds(homes.slice(1, LIMITS.searchRealmsMax + 1)),
      realmIds(homes)[LIMITS.searchRealmsMax],
    ]);
    const rest = await find({ only, after: page.through });
    expect([realmsOf(rest), rest.through]).toEqual([realmIds(homes.slice(-1)), undefined]);
    const whole = await find({ only: only.slice(1) });
    expect([whole.items.length, whole.through]).toEqual([LIMITS.searchRealmsMax, undefined]);
    expect((await find({ only: [] })).items).toEqual([]);
  });
});

/** The realms with matches, and the number of matches of each. */
const of = (homesWith: readonly RealmFixture[], each = 1) => ({ homesWith, each });

describe.each([
  ['a username', passwordProfileInfo, `eq(username,"${RARE}")`, () => of(few, 2)],
  ['a username that every realm has', passwordProfileInfo, `eq(username,"${COMMON}")`, () => of(homes)],
  ['a name', user, 'eq(name,"Jane Doe")', () => of(homes.slice(0, LIMITS.searchRealmsMax))],
  ['words', user, 'match(text,"jan do")', () => of(homes)],
  ['nothing', user, '', () => of(homes)],
  ['nothing, of links', oidcProfileInfo, '', () => of(homes)],
] as const)('the rest of a search by %s', (name, resource, text, matches) => {
  const find = (more: Partial<RealmSearch> = {}) => search(resource, text, more);
  const keysOf = ({ items }: RealmSearchPage) => items.map(({ key }) => [key[0], key.at(-1)]);

  test('continues in a realm after one of its records', async () => {
    const { homesWith, each } = matches();
    const all = keysOf(await find());
    expect(all).toHaveLength(homesWith.length * each);
    const only = realmIds(homesWith.slice(0, 4));
    const inFour = all.filter(([realm]) => only.includes(realm as Uuid));
    for (const at of [0, 1, 2 * each]) {
      const [after, afterId] = all[at] as [Uuid, Uuid];
      expect(keysOf(await find({ after, afterId, limit: 3 }))).toEqual(all.slice(at + 1, at + 4));
      expect(keysOf(await find({ after, afterId, only }))).toEqual(inFour.slice(at + 1));
    }
    expect(keysOf(await find({ after: all[0]?.[0] as Uuid, only }))).toEqual(inFour.slice(each));
  });

  if (name === 'a name') return;
  test('counts all matches of the realms of the token where that is asked for', async () => {
    const { homesWith, each } = matches();
    const [first] = realmIds(homesWith);
    expect(await find({ limit: 1 })).not.toHaveProperty('total');
    for (const more of [{}, { after: first }]) {
      const page = await find({ limit: 1, isCounted: true, ...more });
      expect([page.items.length, page.total]).toEqual([1, homesWith.length * each]);
    }
    const only = realmIds(homesWith.slice(1, 3));
    expect((await find({ limit: 1, isCounted: true, only })).total).toBe(2 * each);
  });
});

test('a search by a name continues in a realm that it found in part', async () => {
  const [home, next] = homes.slice(-2) as [RealmFixture, RealmFixture];
  const ids = [randomId(), randomId(), randomId()].sort() as [Uuid, Uuid, Uuid];
  const named = (at: RealmFixture, id: Uuid) =>
    insert(user, [at.realm, id], { ...userMembers, name: 'Twin' });
  await write(...ids.map((id) => named(home, id)), named(next, ids[0]));
  const rest = { after: home.realm, afterId: ids[0] };
  const found = [ids[1], ids[2], ids[0]];
  expect(idsOf(await search(user, 'eq(name,Twin)', rest))).toEqual(found);
  const only = realmIds([next, home]);
  expect(idsOf(await search(user, 'eq(name,Twin)', { ...rest, only }))).toEqual(found);
  expect((await search(user, 'match(text,twin)', { isCounted: true })).total).toBe(4);
  const elsewhere = { ...rest, only: realmIds([next]) };
  expect(idsOf(await search(user, 'match(text,twin)', elsewhere))).toEqual([ids[0]]);
});
