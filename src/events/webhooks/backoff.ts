import { LIMITS } from '../../domain/limits.ts';

/**
 * How long a message that was tried so often in vain waits: doubled each time up to a bound, and a quarter more or less, so that
 * realms of one receiver do not all come back at once. `chance` is from 0 to 1.
 */
export function backoffMs(attempts: number, chance: number): number {
  const doubled = LIMITS.webhookBackoffMsMin * 2 ** Math.min(attempts - 1, 30);
  return Math.round(Math.min(doubled, LIMITS.webhookBackoffMsMax) * (0.75 + chance / 2));
}
