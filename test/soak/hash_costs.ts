import { randomBytes } from 'node:crypto';
import { median } from '../../bench/load.ts';
import { Fault } from '../../src/model/fault.ts';
import { signerKeyId } from '../../src/model/imported_hash.ts';
import { LIMITS } from '../../src/model/limits.ts';
import { decoyHash, isCheckable } from '../../src/model/password_hash.ts';
import { openChecker } from '../../src/ops/workers/checker.ts';

/**
 * Whether the worker checks a password in time with the costliest hashes of each kind that an import accepts
 * (docs/decisions/0024-sign-in-by-password.md#hashes). The password is wrong, NFKC changes it, and bcrypt does not read all of it: no other
 * one is compared more often. A check that takes longer than `hashMsMax` is rejected, and counted as late.
 */
const SIGNER_KEY = randomBytes(64);
const COSTLIEST: readonly (readonly [kind: string, beforeSalt: string])[] = [
  ['argon2id', '$argon2id$v=19$m=262144,t=2,p=1$'],
  ['argon2id, 64 KiB, 8 lanes', '$argon2id$v=19$m=64,t=8192,p=8$'],
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

const checker = openChecker();
/** The milliseconds of a check; undefined for one that is rejected. */
async function checkMs(hash: string): Promise<number | undefined> {
  const signerKey = SIGNER_KEY.toString('base64');
  const began = performance.now();
  try {
    await checker.check({ hash, password: PASSWORD, isNormalised: false, signerKey });
    return performance.now() - began;
  } catch (error) {
    if (error instanceof Fault && error.code === 'overloaded') return undefined;
    throw error;
  }
}

// The first check starts the worker.
await checkMs(decoyHash('$2b$04$'));
printRow(['hash', 'comparisons', 'median ms', 'slowest ms', 'late']);
let slowest = 0;
let late = 0;
for (const [kind, beforeSalt] of COSTLIEST) {
  const hash = decoyHash(beforeSalt);
  if (!isCheckable(hash)) throw new Error(`no import accepts ${hash}`);
  const times: number[] = [];
  for (let round = 0; round < ROUNDS; round += 1) {
    const ms = await checkMs(hash);
    if (ms === undefined) late += 1;
    else times.push(ms);
  }
  slowest = Math.max(slowest, ...times);
  const comparisons = beforeSalt.startsWith('$2') ? 4 : 2;
  const figures = [comparisons, median(times), Math.max(...times), ROUNDS - times.length];
  printRow([kind, ...figures.map((each) => each.toFixed(0))]);
}
await checker.close();
console.log(
  `costliest hashes: ${slowest.toFixed(0)} of ${LIMITS.hashMsMax} ms at most, ${late} of ${ROUNDS * COSTLIEST.length} checks late`,
);
process.exitCode = late === 0 ? 0 : 1;

function printRow([kind = '', ...figures]: readonly string[]): void {
  console.log(kind.padEnd(28) + figures.map((each) => each.padStart(12)).join(''));
}
