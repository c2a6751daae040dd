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
  /**
   * Rejects with Fault `overloaded` where `hashesWaitingMax` wait, or after `hashMsMax`, which begins after the rest of the worker.
   * Call it with one password at a time: the worker does not rest between concurrent checks.
   */
  check(request: CheckRequest): Promise<PasswordCheck>;
  close(): Promise<void>;
}

interface CheckerDeps {
  /** A worker without checks for this long is ended. */
  readonly idleMsMax?: number;
  readonly sleep?: (ms: number) => Promise<unknown>;
}

/**
 * Lower than that of the hasher: anybody may send passwords to check, and lookups on the same processor should keep most of it
 * (docs/decisions/0024-sign-in-by-password.md#hashes).
 */
export const CHECKER_NICENESS = 10;

/** Rest after a check, as a multiple of the time that it waited for a processor, at most REST_MS_MAX. */
const REST_RATIO = 3;
const REST_MS_MAX = 100;

/** Response of the worker. */
interface CheckResponse {
  readonly result: PasswordCheck;
  /** Milliseconds in which the check did not run: other work had the processor, or a quota was used up. */
  readonly waitedMs: number;
}

/**
 * One worker checks passwords, one after the other, so that a queue of them delays no write that hashes one. It rests after a check
 * that waited for a processor: lookups wait for the same processors, in this process or in a database on this machine.
 */
export function openChecker({
  idleMsMax = LIMITS.workerIdleMsMax,
  sleep = Bun.sleep,
}: CheckerDeps = {}): Checker {
  const { request, close } = openPool({
    command: workerCommand('checker'),
    niceness: CHECKER_NICENESS,
    workersMax: 1,
    idleMsMax,
    waitingMax: LIMITS.hashesWaitingMax,
    waitMsMax: LIMITS.hashMsMax,
  });
  let rested: Promise<unknown> = Promise.resolve();
  return {
    async check(checked) {
      await rested;
      const response = request<CheckResponse>(checked);
      // A check that was too late has waited longest.
      rested = response
        .then(
          ({ waitedMs }) => restMs(waitedMs),
          () => REST_MS_MAX,
        )
        .then(sleep);
      return (await response).result;
    },
    close,
  };
}

export const restMs = (waitedMs: number): number => Math.min(waitedMs * REST_RATIO, REST_MS_MAX);

/** In the worker. */
export function timedCheck(request: unknown): CheckResponse {
  const startedAt = performance.now();
  const usageBefore = process.cpuUsage();
  const result = checkResult(request as CheckRequest);
  const { user, system } = process.cpuUsage(usageBefore);
  // Other threads of the worker may have run as well.
  const waitedMs = Math.max(0, performance.now() - startedAt - (user + system) / 1_000);
  return { result, waitedMs };
}

/** Bcrypt reads no more of a password. */
const BCRYPT_BYTES = 72;

/**
 * How an imported hash was made is not known, so it is compared with the text as typed, and after NFKC where that differs. Programs
 * differ in what they do with a longer password than bcrypt reads: `Bun.password` hashes it first, others cut it. A wrong password
 * costs every comparison.
 */
function checkResult({ hash, password, isNormalised }: CheckRequest): PasswordCheck {
  const normalised = normalisedPassword(password);
  const texts = [...new Set(isNormalised ? [normalised] : [password, normalised])].map((text) =>
    Buffer.from(text),
  );
  if (texts.some((text) => Bun.password.verifySync(text, hash))) return { isRight: true, isCut: false };
  const cut = isBcrypt(hash) ? texts.filter(({ length }) => length > BCRYPT_BYTES) : [];
  const isRight = cut.some((text) => Bun.password.verifySync(text.subarray(0, BCRYPT_BYTES), hash));
  return { isRight, isCut: isRight };
}
