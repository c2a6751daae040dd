import { METRICS } from './declarations.ts';
import { counter, type Family, histogram } from './family.ts';
import { openHistogramCounts } from './histogram.ts';

/** One attempt to deliver to a webhook target. */
interface Attempt {
  readonly webhookId: string;
  readonly outcome: string;
  readonly durationMs: number;
}

/** Counts delivery attempts since this process started, for each existing target. */
export interface DeliveryCounts {
  record(attempt: Attempt): void;
  /** Drops the counts of targets that are not in the list. */
  retain(webhooks: readonly Pick<Attempt, 'webhookId'>[]): void;
  collect(): readonly Family[];
}

/** In seconds; the time-out of an attempt is 15 s. */
const BOUNDS = Object.freeze([0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 15]);

/** `outcomes`: reported with 0 from the first attempt on, so that the first of each is seen as a rise. */
export function openDeliveryCounts(outcomes: readonly string[]): DeliveryCounts {
  const open = () => ({
    outcomes: new Map(outcomes.map((outcome) => [outcome, 0])),
    seconds: openHistogramCounts(BOUNDS),
  });
  const counts = new Map<string, ReturnType<typeof open>>();
  return {
    record({ webhookId, outcome, durationMs }) {
      const known = counts.get(webhookId) ?? open();
      counts.set(webhookId, known);
      known.outcomes.set(outcome, (known.outcomes.get(outcome) ?? 0) + 1);
      known.seconds.add(durationMs / 1_000);
    },
    retain(webhooks) {
      const existing = new Set(webhooks.map(({ webhookId }) => webhookId));
      for (const webhookId of counts.keys()) if (!existing.has(webhookId)) counts.delete(webhookId);
    },
    collect: () => [
      counter(
        METRICS.webhookDeliveries,
        [...counts].flatMap(([webhook, known]) =>
          [...known.outcomes].map(([outcome, value]) => ({ labels: { webhook, outcome }, value })),
        ),
      ),
      histogram(
        METRICS.webhookDeliveryDuration,
        BOUNDS,
        [...counts].map(([webhook, { seconds }]) => seconds.read({ webhook })),
      ),
    ],
  };
}
