import { LIMITS } from '../domain/limits.ts';
import { normalisedPassword } from '../domain/password.ts';
import { isBcrypt, type PasswordCheck } from '../domain/password_hash.ts';
import { workerCommand } from './command.ts';
import { openPool } from './pool.ts';

/** A password to compare with a hash that `isCheckable` accepts. */
export interface CheckRequest {
  readonly hash: string;
  readonly password: string;
  /** The hash was made from the text after NFKC. */
  readonly isNormalised: boolean;
}

export interface Checker {
  /** Rejects with Fault `overloaded` where `hashesWaitingMax` wait, or after `hashMsMax`. */
  check(request: CheckRequest): Promise<PasswordCheck>;
  close(): Promise<void>;
}

/**
 * Lower than that of the hasher: anybody may send passwords to check, and lookups on the same processor should keep most of it
 * (docs/decisions/0024-sign-in-by-password.md#hashes).
 */
export const CHECKER_NICENESS = 10;

/** Longest rest of the worker after a check, in milliseconds. */
const REST_MS_MAX = 50;

/**
 * One worker checks passwords, one after the other, so that a queue of them delays no write that hashes one. After a check it rests
 * for the processor time that this process used meanwhile: under a full load of lookups, checks then take half of a processor at most.
 */
export function openChecker(idleMsMax: number = LIMITS.workerIdleMsMax): Checker {
  const { request, close } = openPool({
    command: workerCommand('checker'),
    niceness: CHECKER_NICENESS,
    workersMax: 1,
    idleMsMax,
    waitingMax: LIMITS.hashesWaitingMax,
    waitMsMax: LIMITS.hashMsMax,
    workMsMax: LIMITS.workerIdleMsMax,
  });
  let rested: Promise<unknown> = Promise.resolve();
  return {
    async check(checked) {
      await rested;
      const usageBefore = process.cpuUsage();
      try {
        return await request<PasswordCheck>(checked);
      } finally {
        const { user, system } = process.cpuUsage(usageBefore);
        rested = Bun.sleep(Math.min((user + system) / 1_000, REST_MS_MAX));
      }
    },
    close,
  };
}

/** Bcrypt reads no more of a password. */
const BCRYPT_BYTES = 72;

/**
 * In the worker. How an imported hash was made is not known, so it is compared with the text as typed, and after NFKC where that
 * differs. Programs differ in what they do with a longer password than bcrypt reads: `Bun.password` hashes it first, others cut
 * it. A wrong password costs every comparison.
 */
export function checkResult(request: unknown): PasswordCheck {
  const { hash, password, isNormalised } = request as CheckRequest;
  const normalised = normalisedPassword(password);
  const texts = [...new Set(isNormalised ? [normalised] : [password, normalised])].map((text) =>
    Buffer.from(text),
  );
  if (texts.some((text) => Bun.password.verifySync(text, hash))) return { isRight: true, isCut: false };
  const cut = isBcrypt(hash) ? texts.filter(({ length }) => length > BCRYPT_BYTES) : [];
  const isRight = cut.some((text) => Bun.password.verifySync(text.subarray(0, BCRYPT_BYTES), hash));
  return { isRight, isCut: isRight };
}
