import type { DeliveryLag } from '../deliver/store/progress.ts';
import type { ServerSettings } from '../http/server/server.ts';
import { LIMITS } from '../model/limits.ts';
import { VERSION } from '../model/version.ts';
import { certificateExpiry } from '../ops/doctor/certificate.ts';
import { METRICS } from '../ops/metrics/declarations.ts';
import { familyOf, type Labels, type Sample, type SampleFamily } from '../ops/metrics/family.ts';
import { type Collector, startTimeGauge } from '../ops/metrics/metrics.ts';
import { lastBackupPath, readManifest } from '../ops/store/backups/manifest.ts';
import type { QueueFigures } from '../ops/store/engine.ts';
import { fileOf } from '../ops/store/open.ts';
import { SIGN_IN_PLACES_MAX } from '../sign_in/queue.ts';
import type { ServiceContext } from './service_context.ts';

/** Sources of the metrics of a serving process. */
interface ServiceMetricSources {
  readonly startedAt: number;
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
export function serviceMetrics(
  { settings: { database }, engine }: Pick<ServiceContext, 'settings' | 'engine'>,
  { startedAt, pending, readers, hasher, checks, discoveries }: ServiceMetricSources,
): Collector {
  return () => {
    const { writesWaiting, commits, retries, ...figures } = engine.figures();
    const lists = readers?.() ?? figures.lists;
    return [
      familyOf(METRICS.build, sample({ version: VERSION, runtime: `bun ${Bun.version}` }, 1)),
      familyOf(METRICS.engine, sample({ engine: database.engine }, 1)),
      startTimeGauge(startedAt),
      ...queueMetrics({
        writes: { waiting: writesWaiting, capacity: LIMITS.writesQueuedMax },
        lists: lists && { ...lists, capacity: LIMITS.listsWaitingMax },
        hashes: { ...hasher(), capacity: LIMITS.hashesWaitingMax },
        checks: { ...checks(), capacity: SIGN_IN_PLACES_MAX },
        discoveries: { working: discoveries() },
      }),
      familyOf(METRICS.requestsInFlight, pending()),
      familyOf(METRICS.writeAheadLog, engine.embedded?.logBytes()),
      familyOf(METRICS.commits, commits),
      familyOf(METRICS.commitRetries, retries),
    ];
  };
}

type Queue = Partial<QueueFigures> & { readonly capacity?: number };

/** Length and capacity of each queue, and the work in progress. */
function queueMetrics(queues: Readonly<Record<string, Queue | undefined>>) {
  const ofQueues = (metric: Parameters<typeof familyOf>[0], figure: keyof Queue) =>
    familyOf(
      metric,
      Object.entries(queues).flatMap(([queue, each]) => sample({ queue }, each?.[figure])),
    );
  return [
    ofQueues(METRICS.queueLength, 'waiting'),
    ofQueues(METRICS.queueCapacity, 'capacity'),
    ofQueues(METRICS.queueInProgress, 'working'),
  ];
}

/** An age in milliseconds as a gauge; undefined where there is none. */
export function ageMetrics(
  metric: Parameters<typeof familyOf>[0],
  ageMs: () => number | undefined,
): Collector {
  return () => {
    const age = ageMs();
    return [familyOf(metric, age === undefined ? undefined : age / 1_000)];
  };
}

/** The age of the last backup, and the validity of the certificate that is served. */
export function upkeepMetrics(
  { settings: { database }, clock }: Pick<ServiceContext, 'settings' | 'clock'>,
  tls: ServerSettings['tls'],
): Collector {
  const file = fileOf(database);
  const expiresAt = tls && certificateExpiry(tls.cert);
  return () => {
    const now = clock.now();
    const takenAt = file === undefined ? undefined : readManifest(lastBackupPath(file))?.taken_at;
    return [
      familyOf(METRICS.backupAge, takenAt === undefined ? undefined : (now - Date.parse(takenAt)) / 1_000),
      familyOf(METRICS.certificateExpiry, expiresAt && (expiresAt - now) / 1_000),
    ];
  };
}

/** The lag of each webhook target that this process delivers to. */
export function webhookMetrics(
  lags: readonly (readonly [webhookId: string, lag: DeliveryLag])[],
  now: number,
): readonly SampleFamily[] {
  const ofTargets = (metric: Parameters<typeof familyOf>[0], figure: (lag: DeliveryLag) => number) =>
    familyOf(
      metric,
      lags.flatMap(([webhook, lag]) => sample({ webhook }, figure(lag))),
    );
  return [
    ofTargets(METRICS.webhookLag, ({ behindSince: at = now }) => Math.max(0, now - at) / 1_000),
    ofTargets(METRICS.webhookLaggingRealms, ({ failingRealms }) => failingRealms),
    ofTargets(METRICS.webhookDeadLetters, ({ deadLetters }) => deadLetters),
  ];
}

/** Returns no sample for an undefined value. */
function sample(labels: Labels, value: number | undefined): readonly Sample[] {
  return value === undefined ? [] : [{ labels, value }];
}
