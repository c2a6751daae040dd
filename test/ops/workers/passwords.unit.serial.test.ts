import { afterAll, describe, expect, test } from 'bun:test';
import { z } from 'zod';
import type { Fault } from '../../../src/model/fault.ts';
import { passwordHash } from '../../../src/model/imported_hash.ts';
import { LIMITS } from '../../../src/model/limits.ts';
import {
  normalisedPassword,
  PASSWORD_COSTS,
  type PasswordCost,
  password,
} from '../../../src/model/password.ts';
import { decoyHash, isCheckable, newHashKind } from '../../../src/model/password_hash.ts';
import { type Hasher, openHasher } from '../../../src/ops/workers/hasher.ts';
import { doWithRetry } from '../../support/retry.ts';
import { outcomesOfFullQueue } from './full_queue.ts';

const DEFAULT: PasswordCost = { memoryKib: 19_456, passes: 2 };
/** For tests of the queue: takes no time, and is far too weak. */
const CHEAP: PasswordCost = { memoryKib: 64, passes: 1 };

const opened: Hasher[] = [];

function openOnce(cost: PasswordCost = DEFAULT): Hasher {
  const hasher = openHasher(cost);
  opened.push(hasher);
  return hasher;
}

/** Hashes again what a busy machine did not hash in time. */
function open(cost?: PasswordCost): Pick<Hasher, 'hash'> {
  const hasher = openOnce(cost);
  return { hash: (text) => doWithRetry(() => hasher.hash(text)) };
}

afterAll(() => Promise.all(opened.map((hasher) => hasher.close())));

const FULL_WIDTH = 'ｐａｓｓｗｏｒｄ１２３';
/** One code point of three bytes that NFKC turns into 18 of 33. */
const LIGATURE = '\ufdfa';

describe('a password', () => {
  test.each([
    ['8 characters', 'abcdefgh'],
    ['8 spaces', ' '.repeat(8)],
    ['8 characters outside the first plane', '😀'.repeat(8)],
    ['control characters', 'abc\0\n\u001b\u007fd'],
    ['bidirectional controls', '\u202epassword'],
    ['one character that NFKC makes 18', LIGATURE],
    ['1,024 bytes', 'x'.repeat(1_024)],
    ['1,023 bytes that NFKC makes 341', '\uff58'.repeat(341)],
    ['93 bytes that NFKC makes 1,023', LIGATURE.repeat(31)],
  ])('a password of %s is accepted', (_, value) => {
    expect(password().parse(value)).toBe(value);
  });

  const SIZE = 'must have at most 1024 bytes in UTF-8, before and after NFKC';
  const LENGTH = 'must have at least 8 characters after NFKC';

  test.each([
    ['nothing', '', LENGTH],
    ['7 characters', 'abcdefg', LENGTH],
    ['7 characters of two UTF-16 units', '😀'.repeat(7), LENGTH],
    ['8 code points that NFKC makes 4', 'e\u0301'.repeat(4), LENGTH],
    ['1,025 bytes', 'x'.repeat(1_025), SIZE],
    ['1,026 bytes that NFKC makes 342', '\uff58'.repeat(342), SIZE],
    ['96 bytes that NFKC makes 1,056', LIGATURE.repeat(32), SIZE],
    ['the size of a whole body', 'x'.repeat(65_000), SIZE],
    ['a lone surrogate', 'password\ud800', 'must hold no lone surrogate'],
    ['surrogates the wrong way round', 'password\udc00\ud800', 'must hold no lone surrogate'],
  ])('a password of %s is rejected', (_, value, rule) => {
    const { error } = password().safeParse(value);
    expect(error?.issues.map(({ message }) => message)).toEqual([rule]);
    if (value !== '') expect(JSON.stringify(error?.issues)).not.toContain(JSON.stringify(value).slice(1, -1));
  });

  test.each([[null], [12_345_678], [['abcdefgh']], [{}], [true]])('%p is rejected as a password', (value) => {
    expect(password().safeParse(value).success).toBe(false);
  });

  test('a password has a description in the schema', () => {
    expect(z.toJSONSchema(password())).toMatchObject({ type: 'string', minLength: 8, format: 'password' });
  });
});

