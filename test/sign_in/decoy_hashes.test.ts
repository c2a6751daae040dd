import { afterAll, expect, test } from 'bun:test';
import type { Uuid } from '../../src/model/id.ts';
import { LIMITS } from '../../src/model/limits.ts';
import { decoyHash, newHashKind } from '../../src/model/password_hash.ts';
import { passwordProfile } from '../../src/model/resources.ts';
import { openDecoys } from '../../src/sign_in/decoys.ts';
import {
  commitWritten,
  createRealmFixture,
  insert,
  mintId,
  type RealmFixture,
  usernameLink,
} from '../records/contract/store_fixtures.ts';
import { freshDatabase } from '../support/database.ts';
import { KEYS, manualClock } from './sign_in_fixtures.ts';

const engine = await (await freshDatabase()).open();
afterAll(() => engine.close());

const COST = { memoryKib: 8_192, passes: 1 };
const OWN = decoyHash(newHashKind(COST));
const [BCRYPT, ARGON2I] = [decoyHash('$2b$10$'), decoyHash('$argon2i$v=19$m=4096,t=3,p=1$')];
const [PBKDF2, SCRYPT, FIREBASE] = [
  decoyHash('$pbkdf2-sha512$i=210000,l=64$'),
  decoyHash('$scrypt$ln=14,r=8,p=1$'),
  decoyHash('$scrypt$ln=14,r=8,p=1,k=204e621d2264a1a1$'),
];
const HOUR_MS = 3_600_000;

/** Imports usernames `PREFIX0`, … with a hash. */
async function load(at: RealmFixture, prefix: string, count: number, password_hash?: string): Promise<void> {
  const loads = Array.from({ length: count }, (_, index) => {
    const write = usernameLink(at, `${prefix}${index}`);
    return {
      write: { ...write, record: { ...write.record, password_hash } },
      compare(): never {
        throw new Error('the record exists already');
      },
    };
  });
  for (let from = 0; from < count; from += 500) {
    const outcomes = await engine.records.load(loads.slice(from, from + 500), true);
    expect(outcomes.every(({ kind }) => kind === 'written')).toBe(true);
  }
}

async function createSecondProfile(at: RealmFixture): Promise<RealmFixture> {
  const profile = insert(passwordProfile, [at.realm, mintId()], {
    ...{ name: 'Second', username_format: 'any', enable_one_time_password_token: false },
  });
  await commitWritten(engine.records, profile);
  return { ...at, passwords: profile.key[1] as Uuid };
}

function openFixture() {
  const clock = manualClock();
  const reads: Uuid[] = [];
  const decoys = openDecoys({
    ...{ keys: KEYS, cost: COST, clock },
    credentials: {
      hashKinds(realmId, profileId) {
        reads.push(profileId);
        return engine.credentials.hashKinds(realmId, profileId);
      },
    },
  });
  return {
    clock,
    reads,
    /** The share of unknown names whose decoy is this hash. */
    async share(hash: string, { realm: realmId, passwords: profileId }: RealmFixture) {
      let found = 0;
      for (let at = 0; at < 4_000; at += 1) {
        const decoy = await decoys.find({ realmId, profileId, usernameKey: `unknown ${at}` });
        if (decoy.hash === hash) found += 1;
      }
      return found / 4_000;
    },
  };
}

test('decoys of a small profile have its kinds of hashes from the first one on, and one read an hour', async () => {
  const at = await createRealmFixture(engine.records);
  const { share, reads, clock } = openFixture();
  expect(await share(OWN, at)).toBe(1);
  await load(at, 'bcrypt', 30, BCRYPT);
  await load(at, 'argon2i', 10, ARGON2I);
  await load(at, 'without', 5);
  await load(at, 'too costly', 5, decoyHash('$2b$14$'));
  expect([await share(OWN, at), reads.length]).toEqual([1, 1]);
  clock.pass(HOUR_MS);
  expect([await share(BCRYPT, at), await share(ARGON2I, at)]).toEqual([
    expect.closeTo(0.75, 1),
    expect.closeTo(0.25, 1),
  ]);
  expect((await share(BCRYPT, at)) + (await share(ARGON2I, at))).toBe(1);
  expect(reads).toHaveLength(2);
});

test('decoys of a profile with hashes of other programs have their digest, parameters and signer key', async () => {
  const at = await createRealmFixture(engine.records);
  await load(at, 'pbkdf2', 20, PBKDF2);
  await load(at, 'scrypt', 10, SCRYPT);
  await load(at, 'firebase', 10, FIREBASE);
  const { share } = openFixture();
  const shares = [await share(PBKDF2, at), await share(SCRYPT, at), await share(FIREBASE, at)];
  expect(shares).toEqual([expect.closeTo(0.5, 1), expect.closeTo(0.25, 1), expect.closeTo(0.25, 1)]);
  expect(shares.reduce((sum, each) => sum + each)).toBeCloseTo(1, 6);
});

test('decoys of a large profile have the kinds of its first 1,000 usernames, read once an hour', async () => {
  const max = LIMITS.listRecordsInlineMax;
  const at = await createRealmFixture(engine.records);
  const second = await createSecondProfile(at);
  await load(at, 'a', (3 * max) / 4, BCRYPT);
  await load(at, 'b', max, ARGON2I);
  await load(second, 'c', max, ARGON2I);
  const { share, reads, clock } = openFixture();
  for (let hour = 1; hour <= 3; hour += 1) {
    expect([await share(BCRYPT, at), await share(ARGON2I, second)]).toEqual([expect.closeTo(0.75, 1), 1]);
    clock.pass(HOUR_MS);
    expect(reads).toHaveLength(2 * hour);
  }
});
