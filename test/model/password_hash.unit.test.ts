import { expect, test } from 'bun:test';
import { passwordHash } from '../../src/model/imported_hash.ts';
import { isCheckable, isWeaker } from '../../src/model/password_hash.ts';
import { needsRehash } from '../../src/sign_in/credentials.ts';

const SALT = 'c29tZXNhbHQ';
const DIGEST = 'bQk8UB/VmZZF4Oo79iDXuL5/0ttZwg2f/5U52iv1cDc';
const argon2 = (parameters: string, name = 'argon2id') => `$${name}$v=19$${parameters}$${SALT}$${DIGEST}`;
const bcrypt = (cost: string, prefix = '2b') => `$${prefix}$${cost}$${'.'.repeat(53)}`;

test.each([
  argon2('m=8,t=1,p=1'),
  argon2('m=64,t=128,p=8'),
  argon2('m=64,t=1024,p=1'),
  argon2('m=262144,t=2,p=1'),
  argon2('m=262144,t=2,p=8', 'argon2i'),
  argon2('m=52428,t=10,p=1'),
  bcrypt('04'),
  bcrypt('12', '2a'),
  bcrypt('12', '2y'),
])('the hash %s is imported, and passwords are checked with it', (hash) => {
  expect(passwordHash().safeParse(hash).success).toBe(true);
  expect(isCheckable(hash)).toBe(true);
});

test.each([
  argon2('m=262144,t=3,p=1'),
  argon2('m=262144,t=10,p=1'),
  argon2('m=52429,t=10,p=1'),
  argon2('m=64,t=129,p=8'),
  argon2('m=64,t=1025,p=1'),
  argon2('m=262145,t=1,p=1'),
  argon2('m=524288,t=1,p=1'),
  argon2('m=65536,t=1,p=9'),
  argon2('m=15,t=1,p=2'),
  argon2('m=65536,t=1,p=1', 'argon2d'),
  argon2('m=65536,t=1,p=1').replace('v=19', 'v=16'),
  bcrypt('03'),
  bcrypt('13'),
  bcrypt('14', '2a'),
  bcrypt('31'),
  bcrypt('12', '2x'),
])('the hash %s is not imported, and counts as none', (hash) => {
  const { error } = passwordHash().safeParse(hash);
  expect(error?.issues.map(({ message }) => message)).toEqual([
    expect.stringMatching(/^must be argon2i or argon2id .*, bcrypt \(cost 4 to 12\), PBKDF2 .* or scrypt/),
  ]);
  expect(isCheckable(hash)).toBe(false);
});

const argon2Of = (saltBytes: number, digestBytes: number) => {
  const [salt, digest] = [saltBytes, digestBytes].map((count) =>
    Buffer.alloc(count, 7).toString('base64').replace(/=+$/, ''),
  );
  return `$argon2id$v=19$m=64,t=1,p=1$${salt}$${digest}`;
};

test.each([
  [8, 12, true],
  [64, 64, true],
  [7, 32, false],
  [65, 32, false],
  [16, 11, false],
  [16, 65, false],
])('an argon2 hash with a salt of %i bytes and a digest of %i counts: %p', (saltBytes, digestBytes, isIt) => {
  expect(isCheckable(argon2Of(saltBytes, digestBytes))).toBe(isIt);
});

test('an argon2 hash in another spelling of base64 counts as none', () => {
  const hash = argon2Of(8, 12);
  expect(isCheckable(hash.replace('BwcHBwcHBwc$', 'BwcHBwcHBwd$'))).toBe(false);
  expect(isCheckable(`${hash}=`)).toBe(false);
});

const COST = { memoryKib: 19_456, passes: 2 };

test.each([
  ['m=19456,t=2,p=1', 'argon2id', false],
  ['m=65536,t=3,p=4', 'argon2id', false],
  ['m=7168,t=6,p=1', 'argon2id', false],
  ['m=19456,t=1,p=1', 'argon2id', true],
  ['m=19455,t=2,p=1', 'argon2id', true],
  ['m=65536,t=3,p=4', 'argon2i', true],
])('a hash with %s of %s is weaker than 19456 KiB in 2 passes: %p', (parameters, name, isIt) => {
  expect(isWeaker(argon2(parameters, name), COST)).toBe(isIt);
});

test('a bcrypt hash is weaker than any argon2id', () => {
  expect(isWeaker(bcrypt('12'), COST)).toBe(true);
});

test('a password is rehashed after a right password where its hash was imported or is weak, and it was not cut', () => {
  const own = { hash: argon2('m=19456,t=2,p=1'), isNormalised: true };
  const right = { isRight: true, isCut: false };
  expect(needsRehash(own, right, COST)).toBe(false);
  expect(needsRehash({ ...own, isNormalised: false }, right, COST)).toBe(true);
  expect(needsRehash({ ...own, isNormalised: false }, { ...right, isRight: false }, COST)).toBe(false);
  expect(needsRehash({ ...own, isNormalised: false }, { ...right, isCut: true }, COST)).toBe(false);
  expect(needsRehash(own, right, { memoryKib: 19_456, passes: 3 })).toBe(true);
  expect(needsRehash({ ...own, hash: undefined }, right, { memoryKib: 19_456, passes: 3 })).toBe(false);
});
