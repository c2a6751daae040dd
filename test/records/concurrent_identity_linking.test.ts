import { expect, test } from 'bun:test';
import type { Uuid } from '../../src/model/id.ts';
import { oidcProfile, user } from '../../src/model/resources.ts';
import type { Loader, Store } from '../../src/model/store.ts';
import {
  identityOf,
  linkedOf,
  OPERATOR,
  OTHER_ISSUER,
  openLinkingFixture,
  SHOP,
} from './linking_fixtures.ts';

const { store, open, openOther, createPlace, createProfile, createUser, changeUser, remove, contentsOf } =
  await openLinkingFixture();
const { link, linkTo } = open();
/** Every second concurrent sign-in runs over connections of its own. */
const other = openOther();

type Interference = (realmId: Uuid, userId: Uuid, reading: number) => Promise<unknown>;

/** Links an identity to the user with its address, and interferes after each reading of the user. */
async function linkDuring(interfere: Interference) {
  const place = await createPlace('api_only');
  const realmId = place.realm.id;
  const userId = await createUser(realmId, 'mike@github.com');
  let readings = 0;
  const list: Store['list'] = async (...request) => {
    const page = await store.list(...request);
    readings += 1;
    await interfere(realmId, userId, readings);
    return page;
  };
  const getStored: Loader['getStored'] = async (...request) => {
    const stored = await store.getStored(...request);
    readings += 1;
    await interfere(realmId, userId, readings);
    return stored;
  };
  const result = await open({ list, getStored }).link(identityOf(), place, SHOP);
  return { userId, result, ...(await contentsOf(realmId)) };
}

test.each(['1', '2'])(
  'an identity gets a user of its own where the found one gets another address after reading %s',
  async (at) => {
    const { result, userId, links } = await linkDuring(async (realmId, id, reading) => {
      if (String(reading) === at) await changeUser(realmId, id, { email: 'other@example.org' });
    });
    const made = linkedOf(result);
    expect(made.outcome).toBe('created');
    expect(made.userId).not.toBe(userId);
    expect(links).toHaveLength(1);
  },
);

test('an identity gets a user of its own, or is refused, where the found one is deleted before the commit', async () => {
  const early = await linkDuring(async (realmId, id, reading) => {
    if (reading === 1) await remove(user, [realmId, id]);
  });
  expect(early).toMatchObject({ result: 'email_not_verified', users: [], links: [] });
  const late = await linkDuring(async (realmId, id, reading) => {
    if (reading === 2) await remove(user, [realmId, id]);
  });
  const made = linkedOf(late.result);
  expect(made.outcome).toBe('created');
  expect(late.users.map(({ id }) => id)).toEqual([made.userId]);
});

test.each(['1', '2'])('an identity is refused where the user is disabled after reading %s', async (at) => {
  const { result, users, links } = await linkDuring(async (realmId, id, reading) => {
    if (String(reading) === at) await changeUser(realmId, id, { enabled: false });
  });
  expect(result).toBe('disabled');
  expect([users.length, links]).toEqual([1, []]);
});

test('a known identity is refused where its user is disabled after the link was read', async () => {
  const place = await createPlace('allowed');
  const mike = identityOf();
  const { userId } = linkedOf(await link(mike, place, SHOP));
  const find: Store['find'] = async (...request) => {
    const found = await store.find(...request);
    await changeUser(place.realm.id, userId, { enabled: false });
    return found;
  };
  expect(await open({ find }).link(mike, place, SHOP)).toBe('disabled');
});

test('a known identity whose user is disabled after it was read gets a revision that its link no longer has', async () => {
  const place = await createPlace('allowed');
  const mike = identityOf();
  const { userId } = linkedOf(await link(mike, place, SHOP));
  const get = (async (...request: Parameters<Store['get']>) => {
    const found = await store.get(...request);
    await changeUser(place.realm.id, userId, { enabled: false });
    return found;
  }) as Store['get'];
  const known = linkedOf(await open({ get }).link(mike, place, SHOP));
  const [stored] = (await contentsOf(place.realm.id)).links;
  expect([known.outcome, known.infoId]).toEqual(['known', stored?.record.id as Uuid]);
  expect(stored?.record.revision).not.toBe(known.revision);
});

test('an identity is not linked to the user whom the caller authenticated, and who is disabled before the commit', async () => {
  const place = await createPlace('api_only');
  const userId = await createUser(place.realm.id, 'jane@example.org');
  const get = (async (...request: Parameters<Store['get']>) => {
    const found = await store.get(...request);
    await changeUser(place.realm.id, userId, { enabled: false });
    return found;
  }) as Store['get'];
  expect(await open({ get }).linkTo(identityOf(), { ...place, userId }, SHOP)).toBe('disabled');
  expect((await contentsOf(place.realm.id)).links).toEqual([]);
});

test('an identity is linked at the second attempt where the name of the user changes at the first', async () => {
  const { result, userId } = await linkDuring(async (realmId, id, reading) => {
    if (reading === 2) await changeUser(realmId, id, { name: 'Michael' });
  });
  expect(result).toMatchObject({ outcome: 'linked', userId });
});

