import { expect, test } from 'bun:test';
import type { AnyRecord } from '../../src/model/resource.ts';
import { user } from '../../src/model/resources.ts';
import type { LinkRefusal } from '../../src/records/identity_linking.ts';
import {
  eventsSince,
  type Identity,
  identityOf,
  LINKED,
  linkedOf,
  OTHER_ISSUER,
  openLinkingFixture,
  type Place,
  SHOP,
} from './linking_fixtures.ts';

const { store, open, createPlace, createProfile, createUser, changeUser, remove, contentsOf } =
  await openLinkingFixture();
const { link, linkTo } = open();

const CREATED = ['user-authentication-info.created', 'user-authentication-oidc-profile-info.created'];

const VOUCHED = { email: 'mike@github.com', isVouched: true };
const UNVOUCHED = { email: 'mike@github.com', isVouched: false };
const OTHER = { email: 'mike@example.org', isVouched: true };
const IN_CAPITALS = { email: 'MIKE@GitHub.com', isVouched: true };

/** Addresses that look like `mike@github.com`: each has its folded key. */
const LOOK_ALIKES = ['mike@gıthub.com', 'mike@ｇithub.com', 'mi\u00adke@github.com', 'mi\u212ae@github.com'];
const alike = (email: string) => ({ email, isVouched: true });

/** Policy, users of the realm, and the result for a verified and for an unverified `mike@github.com`. */
const TABLE: readonly [string, string, readonly (typeof VOUCHED)[], string, string][] = [
  ['allowed', 'no user with it', [OTHER], 'created', 'created'],
  ['allowed', 'one user with it, vouched for', [VOUCHED], 'created', 'created'],
  ['allowed', 'one user with it, not vouched for', [UNVOUCHED], 'created', 'created'],
  ['allowed', 'several users with it', [VOUCHED, VOUCHED, UNVOUCHED], 'created', 'created'],
  ['api_only', 'no user with it', [OTHER], 'created', 'created'],
  ['api_only', 'one user with it, vouched for', [OTHER, VOUCHED], 'linked', 'email_not_verified'],
  ['api_only', 'one user with it in capitals', [IN_CAPITALS], 'linked', 'email_not_verified'],
  ['api_only', 'one user with it, not vouched for', [UNVOUCHED], 'email_not_verified', 'email_not_verified'],
  ['api_only', 'two users with it', [VOUCHED, VOUCHED], 'email_ambiguous', 'email_ambiguous'],
  [
    'api_only',
    'four users with it',
    [VOUCHED, OTHER, VOUCHED, VOUCHED],
    'email_ambiguous',
    'email_ambiguous',
  ],
  [
    'api_only',
    'two users with it, one vouched for',
    [UNVOUCHED, VOUCHED],
    'email_ambiguous',
    'email_ambiguous',
  ],
  ...LOOK_ALIKES.flatMap((email): typeof TABLE => [
    ['api_only', `a user with ${email}`, [alike(email)], 'email_ambiguous', 'email_ambiguous'],
    ['api_only', `users with it and ${email}`, [VOUCHED, alike(email)], 'email_ambiguous', 'email_ambiguous'],
  ]),
];

const rows = TABLE.flatMap(([policy, realmHas, users, verified, unverified]) => [
  ['verified', policy, realmHas, verified, users] as const,
  ['not verified', policy, realmHas, unverified, users] as const,
]);

