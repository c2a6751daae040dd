import type { Uuid } from '../../model/id.ts';
import { LIMITS } from '../../model/limits.ts';
import type { Delivery } from './webhook.ts';

/**
 * The pause after a number of failed attempts: 1 s at first, doubled each time up to 5 minutes, plus or minus a quarter, so that
 * failed messages are not all due at once. `chance` is from 0 to 1.
 */
export function backoffMs(attempts: number, chance: number): number {
  const doubled = LIMITS.webhookBackoffMsMin * 2 ** Math.min(attempts - 1, 30);
  return Math.round(Math.min(doubled, LIMITS.webhookBackoffMsMax) * (0.75 + chance / 2));
}

/** Responses of an overloaded server, or of a gateway for it (RFC 6585, 4; RFC 9110, 15.6.3 to 15.6.5). */
const UNAVAILABLE: ReadonlySet<number | undefined> = new Set([429, 502, 503, 504]);

export type Availability = ReturnType<typeof openAvailability>;

/**
 * Whether a target seems unavailable: messages of two realms failed, and no message got a response in between. It is then
 * suspended: the retries of failed messages try it. The two realms may themselves be at fault, so further realms wait no longer
 * than the message that failed most often.
 */
export function openAvailability(monotonic: () => number) {
  let failedRealm: Uuid | undefined;
  let attempts = 0;
  let suspendedUntil = 0;
  const isSuspended = () => monotonic() < suspendedUntil;
  /** Called when the target was changed as well: it may be available now. */
  const restore = (): void => {
    failedRealm = undefined;
    attempts = 0;
    suspendedUntil = 0;
  };
  return {
    isSuspended,
    restore,
    record(delivery: Pick<Delivery, 'realm' | 'outcome' | 'status' | 'attempt'>): void {
      const { realm, outcome, status, attempt } = delivery;
      if (outcome !== 'unreachable' && !UNAVAILABLE.has(status)) {
        restore();
        return;
      }
      failedRealm ??= realm;
      attempts = Math.max(attempts, attempt);
      if (realm === failedRealm || isSuspended()) return;
      suspendedUntil = monotonic() + backoffMs(attempts, 1);
    },
  };
}