describe('a hash', () => {
  test('a password hash is argon2id of the given cost, and verifies its password only', async () => {
    const { hash, isNormalised } = await open().hash('correct horse');
    expect(hash).toStartWith('$argon2id$v=19$m=19456,t=2,p=1$');
    expect(passwordHash().safeParse(hash).success).toBe(true);
    expect(isNormalised).toBe(true);
    expect(await Bun.password.verify('correct horse', hash)).toBe(true);
    expect(await Bun.password.verify('correct horsf', hash)).toBe(false);
    const dearer = await open({ memoryKib: 32_768, passes: 3 }).hash('correct horse');
    expect(dearer.hash).toStartWith('$argon2id$v=19$m=32768,t=3,p=1$');
  });

  test('each hash of a password is different', async () => {
    const hasher = open(CHEAP);
    const hashes = await Promise.all([hasher.hash('correct horse'), hasher.hash('correct horse')]);
    expect(hashes[0]?.hash).not.toBe(hashes[1]?.hash);
  });

  test.each([
    ['wide characters', FULL_WIDTH, 'password123'],
    ['decomposed characters', 'pässwörter', 'pa\u0308sswo\u0308rter'],
    ['a ligature', '\ufb03nancial', 'ffinancial'],
  ])('a password hash is made of the text after NFKC: %s', async (_, given, other) => {
    const { hash } = await open(CHEAP).hash(given);
    expect(normalisedPassword(given)).toBe(normalisedPassword(other));
    expect(await Bun.password.verify(normalisedPassword(other), hash)).toBe(true);
    const { hash: ofOther } = await open(CHEAP).hash(other);
    expect(await Bun.password.verify(normalisedPassword(given), ofOther)).toBe(true);
  });

  test('a hash depends on every byte of the longest password, and on bytes after a NUL', async () => {
    const hasher = open(CHEAP);
    const long = 'x'.repeat(LIMITS.passwordBytesMax - 1);
    const { hash } = await hasher.hash(`${long}a`);
    expect(await Bun.password.verify(`${long}b`, hash)).toBe(false);
    expect(await Bun.password.verify(`${long}a`, hash)).toBe(true);
    const { hash: ofNul } = await hasher.hash('password\0one');
    expect(await Bun.password.verify('password\0two', ofNul)).toBe(false);
  });
});

describe('the hasher process', () => {
  test('hashing a password takes no CPU time of the serving process', async () => {
    const hasher = open();
    await hasher.hash('correct horse');
    const [began, before] = [performance.now(), process.cpuUsage()];
    for (let count = 0; count < 20; count += 1) await hasher.hash('correct horse');
    const { user, system } = process.cpuUsage(before);
    expect((user + system) / 1_000).toBeLessThan((performance.now() - began) / 4);
  });

  test('the hasher queues 64 passwords, and rejects more at once', async () => {
    const hasher = openOnce(CHEAP);
    await doWithRetry(() => hasher.hash('correct horse'));
    const outcomes = await outcomesOfFullQueue(() => hasher.hash('correct horse'));
    expect(outcomes.slice(0, 5)).toEqual(Array(5).fill('overloaded'));
    expect(outcomes.slice(5)).toEqual(Array(65).fill('done'));
  });

  test('a password hash is rejected as overloaded after 2 s', async () => {
    const hasher = openOnce({ memoryKib: 65_536, passes: 1_000 });
    // A busy machine delays timers of this process alike.
    const sleeps = [LIMITS.hashMsMax - 50, LIMITS.answerMsMax].map((ms) => Bun.sleep(ms));
    const error = await hasher.hash('correct horse').catch((reason: unknown) => reason);
    expect((error as Fault).code).toBe('overloaded');
    expect(sleeps.map((each) => Bun.peek.status(each))).toEqual(['fulfilled', 'pending']);
    expect(Bun.inspect(error)).not.toContain('correct horse');
  }, 300_000);
});

describe('the cost of a password hash', () => {
  /** Of the OWASP Password Storage Cheat Sheet: the least passes over so much memory, in KiB. */
  const OWASP: readonly [number, number][] = [
    [47_104, 1],
    [19_456, 2],
    [12_288, 3],
    [9_216, 4],
    [7_168, 5],
  ];

  test.each([...PASSWORD_COSTS])(
    'hashes of the cost %s are as strong as OWASP asks for, and can be checked',
    (_, cost) => {
      const [, passes = Number.POSITIVE_INFINITY] = OWASP.find(([memory]) => cost.memoryKib >= memory) ?? [];
      expect(cost.passes).toBeGreaterThanOrEqual(passes);
      expect(isCheckable(decoyHash(newHashKind(cost)))).toBe(true);
    },
  );
});
