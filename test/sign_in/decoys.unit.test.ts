import { expect, test } from 'bun:test';
import { decoyHash, newHashKind } from '../../src/model/password_hash.ts';
import { openDecoys } from '../../src/sign_in/decoys.ts';
import type { HashKindCount } from '../../src/sign_in/store/credentials.ts';
import { freshAttempts, KEYS, manualClock } from './sign_in_fixtures.ts';

/** Hashes for names that nobody has: docs/guides/password-guessing.md#time. */

const HOUR_MS = 3_600_000;
const COST = { memoryKib: 19_456, passes: 2 };
const OWN: HashKindCount = { kind: newHashKind(COST), isNormalised: true, count: 10 };
const BCRYPT: HashKindCount = { kind: '$2b$10$', isNormalised: false, count: 30 };
const decoyOf = ({ kind, isNormalised }: HashKindCount) => ({ hash: decoyHash(kind), isNormalised });

/** Decoys of a process, and the kinds of hashes that every profile has: none if they cannot be read. */
function openProfiles(kinds: readonly HashKindCount[] | undefined) {
  const clock = manualClock();
  const stored = { kinds, reads: 0 };
  async function hashKinds(): Promise<readonly HashKindCount[]> {
    stored.reads += 1;
    if (!stored.kinds) throw new Error('busy');
    return stored.kinds;
  }
  return { stored, clock, ...openDecoys({ credentials: { hashKinds }, keys: KEYS, cost: COST, clock }) };
}

test('the decoy of a profile without hashes is of the kind of new hashes', async () => {
  expect(await openProfiles([]).find(freshAttempts()('nobody'))).toEqual(decoyOf(OWN));
});

test.each([
  ['not normalised', { ...OWN, isNormalised: false }],
  ['of another cost', { ...OWN, kind: newHashKind({ memoryKib: 8_192, passes: 1 }) }],
])(
  'the decoy of a profile whose hashes differ from new ones only in being %s is like them',
  async (_, kind) => {
    expect(await openProfiles([kind]).find(freshAttempts()('nobody'))).toEqual(decoyOf(kind));
  },
);

test('decoys are spread over the kinds of a profile by their counts, and are the same in every process', async () => {
  const attemptOf = freshAttempts();
  const names = Array.from({ length: 1_000 }, (_, at) => attemptOf(`nobody${at}`));
  const decoysOf = ({ find }: ReturnType<typeof openProfiles>) => Promise.all(names.map(find));
  const decoys = await decoysOf(openProfiles([OWN, BCRYPT]));
  const ofKind = (kind: HashKindCount) => decoys.filter((decoy) => Bun.deepEquals(decoy, decoyOf(kind)));
  expect(ofKind(OWN).length + ofKind(BCRYPT).length).toBe(1_000);
  expect(ofKind(BCRYPT).length).toBeWithin(650, 850);
  expect(await decoysOf(openProfiles([OWN, BCRYPT]))).toEqual(decoys);
});

test('the kinds of hashes of a profile are read again by the first request after an hour', async () => {
  const { stored, clock, find } = openProfiles([BCRYPT]);
  const nobody = freshAttempts()('nobody');
  expect([await find(nobody), stored.reads]).toEqual([decoyOf(BCRYPT), 1]);
  stored.kinds = [OWN];
  clock.pass(HOUR_MS - 1);
  expect([await find(nobody), stored.reads]).toEqual([decoyOf(BCRYPT), 1]);
  clock.pass(1);
  expect([await find(nobody), stored.reads]).toEqual([decoyOf(OWN), 2]);
  expect([await find(nobody), stored.reads]).toEqual([decoyOf(OWN), 2]);
});

test('a failed reading of the kinds of hashes is repeated by the next request', async () => {
  const { stored, clock, find } = openProfiles(undefined);
  const nobody = freshAttempts()('nobody');
  const failure = () => find(nobody).catch(({ message }) => message);
  expect(await failure()).toBe('busy');
  stored.kinds = [BCRYPT];
  expect([await find(nobody), stored.reads]).toEqual([decoyOf(BCRYPT), 2]);
  stored.kinds = undefined;
  clock.pass(HOUR_MS);
  expect([await failure(), await failure(), stored.reads]).toEqual(['busy', 'busy', 4]);
});

test('the kinds of hashes of 10,000 profiles are cached, and those of one more displace the oldest', async () => {
  const { stored, find } = openProfiles([BCRYPT]);
  const profiles = Array.from({ length: 10_001 }, () => freshAttempts()('nobody'));
  const [first, last] = [profiles.at(0), profiles.at(-1)] as [(typeof profiles)[0], (typeof profiles)[0]];
  for (const profile of profiles.slice(0, 10_000)) await find(profile);
  await find(first);
  expect(stored.reads).toBe(10_000);
  await find(last);
  await find(last);
  expect(stored.reads).toBe(10_001);
  await find(first);
  expect(stored.reads).toBe(10_002);
});