test.each(rows)(
  'an identity whose address is %s, in a realm of policy %s with %s, gives %s',
  async (...row) => {
    const [verified, policy, , result, users] = row;
    const place = await createPlace(policy);
    const realmId = place.realm.id;
    for (const { email, isVouched } of users) await createUser(realmId, email, isVouched);
    const before = await contentsOf(realmId);
    const isEmailVerified = verified === 'verified';
    const made = await link(identityOf({ isEmailVerified }), place, SHOP);
    const after = await contentsOf(realmId);
    if (typeof made === 'string') {
      expect(made).toBe(result as LinkRefusal);
      expect(after).toEqual(before);
      return;
    }
    expect<string>(made.outcome).toBe(result);
    expect(after.links.map(({ key, record }) => [...key, record.revision])).toEqual([
      [realmId, made.userId, made.infoId, made.revision],
    ]);
    const was = before.users.find(({ id }) => id === made.userId);
    const { revision, updated_at, ...is } = after.users.find(({ id }) => id === made.userId) as AnyRecord;
    expect(after.users.filter(({ id }) => id !== made.userId)).toEqual(
      before.users.filter((each) => each !== was),
    );
    const email_vouched = isEmailVerified;
    expect(is).toMatchObject(
      was ? {} : { email: 'mike@github.com', email_vouched, creation_status: 'COMPLETE' },
    );
    if (was) expect({ ...is, revision: was.revision, updated_at: was.updated_at }).toEqual(was);
    expect(revision).not.toBe(was?.revision as never);
    expect(was === undefined).toBe(result === 'created');
    expect(eventsSince(before, after)).toEqual(was ? LINKED : CREATED);
  },
);

test('an identity is linked by an address in capitals, and not by one that looks like that of the user', async () => {
  const place = await createPlace('api_only');
  const userId = await createUser(place.realm.id, 'mike@github.com');
  for (const email of LOOK_ALIKES)
    for (const isEmailVerified of [true, false])
      expect(await link(identityOf({ email, isEmailVerified }), place, SHOP)).toBe('email_ambiguous');
  expect((await contentsOf(place.realm.id)).links).toEqual([]);
  const made = await link(identityOf({ email: 'Mike@GITHUB.com' }), place, SHOP);
  expect(made).toMatchObject({ outcome: 'linked', userId });
});

test.each(['allowed', 'api_only'])(
  'an identity without an address is refused by policy %s',
  async (policy) => {
    const place = await createPlace(policy);
    expect(await link(identityOf({ email: undefined }), place, SHOP)).toBe('no_email');
    expect(await contentsOf(place.realm.id)).toMatchObject({ users: [], links: [] });
  },
);

test.each(['allowed', 'api_only'])(
  'an unknown identity is refused by policy %s where the caller may not create',
  async (policy) => {
    const place = { ...(await createPlace(policy)), mayCreate: false };
    await createUser(place.realm.id, 'mike@github.com');
    const before = await contentsOf(place.realm.id);
    for (const email of ['mike@github.com', 'new@github.com', undefined])
      expect(await link(identityOf({ email }), place, SHOP)).toBe('may_not_create');
    expect(await contentsOf(place.realm.id)).toEqual(before);
  },
);

test.each(['allowed', 'api_only'])(
  'a known identity of a disabled user is refused by policy %s until the user is enabled, and makes no other',
  async (policy) => {
    const place = await createPlace(policy);
    const realmId = place.realm.id;
    const mike = identityOf();
    const made = linkedOf(await link(mike, place, SHOP));
    const other = await createUser(realmId, 'jane@example.org');
    await changeUser(realmId, made.userId, { enabled: false });
    const before = await contentsOf(realmId);
    for (const email of [mike.email, 'jane@example.org', 'new@example.org', undefined])
      expect(await link({ ...mike, email }, place, SHOP)).toBe('disabled');
    expect(await link(mike, { ...place, mayCreate: false }, SHOP)).toBe('disabled');
    for (const userId of [made.userId, other])
      expect(await linkTo(mike, { ...place, userId }, SHOP)).toBe('disabled');
    expect(await contentsOf(realmId)).toEqual(before);
    await changeUser(realmId, made.userId, { enabled: true });
    const again = linkedOf(await link(mike, place, SHOP));
    expect(again).toEqual({ ...made, outcome: 'known', revision: before.links[0]?.record.revision as never });
    // A token of the earlier sign-in names the revision that the link had then.
    expect(again.revision).not.toBe(made.revision);
  },
);

