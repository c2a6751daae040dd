import { LIMITS } from '../domain/limits.ts';
import type { DeliveryCounts } from '../metrics/delivery_counts.ts';
import { counter, gauge, type Labels, type Sample } from '../metrics/family.ts';
import { type Collector, startTimeGauge } from '../metrics/metrics.ts';
import type { Engine } from '../store/engine.ts';
import type { PoolFigures } from '../workers/pool.ts';

/** Sources of the metrics of a serving process. */
export interface ServiceMetricSources {
  readonly version: string;
  readonly engine: string;
  readonly startedAt: number;
  readonly figures: Engine['figures'];
  /** Of the reader processes; undefined if there are none. */
  readonly readers: (() => PoolFigures) | undefined;
  readonly hasher: () => PoolFigures;
  /** The number of identity providers that are being called. */
  readonly discoveries: () => number;
  readonly pending: () => number;
}

/** The metrics of a serving process that are not about single requests. */
export function serviceMetrics(measured: ServiceMetricSources): Collector {
  const { version, engine, startedAt, figures, pending } = measured;
  return () => [
    gauge(
      'max',
      'authrealm_build_info',
      'Always 1; release and runtime are labels.',
      sample({ version, runtime: `bun ${Bun.version}` }, 1),
    ),
    gauge('max', 'authrealm_engine_info', 'Always 1; the database engine is a label.', sample({ engine }, 1)),
    startTimeGauge(startedAt),
    ...queueMetrics(measured),
    gauge('sum', 'authrealm_requests_in_flight', 'Requests in progress.', pending()),
    counter('authrealm_commits_total', 'Write transactions committed.', figures().commits),
    counter(
      'authrealm_commit_retries_total',
      'Commits delayed or retried because of lock contention.',
      figures().retries,
    ),
  ];
}

/** Length and capacity of each queue, and the work in progress. */
function queueMetrics({ figures, readers, hasher, discoveries }: ServiceMetricSources) {
  const lists = readers?.() ?? figures().lists;
  const hashes = hasher();
  return [
    gauge('sum', 'authrealm_queue_length', 'Jobs waiting, by queue.', [
      ...sample({ queue: 'writes' }, figures().writesWaiting),
      ...sample({ queue: 'lists' }, lists?.waiting),
      ...sample({ queue: 'hashes' }, hashes.waiting),
    ]),
    gauge(
      'sum',
      'authrealm_queue_capacity',
      'Jobs that may wait before the next one is rejected, by queue.',
      [
        ...sample({ queue: 'writes' }, LIMITS.writesQueuedMax),
        ...sample({ queue: 'lists' }, lists && LIMITS.listsWaitingMax),
        ...sample({ queue: 'hashes' }, LIMITS.hashesWaitingMax),
      ],
    ),
    gauge('sum', 'authrealm_queue_in_progress', 'Jobs in progress outside of the event loop, by queue.', [
      ...sample({ queue: 'lists' }, lists?.working),
      ...sample({ queue: 'hashes' }, hashes.working),
      ...sample({ queue: 'discoveries' }, discoveries()),
    ]),
  ];
}

/** `ageMs`: undefined before the first request. */
export function accessMetrics(ageMs: () => number | undefined): Collector {
  const help = 'Age of the clients and keys in memory; grows while there are no requests.';
  return () => [gauge('max', 'authrealm_access_table_age_seconds', help, seconds(ageMs()))];
}

/** `ageMs`: undefined if another process writes checkpoints. */
export function checkpointMetrics(ageMs: () => number | undefined): Collector {
  const help = 'Time since checkpoints and erasures were last written to every destination.';
  return () => [gauge('max', 'authrealm_checkpoint_age_seconds', help, seconds(ageMs()))];
}

const seconds = (ms: number | undefined) => (ms === undefined ? undefined : ms / 1_000);

/** What has not been delivered to a webhook target. */
interface Undelivered {
  /** The time of the oldest change. */
  readonly since: number | undefined;
  readonly realms: number;
  readonly deadLetters: number;
}

interface FeedMetricSources {
  /** The number of open change streams. */
  readonly streams: () => number;
  readonly lag: () => Promise<readonly (readonly [webhookId: string, undelivered: Undelivered])[]>;
  readonly counts: DeliveryCounts;
  readonly now: () => number;
}

/** Metrics of change streams and of each webhook target. One process delivers to a target and reports its metrics. */
export function feedMetrics({ streams, lag, counts, now }: FeedMetricSources): readonly Collector[] {
  return [
    () => [gauge('sum', 'authrealm_change_streams', 'Open change streams.', streams())],
    async () => {
      const targets = await lag();
      const ofTargets = (figure: (undelivered: Undelivered) => number) =>
        targets.flatMap(([webhook, undelivered]) => sample({ webhook }, figure(undelivered)));
      return [
        gauge(
          'max',
          'authrealm_webhook_lag_seconds',
          'Age of the oldest change not yet delivered, by webhook target; 0 if none.',
          ofTargets(({ since }) => (since === undefined ? 0 : Math.max(0, now() - since) / 1_000)),
        ),
        gauge(
          'max',
          'authrealm_webhook_lagging_realms',
          `Realms with undelivered messages that are retried, by webhook target; at most ${LIMITS.webhookLagCountedMax}.`,
          ofTargets(({ realms }) => realms),
        ),
        gauge(
          'max',
          'authrealm_webhook_dead_letters',
          `Dead deadLetters, by webhook target; at most ${LIMITS.webhookLagCountedMax}.`,
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
