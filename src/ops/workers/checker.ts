import { createCipheriv, pbkdf2Sync, scryptSync, timingSafeEqual } from 'node:crypto';
import { LIMITS } from '../../model/limits.ts';
import { normalisedPassword } from '../../model/password.ts';
import {
  type CheckRequest,
  isBcrypt,
  type PasswordCheck,
  readDerivedKey,
} from '../../model/password_hash.ts';
import { workerCommand } from './command.ts';
import { openPool } from './pool.ts';

/**
 * Lower than that of the hasher: anybody may send passwords to check, and lookups on the same processor should keep most of it
 * (docs/guides/password-guessing.md#hashes).
 */
export const CHECKER_NICENESS = 10;

/** One worker checks passwords, one after the other, so that a queue of them delays no write that hashes one. */
export function openChecker() {
  const { request, close } = openPool({
    command: workerCommand('checker'),
    niceness: CHECKER_NICENESS,
    workersMax: 1,
    waitingMax: LIMITS.hashesWaitingMax,
    waitMsMax: LIMITS.hashMsMax,
  });
  return {
    /** Rejects with Fault `overloaded` where `hashesWaitingMax` wait, or after `hashMsMax`. */
    check: (checked: CheckRequest) => request<PasswordCheck>(checked),
    close,
  };
}

/** Rest after a check, as a multiple of the time that it waited for a processor, at most REST_MS_MAX. */
const REST_RATIO = 3;
const REST_MS_MAX = 100;

/**
 * In the worker. It rests between checks if they waited for a processor: lookups wait for the same processors, in the service or in a
 * database on this machine (docs/guides/password-guessing.md#hashes).
 */
export function openRestingCheck(sleep: (ms: number) => void = Bun.sleepSync) {
  let restsUntil = 0;
  return (request: CheckRequest): PasswordCheck => {
    sleep(Math.max(0, restsUntil - performance.now()));
    const startedAt = performance.now();
    const usageBefore = process.cpuUsage();
    const result = checkResult(request);
    const { user, system } = process.cpuUsage(usageBefore);
    const endedAt = performance.now();
    restsUntil = endedAt + restMs(endedAt - startedAt - (user + system) / 1_000);
    return result;
  };
}

/** `waitedMs`: less than 0 where other threads of the worker ran as well. */
export const restMs = (waitedMs: number): number => Math.min(Math.max(0, waitedMs) * REST_RATIO, REST_MS_MAX);

/** Bcrypt reads no more of a password. */
const BCRYPT_BYTES = 72;

/**
 * How an imported hash was made is not known, so it is compared with the text as typed, and after NFKC where that differs. Programs
 * differ in what they do with a longer password than bcrypt reads: `Bun.password` hashes it first, others cut it. A wrong password
 * costs every comparison.
 */
export function checkResult(request: CheckRequest): PasswordCheck {
  const { hash, password, isNormalised } = request;
  const normalised = normalisedPassword(password);
  const texts = [...new Set(isNormalised ? [normalised] : [password, normalised])].map((text) =>
    Buffer.from(text),
  );
  if (texts.some((text) => matches(text, request))) return { isRight: true, isCut: false };
  const cut = isBcrypt(hash) ? texts.filter(({ length }) => length > BCRYPT_BYTES) : [];
  const isRight = cut.some((text) => matches(text.subarray(0, BCRYPT_BYTES), request));
  return { isRight, isCut: isRight };
}

/** Whether a hash was made from a password. */
function matches(password: Uint8Array, { hash, signerKey }: CheckRequest): boolean {
  const derived = readDerivedKey(hash);
  if (!derived) return Bun.password.verifySync(password, hash);
  const { salt, key } = derived;
  if ('rounds' in derived)
    return timingSafeEqual(pbkdf2Sync(password, salt, derived.rounds, key.length, derived.digest), key);
  const { N, r, p, signerKeyId } = derived;
  const options = { N, r, p, maxmem: SCRYPT_MEMORY_MAX };
  if (signerKeyId === undefined) return timingSafeEqual(scryptSync(password, salt, key.length, options), key);
  const cipher = createCipheriv('aes-256-ctr', scryptSync(password, salt, 32, options), Buffer.alloc(16));
  const encrypted = cipher.update(signerKey ?? '', 'base64');
  return encrypted.length === key.length && timingSafeEqual(encrypted, key);
}

/** More than the costliest scrypt hash needs: 128 MiB, and a block of each lane. */
const SCRYPT_MEMORY_MAX = 2 ** 28;
