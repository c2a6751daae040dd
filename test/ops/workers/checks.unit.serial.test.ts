import { afterAll, describe, expect, test } from 'bun:test';
import { availableParallelism, getPriority } from 'node:os';
import bcrypt from 'bcryptjs';
import { normalisedPassword } from '../../../src/model/password.ts';
import type { CheckRequest } from '../../../src/model/password_hash.ts';
import { decoyHash, isCheckable, newHashKind, type PasswordCheck } from '../../../src/model/password_hash.ts';
import {
  CHECKER_NICENESS,
  checkResult,
  openChecker,
  openRestingCheck,
  restMs,
} from '../../../src/ops/workers/checker.ts';
import { openHasher } from '../../../src/ops/workers/hasher.ts';
import { doWithRetry } from '../../support/retry.ts';
import { outcomesOfFullQueue } from './full_queue.ts';

const checker = openChecker();
const hasher = openHasher({ memoryKib: 64, passes: 1 });

afterAll(() => Promise.all([checker.close(), hasher.close()]));

const RIGHT = { isRight: true, isCut: false };
const CUT = { isRight: true, isCut: true };
const WRONG = { isRight: false, isCut: false };

/** The result of the worker, which is that of its function in this process: only that is seen by a count of covered lines. */
async function check(request: CheckRequest): Promise<PasswordCheck> {
  const result = await doWithRetry(() => checker.check(request));
  expect(checkResult(request)).toEqual(result);
  return result;
}

const checkImported = (hash: string, password: string) => check({ hash, password, isNormalised: false });

/** Of the tests of the reference implementation (phc-winner-argon2, src/test.c): the password is `password`. */
const ARGON2 = [
  '$argon2i$v=19$m=65536,t=2,p=1$c29tZXNhbHQ$wWKIMhR9lyDFvRz9YTZweHKfbftvj+qf+YFY4NeBbtA',
  '$argon2i$v=19$m=256,t=2,p=2$c29tZXNhbHQ$T/XOJ2mh1/TIpJHfCdQan76Q5esCFVoT5MAeIM1Oq2E',
  '$argon2id$v=19$m=65536,t=2,p=1$c29tZXNhbHQ$CTFhFdXPJO1aFaMaO6Mm5c8y7cJHAph8ArZWb2GRPPc',
  '$argon2id$v=19$m=256,t=2,p=2$c29tZXNhbHQ$bQk8UB/VmZZF4Oo79iDXuL5/0ttZwg2f/5U52iv1cDc',
];

/** As bcryptjs makes it, which cuts a longer password to 72 bytes. */
const bcryptHash = (password: string, prefix: string) =>
  bcrypt.hashSync(password, bcrypt.genSaltSync(4).replace(/^\$2b/, `$${prefix}`));

/** As Bun makes it, which hashes a longer password first. */
const bunBcryptHash = (password: string) => Bun.password.hashSync(password, { algorithm: 'bcrypt', cost: 4 });

const ofBytes = (count: number) => 'abcdefghij'.repeat(20).slice(0, count);

const LIGATURE = 'e\ufb03cient pa\u0308sswo\u0308rter';