test('an identity is linked neither by the address of a disabled user nor to one whom the caller names', async () => {
  const place = await createPlace('api_only');
  const userId = await createUser(place.realm.id, 'mike@github.com');
  await changeUser(place.realm.id, userId, { enabled: false });
  const before = await contentsOf(place.realm.id);
  for (const isEmailVerified of [true, false])
    expect(await link(identityOf({ isEmailVerified }), place, SHOP)).toBe('disabled');
  expect(await linkTo(identityOf(), { ...place, userId }, SHOP)).toBe('disabled');
  expect(await contentsOf(place.realm.id)).toEqual(before);
  await createUser(place.realm.id, 'mike@github.com');
  expect(await link(identityOf(), place, SHOP)).toBe('email_ambiguous');
});

test('an identity is not linked to a user of another realm', async () => {
  const [place, other] = [await createPlace('api_only'), await createPlace('api_only')];
  await createUser(other.realm.id, 'mike@github.com');
  expect(await link(identityOf(), place, SHOP)).toMatchObject({ outcome: 'created' });
  expect((await contentsOf(other.realm.id)).links).toEqual([]);
});

test.each(['allowed', 'api_only'])(
  'a sign-in of a known identity writes nothing, by policy %s',
  async (policy) => {
    const place = await createPlace(policy);
    const mike = identityOf({ names: { name: 'Mike' } });
    const made = linkedOf(await link(mike, place, SHOP));
    await createUser(place.realm.id, 'new@example.org');
    const before = await contentsOf(place.realm.id);
    const later: readonly Partial<Identity>[] = [
      { email: 'new@example.org', names: { name: 'Michael' } },
      { email: undefined },
      { isEmailVerified: false },
    ];
    for (const more of later)
      for (const mayCreate of [true, false]) {
        const again = await link({ ...mike, ...more }, { ...place, mayCreate }, SHOP);
        expect(again).toEqual({ ...made, outcome: 'known' });
      }
    expect(await contentsOf(place.realm.id)).toEqual(before);
  },
);

test('a known identity is found through every profile of its issuer', async () => {
  const place = await createPlace('api_only');
  const mike = identityOf();
  const made = linkedOf(await link(mike, place, SHOP));
  const profileId = await createProfile(place.realm.id, mike.issuer);
  expect(await link(mike, { ...place, profileId }, SHOP)).toEqual({ ...made, outcome: 'known' });
});

test('a subject at another issuer, or in another letter case, is another identity', async () => {
  const place = await createPlace('allowed');
  const mike = identityOf({ subject: 'mike' });
  const profileId = await createProfile(place.realm.id, OTHER_ISSUER);
  const results = [
    await link(mike, place, SHOP),
    await link({ ...mike, issuer: OTHER_ISSUER }, { ...place, profileId }, SHOP),
    await link({ ...mike, subject: 'MIKE' }, place, SHOP),
  ].map(linkedOf);
  expect(results.map(({ outcome }) => outcome)).toEqual(['created', 'created', 'created']);
  expect(new Set(results.map(({ userId }) => userId)).size).toBe(3);
});

test('an identity whose user was deleted becomes a new user', async () => {
  const place = await createPlace('api_only');
  const mike = identityOf();
  const { userId } = linkedOf(await link(mike, place, SHOP));
  await remove(user, [place.realm.id, userId]);
  const again = linkedOf(await link(mike, place, SHOP));
  expect(again.outcome).toBe('created');
  expect(again.userId).not.toBe(userId);
});

/** The owner signs in at a provider that verifies the address. */
async function expectRefusedOwner(place: Place, refusal: LinkRefusal = 'email_not_verified') {
  const profileId = await createProfile(place.realm.id, OTHER_ISSUER);
  const before = await contentsOf(place.realm.id);
  expect(await link(identityOf({ issuer: OTHER_ISSUER }), { ...place, profileId }, SHOP)).toBe(refusal);
  expect(await contentsOf(place.realm.id)).toEqual(before);
}

test('the owner of an address is not linked to a stranger who came first without a verified address', async () => {
  const place = await createPlace('api_only');
  linkedOf(await link(identityOf({ isEmailVerified: false }), place, SHOP));
  await expectRefusedOwner(place);
});

test('the owner of an address is not linked to a stranger who came before a change of policy', async () => {
  const place = await createPlace('allowed');
  linkedOf(await link(identityOf({ isEmailVerified: false }), place, SHOP));
  await expectRefusedOwner({ ...place, realm: { ...place.realm, duplicate_email_policy: 'api_only' } });
});

