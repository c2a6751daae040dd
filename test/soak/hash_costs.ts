import { randomBytes } from 'node:crypto';
import { median } from '../../bench/load.ts';
import { Fault } from '../../src/model/fault.ts';
import { signerKeyId } from '../../src/model/imported_hash.ts';
import { LIMITS } from '../../src/model/limits.ts';
import { decoyHash, isCheckable } from '../../src/model/password_hash.ts';
import { openChecker } from '../../src/ops/workers/checker.ts';

/**
 * Whether a check with the costliest hash of each kind that an import accepts takes about as long as one with the costliest of argon2id
 * (docs/guides/password-guessing.md#hashes). The password is wrong, NFKC changes it, and bcrypt does not read all of it: no other
 * one is compared more often. A check that is rejected after `hashMsMax` counts as one of that time.
 */
const SIGNER_KEY = randomBytes(64);
const COSTLIEST: readonly (readonly [kind: string, beforeSalt: string])[] = [
  ['argon2id', '$argon2id$v=19$m=262144,t=2,p=1$'],
  ['argon2id, 8 lanes', '$argon2id$v=19$m=4096,t=128,p=8$'],
  ['argon2i', '$argon2i$v=19$m=262144,t=2,p=1$'],
  ['bcrypt', '$2b$12$'],
  ['PBKDF2, SHA-1', '$pbkdf2-sha1$i=1500000,l=20$'],
  ['PBKDF2, SHA-1, 4 blocks', '$pbkdf2-sha1$i=375000,l=64$'],
  ['PBKDF2, SHA-256', '$pbkdf2-sha256$i=1500000,l=32$'],
  ['PBKDF2, SHA-512', '$pbkdf2-sha512$i=600000,l=64$'],
  ['scrypt', '$scrypt$ln=17,r=8,p=1$'],
  ['scrypt, 128 lanes', '$scrypt$ln=10,r=8,p=128$'],
  ['scrypt of Firebase', `$scrypt$ln=17,r=8,p=1,k=${signerKeyId(SIGNER_KEY)}$`],
];
const PASSWORD = 'wrong ﬁne battery staple '.padEnd(73, 'x');
const ROUNDS = 5;
/** Of the median time with argon2id, the first kind. */
const RATIO_MAX = 1.5;

const checker = openChecker();
async function checkMs(hash: string): Promise<number> {
  const signerKey = SIGNER_KEY.toString('base64');
  const began = performance.now();
  try {
    await checker.check({ hash, password: PASSWORD, isNormalised: false, signerKey });
    return performance.now() - began;
  } catch (error) {
    if (error instanceof Fault && error.code === 'overloaded') return LIMITS.hashMsMax;
    throw error;
  }
}

// The first check starts the worker.
await checkMs(decoyHash('$2b$04$'));
printRow(['hash', 'comparisons', 'median ms', 'of argon2id']);
const medians: number[] = [];
for (const [kind, beforeSalt] of COSTLIEST) {
  const hash = decoyHash(beforeSalt);
  if (!isCheckable(hash)) throw new Error(`no import accepts ${hash}`);
  const times: number[] = [];
  for (let round = 0; round < ROUNDS; round += 1) times.push(await checkMs(hash));
  medians.push(median(times));
  const comparisons = beforeSalt.startsWith('$2') ? '4' : '2';
  printRow([kind, comparisons, median(times).toFixed(0), ratioOf(median(times)).toFixed(2)]);
}
await checker.close();
const greatest = ratioOf(Math.max(...medians));
const passed = greatest <= RATIO_MAX;
console.log(
  `costliest hashes: at most ${greatest.toFixed(2)} of the time with argon2id, allowed ${RATIO_MAX}${passed ? '' : ' (!)'}`,
);
process.exitCode = passed ? 0 : 1;

function ratioOf(ms: number): number {
  return ms / (medians[0] ?? Number.NaN);
}

function printRow([kind = '', ...figures]: readonly string[]): void {
  console.log(kind.padEnd(28) + figures.map((each) => each.padStart(12)).join(''));
}
