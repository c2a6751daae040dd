import type { Distribution, Sample } from './family.ts';
import { openTally } from './tally.ts';

/** What one attempt to tell a webhook target came to. */
interface Attempt {
  readonly webhookId: string;
  readonly outcome: string;
  readonly durationMs: number;
}

/** Counts what was sent to webhook targets since this process began: to those that there are, and no others. */
export interface DeliveryCounts {
  /** Of `seconds`. */
  readonly bounds: readonly number[];
  note(attempt: Attempt): void;
  /** Forgets targets that are gone. */
  keep(webhooks: readonly Pick<Attempt, 'webhookId'>[]): void;
  outcomes(): readonly Sample[];
  seconds(): readonly Distribution[];
}

/** In seconds: a target is given up after 15. */
const SECONDS = Object.freeze([0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 15]);

/** `outcomes`: those that are told from the first attempt on, so that the first of them is seen as a rise. */
export function openDeliveryCounts(outcomes: readonly string[]): DeliveryCounts {
  const open = () => ({
    outcomes: new Map(outcomes.map((outcome) => [outcome, 0])),
    seconds: openTally(SECONDS),
  });
  const counts = new Map<string, ReturnType<typeof open>>();
  return {
    bounds: SECONDS,
    note({ webhookId, outcome, durationMs }) {
      const known = counts.get(webhookId) ?? open();
      counts.set(webhookId, known);
      known.outcomes.set(outcome, (known.outcomes.get(outcome) ?? 0) + 1);
      known.seconds.add(durationMs / 1_000);
    },
    keep(webhooks) {
      const there = new Set(webhooks.map(({ webhookId }) => webhookId));
      for (const webhookId of counts.keys()) if (!there.has(webhookId)) counts.delete(webhookId);
    },
    outcomes: () =>
      [...counts].flatMap(([webhook, known]) =>
        [...known.outcomes].map(([outcome, value]) => ({ labels: { webhook, outcome }, value })),
      ),
    seconds: () => [...counts].map(([webhook, { seconds }]) => seconds.read({ webhook })),
  };
}