describe('a password check', () => {
  test.each(ARGON2)('the password of %s is right, and another one is wrong', async (hash) => {
    expect(isCheckable(hash)).toBe(true);
    expect(await checkImported(hash, 'password')).toEqual(RIGHT);
    expect(await checkImported(hash, 'passwore')).toEqual(WRONG);
  });

  for (const prefix of ['2a', '2b', '2y']) {
    test.each([71, 72])(
      `a password of %i bytes is checked with a ${prefix} hash of bcryptjs`,
      async (count) => {
        const hash = bcryptHash(ofBytes(count), prefix);
        expect(hash).toStartWith(`$${prefix}$04$`);
        expect(isCheckable(hash)).toBe(true);
        expect(await checkImported(hash, ofBytes(count))).toEqual(RIGHT);
        expect(await checkImported(hash, ofBytes(count - 1))).toEqual(WRONG);
      },
    );

    test.each([73, 200])(
      `a password of %i bytes is checked with a ${prefix} hash of bcryptjs, which cut it`,
      async (count) => {
        const hash = bcryptHash(ofBytes(count), prefix);
        expect(await checkImported(hash, ofBytes(count))).toEqual(CUT);
        expect(await checkImported(hash, `${ofBytes(72)}-else`)).toEqual(CUT);
        expect(await checkImported(hash, ofBytes(72))).toEqual(RIGHT);
        expect(await checkImported(hash, ofBytes(71))).toEqual(WRONG);
      },
    );
  }

  test.each([73, 200])(
    'a password of %i bytes is checked with a bcrypt hash that Bun made',
    async (count) => {
      const hash = bunBcryptHash(ofBytes(count));
      expect(await checkImported(hash, ofBytes(count))).toEqual(RIGHT);
      expect(await checkImported(hash, ofBytes(72))).toEqual(WRONG);
      expect(await checkImported(hash, `${ofBytes(count)}x`)).toEqual(WRONG);
    },
  );

  test('an argon2 hash is never compared with a part of the password', async () => {
    const hash = Bun.password.hashSync(ofBytes(72), { algorithm: 'argon2id', memoryCost: 64, timeCost: 1 });
    expect(await checkImported(hash, ofBytes(72))).toEqual(RIGHT);
    expect(await checkImported(hash, ofBytes(73))).toEqual(WRONG);
  });

  test('a cut within a character compares its first bytes', async () => {
    const password = `${ofBytes(71)}äb`;
    const hash = bcrypt.hashSync(password, 4);
    expect(await checkImported(hash, password)).toEqual(CUT);
    // The first byte of both characters is the same.
    expect(await checkImported(hash, `${ofBytes(71)}öb`)).toEqual(CUT);
    expect(await checkImported(hash, `${ofBytes(71)}xb`)).toEqual(WRONG);
  });

  test.each([
    [
      'argon2id',
      (text: string) => Bun.password.hashSync(text, { algorithm: 'argon2id', memoryCost: 64, timeCost: 1 }),
    ],
    ['bcrypt', bunBcryptHash],
    ['bcrypt that cut it', (text: string) => bcrypt.hashSync(text, 4)],
  ])('an imported %s hash is compared with the text as typed, and after NFKC', async (_, hashOf) => {
    for (const password of [LIGATURE, LIGATURE.repeat(4)]) {
      const [typed, normalised] = [hashOf(password), hashOf(normalisedPassword(password))];
      expect((await checkImported(typed, password)).isRight).toBe(true);
      expect((await checkImported(normalised, password)).isRight).toBe(true);
      expect((await checkImported(normalised, normalisedPassword(password))).isRight).toBe(true);
      // Nobody knows what was typed when the hash was made.
      expect(await checkImported(typed, normalisedPassword(password))).toEqual(WRONG);
    }
  });

  test('a hash that was made here is compared with the text after NFKC alone', async () => {
    const made = await hasher.hash(LIGATURE);
    for (const password of [LIGATURE, LIGATURE.normalize('NFC'), LIGATURE.normalize('NFKC')])
      expect(await check({ ...made, password })).toEqual(RIGHT);
    const hash = Bun.password.hashSync(LIGATURE, { algorithm: 'argon2id', memoryCost: 64, timeCost: 1 });
    expect(await check({ hash, isNormalised: true, password: LIGATURE })).toEqual(WRONG);
  });

  test('a password of 1,024 bytes, one with a NUL, and an empty one are compared to their end', async () => {
    for (const hashOf of [bunBcryptHash, async (text: string) => (await hasher.hash(text)).hash]) {
      const long = 'x'.repeat(1_023);
      const hash = await hashOf(`${long}a`);
      expect(await checkImported(hash, `${long}a`)).toEqual(RIGHT);
      expect(await checkImported(hash, `${long}b`)).toEqual(WRONG);
      expect(await checkImported(hash, '')).toEqual(WRONG);
      const ofNul = await hashOf('password\0one');
      expect(await checkImported(ofNul, 'password\0one')).toEqual(RIGHT);
      expect(await checkImported(ofNul, 'password\0two')).toEqual(WRONG);
      expect(await checkImported(ofNul, 'password')).toEqual(WRONG);
    }
    const ofNul = bcrypt.hashSync('password\0one', 4);
    expect(await checkImported(ofNul, 'password\0one')).toEqual(RIGHT);
    expect(await checkImported(ofNul, 'password')).toEqual(WRONG);
  });

  test.each([newHashKind({ memoryKib: 19_456, passes: 2 }), '$argon2i$v=19$m=256,t=2,p=2$', '$2y$04$'])(
    'a decoy of the kind %s can be checked, and no password is right',
    async (kind) => {
      const hash = decoyHash(kind);
      expect(hash).toStartWith(kind);
      expect(isCheckable(hash)).toBe(true);
      expect(await checkImported(hash, 'password')).toEqual(WRONG);
    },
  );
});

