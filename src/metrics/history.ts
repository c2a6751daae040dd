import type { Clock } from '../domain/id.ts';
import { LIMITS } from '../domain/limits.ts';
import { METRICS } from './declarations.ts';
import type { Snapshot } from './family.ts';
import { type Figures, figuresBetween, gaugeOf, type MetricsReading, readingOf } from './figures.ts';

/** The figures of one step. Without them it is a gap: the metrics could not be read, or the service restarted. */
export interface HistoryPoint extends Partial<Figures> {
  /** Milliseconds since the epoch. */
  readonly at: number;
  readonly webhook_lag_seconds?: number | undefined;
}

/** The metrics of all serving processes. */
export interface AllMetrics {
  /** Rejects with Fault `unavailable` if they are not collected in time. */
  readonly read: () => Promise<Snapshot>;
  /** The figures of the last hour, oldest first, since this service started. */
  readonly readHistory: () => Promise<readonly HistoryPoint[]>;
  readonly stop: () => void;
}

interface HistorySize {
  readonly stepMs: number;
  readonly pointsMax: number;
}

const LAST_HOUR: HistorySize = {
  stepMs: LIMITS.metricsHistoryStepMs,
  pointsMax: LIMITS.metricsHistoryPointsMax,
};

/** Reads the metrics once in each step and remembers the figures, but not the metrics, in memory. */
export function openMetricsHistory(
  read: () => Promise<Snapshot>,
  clock: Pick<Clock, 'now' | 'monotonic'>,
  { stepMs, pointsMax }: HistorySize = LAST_HOUR,
): AllMetrics {
  const points: HistoryPoint[] = [];
  let before: MetricsReading | undefined;

  async function addPoint(): Promise<void> {
    const now = await read().then(
      (snapshot) => readingOf(snapshot, clock.monotonic()),
      () => undefined,
    );
    points.push({ at: clock.now(), ...(now && pointBetween(before, now)) });
    if (points.length > pointsMax) points.shift();
    before = now;
  }

  const timer = setInterval(addPoint, stepMs).unref();
  return { read, readHistory: async () => points, stop: () => clearInterval(timer) };
}

function pointBetween(before: MetricsReading | undefined, now: MetricsReading): Omit<HistoryPoint, 'at'> {
  return {
    ...(before && figuresBetween(before, now)),
    webhook_lag_seconds: gaugeOf(now, METRICS.webhookLag.name),
  };
}
