import type { Uuid } from '../../domain/id.ts';
import { LIMITS } from '../../domain/limits.ts';
import type { Delivery } from './port.ts';

/**
 * The pause after a number of failed attempts: 1 s at first, doubled each time up to 5 minutes, plus or minus a quarter, so that
 * failed messages are not all due at once. `chance` is from 0 to 1.
 */
export function backoffMs(attempts: number, chance: number): number {
  const doubled = LIMITS.webhookBackoffMsMin * 2 ** Math.min(attempts - 1, 30);
  return Math.round(Math.min(doubled, LIMITS.webhookBackoffMsMax) * (0.75 + chance / 2));
}

/**
 * The backoff of a target that is unavailable: messages of two realms failed, and no message got a response in between. It is
 * then tried at the intervals of a failed message, and not once for each realm.
 */
export interface TargetBackoff {
  /** Whether realms must wait before they send. */
  isActive(): boolean;
  record(delivery: Pick<Delivery, 'realm' | 'outcome' | 'status'>): void;
  /** Called when the target was changed: it may be available now. */
  end(): void;
}

/** Responses of an overloaded server, or of a gateway for it (RFC 6585, 4; RFC 9110, 15.6.3 to 15.6.5). */
const UNAVAILABLE: ReadonlySet<number | undefined> = new Set([429, 502, 503, 504]);

export function openTargetBackoff(monotonic: () => number): TargetBackoff {
  let failures = 0;
  let firstRealm: Uuid | undefined;
  let endsAt = 0;
  const isActive = () => monotonic() < endsAt;
  const end = (): void => {
    failures = 0;
    firstRealm = undefined;
    endsAt = 0;
  };
  return {
    isActive,
    record({ realm, outcome, status }) {
      if (outcome !== 'unreachable' && !UNAVAILABLE.has(status)) return end();
      firstRealm ??= realm;
      // One realm that fails waits by itself. Messages that fail during the backoff do not extend it.
      if (isActive() || (failures === 0 && realm === firstRealm)) return;
      failures += 1;
      // The upper bound of the jitter: realms with as many failed attempts are due when it ends.
      endsAt = monotonic() + backoffMs(failures, 1);
    },
    end,
  };
}
