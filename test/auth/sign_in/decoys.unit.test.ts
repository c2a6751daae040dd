import { expect, test } from 'bun:test';
import { openDecoys } from '../../../src/auth/sign_in/decoys.ts';
import { decoyHash, newHashKind } from '../../../src/domain/password_hash.ts';
import type { StoredHash } from '../../../src/store/auth/credentials.ts';
import { freshAttempts, KEYS, manualClock } from './sign_in_fixtures.ts';

/** Hashes for names that nobody has: docs/decisions/0024-sign-in-by-password.md#time. */

/** Hashes of a kind, as many as `count`. */
interface HashKindCount {
  readonly kind: string;
  readonly isNormalised: boolean;
  readonly count: number;
}

const HOUR_MS = 3_600_000;
const COST = { memoryKib: 19_456, passes: 2 };
const OWN: HashKindCount = { kind: newHashKind(COST), isNormalised: true, count: 10 };
const BCRYPT: HashKindCount = { kind: '$2b$10$', isNormalised: false, count: 30 };
const decoyOf = ({ kind, isNormalised }: HashKindCount) => ({ hash: decoyHash(kind), isNormalised });

/** Decoys of a process, and the kinds of hashes that every profile has: none if they cannot be read. */
function openProfiles(kinds: readonly HashKindCount[] | undefined) {
  const clock = manualClock();
  const stored = { kinds, reads: 0 };
  async function firstHashes(): Promise<readonly StoredHash[]> {
    stored.reads += 1;
    if (!stored.kinds) throw new Error('busy');
    return stored.kinds.flatMap(({ count, ...hash }) => new Array<StoredHash>(count).fill(hash));
  }
  return { stored, clock, ...openDecoys({ credentials: { firstHashes }, keys: KEYS, cost: COST, clock }) };
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

test('decoys do not depend on the order of the hashes, and are normalised as those of their kind', async () => {
  const attemptOf = freshAttempts();
  const names = Array.from({ length: 100 }, (_, at) => attemptOf(`nobody${at}`));
  const decoysOf = ({ find }: ReturnType<typeof openProfiles>) => Promise.all(names.map(find));
  const decoys = await decoysOf(openProfiles([OWN, BCRYPT]));
  expect(new Set(decoys.map((decoy) => JSON.stringify(decoy))).size).toBe(2);
  expect(decoys).toContainEqual(decoyOf(OWN));
  expect(decoys).toContainEqual(decoyOf(BCRYPT));
  expect(await decoysOf(openProfiles([BCRYPT, OWN]))).toEqual(decoys);
});

test('the kinds of a profile remain for an hour more if they cannot be read again', async () => {
  const { stored, clock, find } = openProfiles([BCRYPT]);
  const nobody = freshAttempts()('nobody');
  const expectReads = async (reads: number) =>
    expect([await find(nobody), stored.reads]).toEqual([decoyOf(BCRYPT), reads]);
  await expectReads(1);
  stored.kinds = undefined;
  clock.pass(HOUR_MS - 1);
  await expectReads(1);
  clock.pass(1);
  await expectReads(2);
  await Bun.sleep(0);
  await expectReads(2);
});

test('after a first reading that failed, the next request reads again', async () => {
  const { stored, find } = openProfiles(undefined);
  const nobody = freshAttempts()('nobody');
  expect(await find(nobody).catch(({ message }) => message)).toBe('busy');
  stored.kinds = [BCRYPT];
  expect([await find(nobody), stored.reads]).toEqual([decoyOf(BCRYPT), 2]);
});

test('the kinds of 10,000 profiles are remembered, and of one more the first is read again', async () => {
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
