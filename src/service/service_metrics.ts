import { SIGN_IN_PLACES_MAX } from '../auth/sign_in/queue.ts';
import { LIMITS } from '../domain/limits.ts';
import { METRICS } from '../metrics/declarations.ts';
import { counter, gauge, type Labels, type Sample } from '../metrics/family.ts';
import { type Collector, startTimeGauge } from '../metrics/metrics.ts';
import type { OutcomeCounts } from '../metrics/outcome_counts.ts';
import type { Engine, QueueFigures } from '../store/engine.ts';
import type { DeliveryLag } from '../store/webhooks/progress.ts';

/** Sources of the metrics of a serving process. */
export interface ServiceMetricSources {
  readonly version: string;
  readonly engine: string;
  readonly startedAt: number;
  readonly database: Pick<Engine, 'figures' | 'embedded'>;
  /** Of the reader processes; undefined if there are none. */
  readonly readers: (() => QueueFigures) | undefined;
  readonly hasher: () => QueueFigures;
  /** Of the password checks. */
  readonly checks: () => QueueFigures;
  /** The number of identity providers that are being called. */
  readonly discoveries: () => number;
  readonly pending: () => number;
}

/** The metrics of a serving process that are not about single requests. */
export function serviceMetrics(measured: ServiceMetricSources): Collector {
  const { version, engine, startedAt, database, pending } = measured;
  return () => [
    gauge(METRICS.build, sample({ version, runtime: `bun ${Bun.version}` }, 1)),
    gauge(METRICS.engine, sample({ engine }, 1)),
    startTimeGauge(startedAt),
    ...queueMetrics(measured),
    gauge(METRICS.requestsInFlight, pending()),
    gauge(METRICS.writeAheadLog, database.embedded?.logBytes()),
    counter(METRICS.commits, database.figures().commits),
    counter(METRICS.commitRetries, database.figures().retries),
  ];
}

/** Length and capacity of each queue, and the work in progress. */
function queueMetrics({ database: { figures }, readers, hasher, checks, discoveries }: ServiceMetricSources) {
  const lists = readers?.() ?? figures().lists;
  const [hashes, checking] = [hasher(), checks()];
  return [
    gauge(METRICS.queueLength, [
      ...sample({ queue: 'writes' }, figures().writesWaiting),
      ...sample({ queue: 'lists' }, lists?.waiting),
      ...sample({ queue: 'hashes' }, hashes.waiting),
      ...sample({ queue: 'checks' }, checking.waiting),
    ]),
    gauge(METRICS.queueCapacity, [
      ...sample({ queue: 'writes' }, LIMITS.writesQueuedMax),
      ...sample({ queue: 'lists' }, lists && LIMITS.listsWaitingMax),
      ...sample({ queue: 'hashes' }, LIMITS.hashesWaitingMax),
      ...sample({ queue: 'checks' }, SIGN_IN_PLACES_MAX),
    ]),
    gauge(METRICS.queueInProgress, [
      ...sample({ queue: 'lists' }, lists?.working),
      ...sample({ queue: 'hashes' }, hashes.working),
      ...sample({ queue: 'checks' }, checking.working),
      ...sample({ queue: 'discoveries' }, discoveries()),
    ]),
  ];
}

/** `ageMs`: undefined before the first request. */
export function accessMetrics(ageMs: () => number | undefined): Collector {
  return () => [gauge(METRICS.accessTableAge, seconds(ageMs()))];
}

/** `ageMs`: undefined if another process writes checkpoints. */
export function checkpointMetrics(ageMs: () => number | undefined): Collector {
  return () => [gauge(METRICS.checkpointAge, seconds(ageMs()))];
}

const seconds = (ms: number | undefined) => (ms === undefined ? undefined : ms / 1_000);

/** The sources of the metrics of change streams and webhook targets. */
export interface FeedMetricSources {
  /** The number of open change streams. */
  readonly streams: () => number;
  /** The lag of the targets that this process delivers to. */
  readonly lag: () => Promise<readonly (readonly [webhookId: string, lag: DeliveryLag])[]>;
  readonly counts: OutcomeCounts;
  readonly now: () => number;
}

/** Metrics of change streams and of each webhook target. One process delivers, and reports the lag. */
export function feedMetrics({ streams, lag, counts, now }: FeedMetricSources): readonly Collector[] {
  return [
    () => [gauge(METRICS.changeStreams, streams())],
    async () => {
      const targets = await lag();
      const ofTargets = (figure: (lag: DeliveryLag) => number) =>
        targets.flatMap(([webhook, behind]) => sample({ webhook }, figure(behind)));
      return [
        gauge(
          METRICS.webhookLag,
          ofTargets(({ behindSince: at }) => (at === undefined ? 0 : Math.max(0, now() - at) / 1_000)),
        ),
        gauge(
          METRICS.webhookLaggingRealms,
          ofTargets(({ failingRealms }) => failingRealms),
        ),
        gauge(
          METRICS.webhookDeadLetters,
          ofTargets(({ deadLetters }) => deadLetters),
        ),
      ];
    },
    counts.collect,
  ];
}

/** Returns no sample for an undefined value. */
function sample(labels: Labels, value: number | undefined): readonly Sample[] {
  return value === undefined ? [] : [{ labels, value }];
}
