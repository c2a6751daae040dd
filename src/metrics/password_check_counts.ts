import { METRICS } from './declarations.ts';
import { counter, type Family, histogram } from './family.ts';
import { openHistogramCounts } from './histogram.ts';

export type PasswordMechanism = (typeof MECHANISMS)[number];

/** Counts requests to check a password since this process started, from 0 on, so that the first of each kind is seen as a rise. */
export interface PasswordCheckCounts {
  record(mechanism: PasswordMechanism, outcome: string, milliseconds: number): void;
  collect(): readonly Family[];
}

/** In seconds: one hash takes 0.03 to 1.2, and a request waits for at most 5. */
const BOUNDS = Object.freeze([0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5]);
const CHECKED = ['right', 'wrong'];
const MECHANISMS = ['password', 'password_check'] as const;
const OUTCOMES = [...CHECKED, 'throttled', 'overloaded'];

export function openPasswordCheckCounts(): PasswordCheckCounts {
  const open = () => ({
    outcomes: new Map(OUTCOMES.map((outcome) => [outcome, 0])),
    seconds: openHistogramCounts(BOUNDS),
  });
  const counts = new Map(MECHANISMS.map((mechanism) => [mechanism, open()]));
  return {
    record(mechanism, outcome, milliseconds) {
      const known = counts.get(mechanism);
      if (!known) return;
      known.outcomes.set(outcome, (known.outcomes.get(outcome) ?? 0) + 1);
      if (CHECKED.includes(outcome)) known.seconds.add(milliseconds / 1_000);
    },
    collect: () => [
      counter(
        METRICS.passwordChecks,
        [...counts].flatMap(([mechanism, { outcomes }]) =>
          [...outcomes].map(([outcome, value]) => ({ labels: { mechanism, outcome }, value })),
        ),
      ),
      histogram(
        METRICS.passwordCheckDuration,
        BOUNDS,
        [...counts].map(([mechanism, { seconds }]) => seconds.read({ mechanism })),
      ),
    ],
  };
}
