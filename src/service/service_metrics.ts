import { LIMITS } from '../domain/limits.ts';
import type { DeliveryCounts } from '../metrics/delivery_counts.ts';
import { counter, gauge, type Labels, type Sample } from '../metrics/family.ts';
import { type Collector, startTimeGauge } from '../metrics/metrics.ts';
import type { Engine } from '../store/engine.ts';
import type { PoolFigures } from '../workers/pool.ts';

/** Where the figures of a running service are. */
export interface Measured {
  readonly version: string;
  readonly engine: string;
  readonly startedAt: number;
  readonly figures: Engine['figures'];
  /** Of the workers that read lists; undefined where there are none. */
  readonly readers: (() => PoolFigures) | undefined;
  readonly hasher: () => PoolFigures;
  /** How many identity providers are being asked. */
  readonly discoveries: () => number;
  readonly pending: () => number;
}

/** What a serving process measures besides its requests. */
export function serviceMetrics(measured: Measured): Collector {
  const { version, engine, startedAt, figures, pending } = measured;
  return () => [
    gauge(
      'max',
      'authrealm_build_info',
      'The release and its runtime, as labels.',
      sample({ version, runtime: `bun ${Bun.version}` }, 1),
    ),
    gauge('max', 'authrealm_engine_info', 'The engine of the database, as a label.', sample({ engine }, 1)),
    startTimeGauge(startedAt),
    ...queueMetrics(measured),
    gauge('sum', 'authrealm_requests_pending', 'Requests that wait for their answer.', pending()),
    counter('authrealm_commits_total', 'Transactions of writes that were committed.', figures().commits),
    counter(
      'authrealm_commits_hindered_total',
      'Commits delayed or retried because of lock contention.',
      figures().busy,
    ),
  ];
}

/** What waits, and for how much there is room; what is being worked on. */
function queueMetrics({ figures, readers, hasher, discoveries }: Measured) {
  const lists = readers?.() ?? figures().lists;
  const hashes = hasher();
  return [
    gauge('sum', 'authrealm_queue_waiting', 'Work that waits.', [
      ...sample({ queue: 'writes' }, figures().writesWaiting),
      ...sample({ queue: 'lists' }, lists?.waiting),
      ...sample({ queue: 'hashes' }, hashes.waiting),
    ]),
    gauge('sum', 'authrealm_queue_waiting_max', 'How much may wait before more is rejected.', [
      ...sample({ queue: 'writes' }, LIMITS.writesQueuedMax),
      ...sample({ queue: 'lists' }, lists && LIMITS.listsWaitingMax),
      ...sample({ queue: 'hashes' }, LIMITS.hashesWaitingMax),
    ]),
    gauge('sum', 'authrealm_queue_working', 'Work in progress, concurrently with the requests.', [
      ...sample({ queue: 'lists' }, lists?.working),
      ...sample({ queue: 'hashes' }, hashes.working),
      ...sample({ queue: 'discoveries' }, discoveries()),
    ]),
  ];
}

/** `ageMs`: undefined before the first time that anybody asked. */
export function accessMetrics(ageMs: () => number | undefined): Collector {
  const help = 'Age of the clients and keys in memory; it grows while there are no requests.';
  return () => [gauge('max', 'authrealm_access_table_age_seconds', help, seconds(ageMs()))];
}

/** `ageMs`: undefined where another process writes checkpoints. */
export function checkpointMetrics(ageMs: () => number | undefined): Collector {
  const help = 'Time since every checkpoint was written: more than a minute where a destination is away.';
  return () => [gauge('max', 'authrealm_checkpoint_age_seconds', help, seconds(ageMs()))];
}

const seconds = (ms: number | undefined) => (ms === undefined ? undefined : ms / 1_000);

/** What a webhook target did not receive. */
interface Undelivered {
  /** Of the oldest change. */
  readonly since: number | undefined;
  readonly realms: number;
  readonly letters: number;
}

interface FeedMeasured {
  /** How many streams of changes are open. */
  readonly streams: () => number;
  readonly arrears: () => Promise<readonly (readonly [webhookId: string, undelivered: Undelivered])[]>;
  readonly counts: DeliveryCounts;
  readonly now: () => number;
}

/** The streams of the feed, and each webhook target by its identifier. One process delivers to a target. */
export function feedMetrics({ streams, arrears, counts, now }: FeedMeasured): readonly Collector[] {
  return [
    () => [gauge('sum', 'authrealm_change_streams', 'Streams of changes that are open.', streams())],
    async () => {
      const targets = await arrears();
      const ofTargets = (figure: (undelivered: Undelivered) => number) =>
        targets.flatMap(([webhook, undelivered]) => sample({ webhook }, figure(undelivered)));
      return [
        gauge(
          'max',
          'authrealm_webhook_behind_seconds',
          'Age of the oldest change that a target should have received and did not; 0 where there is none.',
          ofTargets(({ since }) => (since === undefined ? 0 : Math.max(0, now() - since) / 1_000)),
        ),
        gauge(
          'max',
          'authrealm_webhook_realms_behind',
          `Realms of which a target did not receive something that is retried; counted to ${LIMITS.arrearsCountedMax}.`,
          ofTargets(({ realms }) => realms),
        ),
        gauge(
          'max',
          'authrealm_webhook_dead_letters',
          `Messages given up and not delivered later; counted to ${LIMITS.arrearsCountedMax}.`,
          ofTargets(({ letters }) => letters),
        ),
      ];
    },
    counts.collect,
  ];
}

/** No sample where there is no value. */
function sample(labels: Labels, value: number | undefined): readonly Sample[] {
  return value === undefined ? [] : [{ labels, value }];
}