test('an identity is refused where the user is written at both attempts', async () => {
  const { result, links, changes } = await linkDuring((realmId, id, reading) =>
    changeUser(realmId, id, { name: `Mike ${reading}` }),
  );
  expect(result).toBe('taken');
  expect(links).toEqual([]);
  expect(changes.map(({ actor }) => actor)).not.toContain(SHOP.actor);
});

test('an identity that another caller links before the commit is known', async () => {
  const place = await createPlace('api_only');
  await createUser(place.realm.id, 'mike@github.com');
  const other = await createUser(place.realm.id, 'other@example.org');
  const mike = identityOf();
  const list: Store['list'] = async (...request) => {
    await linkTo(mike, { ...place, userId: other }, OPERATOR);
    return store.list(...request);
  };
  expect(await open({ list }).link(mike, place, SHOP)).toMatchObject({ outcome: 'known', userId: other });
  expect((await contentsOf(place.realm.id)).links).toHaveLength(1);
});

test('an identity is taken where the user whom the caller authenticated is deleted before the commit', async () => {
  const place = await createPlace('api_only');
  const userId = await createUser(place.realm.id, 'jane@example.org');
  const find: Store['find'] = async (...request) => {
    const found = await store.find(...request);
    await remove(user, [place.realm.id, userId]).catch(() => undefined);
    return found;
  };
  expect(await open({ find }).linkTo(identityOf(), { ...place, userId }, SHOP)).toBe('taken');
  expect(await contentsOf(place.realm.id)).toMatchObject({ users: [], links: [] });
});

test('an identity of a deleted profile, or of one with another issuer, leaves neither user nor link', async () => {
  const [gone, moved] = [await createPlace('api_only'), await createPlace('allowed', OTHER_ISSUER)];
  await remove(oidcProfile, [gone.realm.id, gone.profileId]);
  for (const place of [gone, moved]) {
    expect(await link(identityOf(), place, SHOP)).toBe('taken');
    expect(await contentsOf(place.realm.id)).toMatchObject({ users: [], links: [] });
  }
});

const ROUNDS = 4;
const rows = ['4', '16'].flatMap((count) => [
  [count, 'allowed', 'another user with the address', 'created'] as const,
  [count, 'api_only', 'no user', 'created'] as const,
  [count, 'api_only', 'the user with the address', 'linked'] as const,
]);

test.each(rows)(
  '%s concurrent first sign-ins of one person make one link, by policy %s with %s',
  async (...row) => {
    const [count, policy, existing, outcome] = row;
    for (let round = 0; round < ROUNDS; round += 1) {
      const place = await createPlace(policy);
      const realmId = place.realm.id;
      const userId = existing === 'no user' ? undefined : await createUser(realmId, 'mike@github.com');
      const mike = identityOf();
      const results = await Promise.all(
        Array.from({ length: Number(count) }, (_, at) =>
          (at % 2 === 0 ? link : other.link)(mike, place, SHOP),
        ),
      );
      const made = results.map(linkedOf);
      const known = new Array<string>(Number(count) - 1).fill('known');
      expect(made.map((each) => each.outcome).sort()).toEqual([outcome, ...known].sort() as never);
      expect(new Set(made.map(({ infoId, revision }) => infoId + revision)).size).toBe(1);
      const { users, links } = await contentsOf(realmId);
      expect(links.map(({ record }) => record.id)).toEqual([made[0]?.infoId as Uuid]);
      expect(users).toHaveLength(policy === 'allowed' ? 2 : 1);
      expect(made[0]?.userId === userId).toBe(outcome === 'linked');
    }
  },
  60_000,
);

test('concurrent first sign-ins through two providers that verify an address make two links to one user', async () => {
  const place = await createPlace('api_only');
  const profileId = await createProfile(place.realm.id, OTHER_ISSUER);
  const userId = await createUser(place.realm.id, 'mike@github.com');
  const results = await Promise.all([
    link(identityOf(), place, SHOP),
    link(identityOf({ issuer: OTHER_ISSUER }), { ...place, profileId }, SHOP),
  ]);
  for (const result of results) expect(result).toMatchObject({ outcome: 'linked', userId });
  expect((await contentsOf(place.realm.id)).links).toHaveLength(2);
});

test('an identity that 16 users claim at once is linked to one of them', async () => {
  const place = await createPlace('allowed');
  const mike = identityOf();
  const users = await Promise.all(
    Array.from({ length: 16 }, () => createUser(place.realm.id, 'jane@example.org')),
  );
  const results = await Promise.all(users.map((userId) => linkTo(mike, { ...place, userId }, SHOP)));
  expect(results.filter((result) => result === 'taken')).toHaveLength(15);
  const [made] = results.flatMap((result) => (typeof result === 'string' ? [] : [result.userId]));
  expect((await contentsOf(place.realm.id)).links.map(({ key }) => key[1])).toEqual([made as Uuid]);
});
