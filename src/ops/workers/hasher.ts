import { LIMITS } from '../../model/limits.ts';
import { normalisedPassword, type PasswordCost } from '../../model/password.ts';
import type { MadeHash } from '../../model/password_hash.ts';
import { workerCommand } from './command.ts';
import { openPool } from './pool.ts';

/** The cost is part of the request: a worker reads no settings. */
interface HashRequest extends PasswordCost {
  readonly password: string;
}

/**
 * Between the lowest priority, at which a hash is late while the processors are busy, and one that takes from lookups what they need
 * (docs/decisions/0014-worker-processes.md).
 */
const NICENESS = 5;

/** One worker makes the hashes, one after the other. It exits after `idleMsMax` without one. */
export function openHasher(cost: PasswordCost, idleMsMax: number = LIMITS.workerIdleMsMax) {
  const { request, figures, close } = openPool({
    command: workerCommand('hasher'),
    niceness: NICENESS,
    workersMax: 1,
    idleMsMax,
    waitingMax: LIMITS.hashesWaitingMax,
    waitMsMax: LIMITS.hashMsMax,
  });
  return {
    /**
     * Hashes a password that `password()` accepted. Rejects with Fault `overloaded` where `hashesWaitingMax` wait, or after
     * `hashMsMax`.
     */
    async hash(password: string): Promise<MadeHash> {
      const { memoryKib, passes } = cost;
      const hash = await request<string>({ password, memoryKib, passes } satisfies HashRequest);
      return { hash, isNormalised: true };
    },
    figures,
    close,
  };
}

export type Hasher = ReturnType<typeof openHasher>;

/** In the worker, on the thread whose priority was lowered; a pool of the runtime might have started before. */
export function hashOf({ password, memoryKib, passes }: HashRequest): string {
  return Bun.password.hashSync(normalisedPassword(password), {
    algorithm: 'argon2id',
    memoryCost: memoryKib,
    timeCost: passes,
  });
}
