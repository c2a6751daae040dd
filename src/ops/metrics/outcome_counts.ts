import { METRICS } from './declarations.ts';
import { type Family, familyOf, histogram } from './family.ts';
import { openHistogramCounts } from './histogram.ts';

interface OutcomeMetrics {
  readonly total: Parameters<typeof familyOf>[0];
  readonly duration: Parameters<typeof histogram>[0];
  /** The label with the name of what is counted. */
  readonly label: string;
  /** Bounds of the duration, in seconds. */
  readonly bounds: readonly number[];
  readonly outcomes: readonly string[];
  /** Outcomes whose duration is not measured. */
  readonly unmeasured?: readonly string[];
  /** Names that are counted from the start; others from their first outcome on. */
  readonly names?: readonly string[];
}

export type OutcomeCounts = ReturnType<typeof openOutcomeCounts>;

/**
 * Counts outcomes and measures durations by name, since this process started. Each outcome begins with 0, so that its first is
 * seen as a rise.
 */
function openOutcomeCounts(metrics: OutcomeMetrics) {
  const { total, duration, label, bounds, outcomes, unmeasured = [], names = [] } = metrics;
  const open = () => ({
    outcomes: new Map([...outcomes, ...unmeasured].map((outcome) => [outcome, 0])),
    seconds: openHistogramCounts(bounds),
  });
  const counts = new Map(names.map((name) => [name, open()]));
  return {
    record(name: string, outcome: string, milliseconds: number): void {
      const known = counts.getOrInsertComputed(name, open);
      known.outcomes.set(outcome, (known.outcomes.get(outcome) ?? 0) + 1);
      if (!unmeasured.includes(outcome)) known.seconds.add(milliseconds / 1_000);
    },
    /** Drops the counts of names that are not among these. */
    retain(existing: readonly string[]): void {
      for (const name of counts.keys()) if (!existing.includes(name)) counts.delete(name);
    },
    collect: (): readonly Family[] => [
      familyOf(
        total,
        [...counts].flatMap(([name, known]) =>
          [...known.outcomes].map(([outcome, value]) => ({ labels: { [label]: name, outcome }, value })),
        ),
      ),
      histogram(
        duration,
        bounds,
        [...counts].map(([name, { seconds }]) => seconds.read({ [label]: name })),
      ),
    ],
  };
}

/** Attempts to deliver to each webhook target. The time-out of an attempt is 15 s. */
export const openDeliveryCounts = (outcomes: readonly string[]) =>
  openOutcomeCounts({
    total: METRICS.webhookDeliveries,
    duration: METRICS.webhookDeliveryDuration,
    label: 'webhook',
    bounds: [0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 15],
    outcomes,
  });

const MECHANISMS = ['password', 'password_check'] as const;
export type PasswordMechanism = (typeof MECHANISMS)[number];

/** Requests to check a password: one hash takes 0.03 to 1.2 s, and a request waits for at most 5 s. */
export const openPasswordCheckCounts = () =>
  openOutcomeCounts({
    total: METRICS.passwordChecks,
    duration: METRICS.passwordCheckDuration,
    label: 'mechanism',
    bounds: [0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5],
    outcomes: ['right', 'wrong'],
    unmeasured: ['throttled', 'overloaded'],
    names: MECHANISMS,
  });

const SIGN_IN_MECHANISMS = ['oidc', 'oidc_check', 'self_signup'] as const;
export type SignInMechanism = (typeof SIGN_IN_MECHANISMS)[number];

/** Sign-ins through OpenID providers, whose requests take 4.5 s at most, and sign-ups. */
export const openSignInCounts = () =>
  openOutcomeCounts({
    total: METRICS.signIns,
    duration: METRICS.signInDuration,
    label: 'mechanism',
    bounds: [0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5],
    outcomes: ['known', 'linked', 'created', 'refused', 'unavailable'],
    unmeasured: ['throttled', 'overloaded'],
    names: SIGN_IN_MECHANISMS,
  });