test('the owner of an address is not linked to a stranger who signed up with it', async () => {
  const place = await createPlace('api_only');
  await createUser(place.realm.id, 'mike@github.com', false);
  await expectRefusedOwner(place);
});

test.each(LOOK_ALIKES)(
  'the owner of an address is not linked to a stranger with the verified address %s',
  async (email) => {
    const place = await createPlace('api_only');
    linkedOf(await link(identityOf({ email }), place, SHOP));
    await expectRefusedOwner(place, 'email_ambiguous');
  },
);

const EMPTY = { given_name: null, middle_name: null, family_name: null };
const WHOLE = { given_name: 'Mike', middle_name: 'J', family_name: 'Doe' };
const MANY = { given_name: 'g'.repeat(200), family_name: 'f'.repeat(200) };
const EMAIL = `${'m'.repeat(60)}@${'d'.repeat(235)}.com`;

test.each<[string, Partial<Identity>, object]>([
  ['those of the provider', { names: { name: 'M', ...WHOLE } }, { name: 'M', ...WHOLE }],
  ['given and family name without a full one', { names: WHOLE }, { name: 'Mike Doe', ...WHOLE }],
  [
    'the given name without others',
    { names: { given_name: 'Mike' } },
    { ...EMPTY, name: 'Mike', given_name: 'Mike' },
  ],
  ['the address without others', { names: {} }, { name: 'mike@github.com', ...EMPTY }],
  [
    'the address where given and family name are too long together',
    { names: MANY },
    { name: 'mike@github.com', ...MANY },
  ],
  ['the beginning of an address of 300 characters', { email: EMAIL }, { name: EMAIL.slice(0, 255) }],
])('the names of a new user are %s', async (_, more, expected) => {
  const place = await createPlace('api_only');
  const { userId } = linkedOf(await link(identityOf(more), place, SHOP));
  expect(await store.get(user, [place.realm.id, userId])).toMatchObject(expected);
});

test('an identity is linked to the user whom the caller authenticated, whatever the addresses are', async () => {
  const place = await createPlace('api_only');
  const userId = await createUser(place.realm.id, 'jane@example.org', false);
  await createUser(place.realm.id, 'mike@github.com');
  const before = await contentsOf(place.realm.id);
  const mike = identityOf({ isEmailVerified: false });
  const made = linkedOf(await linkTo(mike, { ...place, userId }, SHOP));
  expect(made).toMatchObject({ outcome: 'linked', userId });
  const after = await contentsOf(place.realm.id);
  expect(eventsSince(before, after)).toEqual(LINKED);
  expect(after.links.map(({ record }) => record.revision)).toEqual([made.revision]);
  expect(await linkTo(mike, { ...place, userId }, SHOP)).toEqual({ ...made, outcome: 'known' });
  expect(await contentsOf(place.realm.id)).toEqual(after);
  const second = await linkTo(identityOf({ email: undefined }), { ...place, userId }, SHOP);
  expect(second).toMatchObject({ outcome: 'linked', userId });
});

test('an identity of another user, or for a user who is unknown, deleted or of another realm, is taken', async () => {
  const [place, other] = [await createPlace('api_only'), await createPlace('api_only')];
  const [userId, gone, elsewhere] = [
    await createUser(place.realm.id, 'jane@example.org'),
    await createUser(place.realm.id, 'gone@example.org'),
    await createUser(other.realm.id, 'jane@example.org'),
  ];
  await remove(user, [place.realm.id, gone]);
  const mike = identityOf();
  const made = linkedOf(await link(mike, place, SHOP));
  const before = [await contentsOf(place.realm.id), await contentsOf(other.realm.id)];
  expect(await linkTo(mike, { ...place, userId }, SHOP)).toBe('taken');
  for (const unknown of [made.infoId, gone, elsewhere])
    expect(await linkTo(identityOf(), { ...place, userId: unknown }, SHOP)).toBe('taken');
  expect([await contentsOf(place.realm.id), await contentsOf(other.realm.id)]).toEqual(before);
});
