import { afterAll, expect, test } from 'bun:test';
import type { CredentialStore } from '../../../src/auth/sign_in/credentials.ts';
import { openDecoys } from '../../../src/auth/sign_in/decoys.ts';
import type { Uuid } from '../../../src/domain/id.ts';
import { LIMITS } from '../../../src/domain/limits.ts';
import { decoyHash, newHashKind } from '../../../src/domain/password_hash.ts';
import { passwordProfile } from '../../../src/domain/resources.ts';
import {
  commitWritten,
  createRealmFixture,
  insert,
  mintId,
  type RealmFixture,
  usernameLink,
} from '../../store/contract/store_fixtures.ts';
import { freshDatabase } from '../../support/database.ts';
import { KEYS, manualClock } from './sign_in_fixtures.ts';

const engine = await (await freshDatabase()).open();
afterAll(() => engine.close());

const COST = { memoryKib: 8_192, passes: 1 };
const OWN = decoyHash(newHashKind(COST));
const [BCRYPT, ARGON2I] = [decoyHash('$2b$10$'), decoyHash('$argon2i$v=19$m=4096,t=3,p=1$')];
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

/** Decoys whose pages of a realm wait until they are let through. */
function openFixture(credentials: Partial<CredentialStore> = {}) {
  const clock = manualClock();
  const reads = { first: 0, pages: 0 };
  let opened = Promise.resolve();
  const store = { ...engine.credentials, ...credentials };
  const decoys = openDecoys({
    ...{ keys: KEYS, cost: COST, clock, turn: () => opened },
    credentials: {
      firstHashes(...profile) {
        reads.first += 1;
        return store.firstHashes(...profile);
      },
      hashesAfter(...position) {
        reads.pages += 1;
        return store.hashesAfter(...position);
      },
    },
  });
  return {
    clock,
    reads,
    /** Until the result is called, no page of a realm is read. */
    hold(): () => void {
      const { promise, resolve } = Promise.withResolvers<void>();
      opened = promise;
      return resolve;
    },
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
  expect([await share(OWN, at), reads.first]).toEqual([1, 1]);
  clock.pass(HOUR_MS);
  while ((await share(OWN, at)) > 0) await Bun.sleep(1);
  expect([await share(BCRYPT, at), await share(ARGON2I, at)]).toEqual([
    expect.closeTo(0.75, 1),
    expect.closeTo(0.25, 1),
  ]);
  expect((await share(BCRYPT, at)) + (await share(ARGON2I, at))).toBe(1);
  expect(reads).toEqual({ first: 2, pages: 0 });
});

test('decoys of a large profile have the kinds of its first usernames until all are counted in the background', async () => {
  const max = LIMITS.listRecordsInlineMax;
  const at = await createRealmFixture(engine.records);
  const second = await createSecondProfile(at);
  await load(at, 'a', max, BCRYPT);
  await load(at, 'b', max, ARGON2I);
  await load(second, 'c', max, ARGON2I);
  const { share, hold, reads, clock } = openFixture();
  const release = hold();
  expect([await share(BCRYPT, at), await share(ARGON2I, second)]).toEqual([1, 1]);
  expect(reads).toEqual({ first: 2, pages: 0 });
  release();
  while ((await share(BCRYPT, at)) > 0.9) await Bun.sleep(1);
  expect([await share(BCRYPT, at), await share(ARGON2I, second)]).toEqual([expect.closeTo(0.5, 1), 1]);
  // One reading served both profiles; within the hour there is none.
  expect(reads).toEqual({ first: 2, pages: 4 });
  await load(at, 'd', max, ARGON2I);
  const releaseAgain = hold();
  clock.pass(HOUR_MS);
  expect(await share(BCRYPT, at)).toBeCloseTo(0.5, 1);
  releaseAgain();
  while ((await share(BCRYPT, at)) > 0.42) await Bun.sleep(1);
  expect([await share(BCRYPT, at), reads.pages]).toEqual([expect.closeTo(1 / 3, 1), 9]);
});

test('after a reading that failed, the next request reads again', async () => {
  const max = LIMITS.listRecordsInlineMax;
  const at = await createRealmFixture(engine.records);
  await load(at, 'a', max, BCRYPT);
  await load(at, 'b', max, ARGON2I);
  const failures = { first: 2, pages: 1 };
  const orFail = <T>(kind: keyof typeof failures, read: () => T): T => {
    failures[kind] -= 1;
    if (failures[kind] >= 0) throw new Error('no database');
    return read();
  };
  const { firstHashes, hashesAfter } = engine.credentials;
  const { share, reads } = openFixture({
    firstHashes: (...profile) => orFail('first', () => firstHashes(...profile)),
    hashesAfter: (...position) => orFail('pages', () => hashesAfter(...position)),
  });
  for (let count = 0; count < 2; count += 1)
    expect(await share(OWN, at).catch(({ message }) => message)).toBe('no database');
  while ((await share(BCRYPT, at)) > 0.9) await Bun.sleep(1);
  // One page that fails, then two with hashes and an empty one.
  expect([reads, await share(BCRYPT, at)]).toEqual([{ first: 4, pages: 4 }, expect.closeTo(0.5, 1)]);
});