describe('the checker process', () => {
  test('the checker queues 64 passwords, and rejects more at once', async () => {
    // Of the least cost, so that no password waits too long.
    const made = {
      hash: Bun.password.hashSync('correct horse', { algorithm: 'argon2id', memoryCost: 64, timeCost: 1 }),
      isNormalised: true,
    };
    const unused = openChecker();
    await doWithRetry(() => unused.check({ ...made, password: 'correct horse' }));
    const outcomes = await outcomesOfFullQueue(() => unused.check({ ...made, password: 'correct horsf' }));
    await unused.close();
    expect(outcomes.slice(0, 5)).toEqual(Array(5).fill('overloaded'));
    expect(outcomes.slice(5)).toEqual(Array(65).fill('done'));
  });

  test('the checker rests after a check that waited for a processor', async () => {
    const rests: number[] = [];
    const restingCheck = openRestingCheck((ms) => rests.push(ms));
    const hash = Bun.password.hashSync('password', {
      algorithm: 'argon2id',
      memoryCost: 65_536,
      timeCost: 1,
    });
    const right = { hash, password: 'password', isNormalised: true };
    // The limit ends them if the test is killed.
    const busy = Array.from({ length: availableParallelism() }, () =>
      Bun.spawn(['sh', '-c', 'ulimit -t 20; echo started; while :; do :; done']),
    );
    try {
      for (const { stdout } of busy) await stdout.getReader().read();
      // A system may run all of them on one processor for a while.
      for (let tries = 0; tries < 2 || (tries < 100 && Number(rests.at(-1)) < 90); tries += 1)
        expect(restingCheck(right)).toEqual(RIGHT);
    } finally {
      for (const each of busy) each.kill();
    }
    await Promise.all(busy.map(({ exited }) => exited));
    expect(rests[0]).toBe(0);
    expect(rests.at(-1)).toBeWithin(90, 101);
  });

  test('a late check ends at its deadline, and the next one is answered', async () => {
    const own = openChecker();
    const check = (cost: string) =>
      own.check({
        hash: `$argon2id$v=19$${cost},p=1$c29tZXNhbHQ$${'A'.repeat(43)}`,
        password: 'x',
        isNormalised: true,
      });
    await expect(check('m=65536,t=1000')).rejects.toMatchObject({ cause: { code: 'WORKER_TIMEOUT' } });
    // With so little memory that its time is no reason to retry it.
    expect(await check('m=1024,t=1')).toEqual(WRONG);
    await own.close();
  });

  test('the checker rests three times as long as a check waited, at most 100 ms', () => {
    expect([-1, 0, 4, 20, 400].map(restMs)).toEqual([0, 0, 12, 60, 100]);
  });

  test('the checker runs at a lower priority than the service', async () => {
    await checkImported(bunBcryptHash('password'), 'password');
    const children = new TextDecoder()
      .decode(Bun.spawnSync(['ps', '-o', 'pid=,args=', '--ppid', String(process.pid)]).stdout)
      .split('\n')
      .filter((line) => line.endsWith(' checker'));
    expect(children.map((line) => getPriority(Number.parseInt(line, 10)))).toEqual([CHECKER_NICENESS]);
  });
});
