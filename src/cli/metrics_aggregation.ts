import { LIMITS } from '../domain/limits.ts';
import { METRICS } from '../metrics/declarations.ts';
import { counter, gauge, mergeSnapshots, type Snapshot, withoutGauges } from '../metrics/family.ts';
import { startTimeGauge } from '../metrics/metrics.ts';
import { withTimeout } from '../platform/timeout.ts';

/** The metrics of all serving processes, aggregated. */
export interface MetricsAggregation {
  /** Adds a process; `read` requests its metrics. */
  add(read: () => Promise<Snapshot>): MetricsSource;
  /**
   * The sum of all processes. A process that does not answer within LIMITS.metricsReplyMsMax contributes its last known counts; the
   * counts of an exited process remain.
   */
  read(): Promise<Snapshot>;
  stop(): void;
}

export interface MetricsSource {
  /** The last metrics of a process that is about to exit. */
  finish(last: Snapshot): void;
  /** The process has exited. */
  remove(): void;
}

interface Source {
  readonly read: () => Promise<Snapshot>;
  last: Snapshot;
  /** The outstanding request: a late process gets no second one before it answers. */
  request: Promise<Snapshot | undefined> | undefined;
}

/** `isPolling`: processes are read periodically, so that little is lost of a killed process. */
export function openMetricsAggregation(startedAt: number, isPolling: boolean): MetricsAggregation {
  const sources = new Set<Source>();
  let exited: Snapshot = [];
  let exits = 0;
  let reading: Promise<Snapshot> | undefined;

  function requestMetrics(source: Source): Promise<Snapshot | undefined> {
    source.request ??= source
      .read()
      .then(
        (snapshot) => {
          source.last = snapshot;
          return snapshot;
        },
        () => undefined,
      )
      .finally(() => {
        source.request = undefined;
      });
    return withTimeout(source.request, LIMITS.metricsReplyMsMax, () => undefined);
  }

  async function aggregate(): Promise<Snapshot> {
    const answers = await Promise.all(
      [...sources].map(async (source) => ({ source, answer: await requestMetrics(source) })),
    );
    // A process that exited during the reads is part of `exited`.
    const present = answers.filter(({ source }) => sources.has(source));
    const unresponsive = present.filter(({ answer }) => answer === undefined).length;
    const snapshots = present.map(({ answer, source }) => answer ?? withoutGauges(source.last));
    return mergeSnapshots([...snapshots, exited, ownMetrics(present.length - unresponsive, unresponsive)]);
  }

  function ownMetrics(responding: number, unresponsive: number): Snapshot {
    return [
      gauge(METRICS.processes, [
        { labels: { state: 'responding' }, value: responding },
        { labels: { state: 'unresponsive' }, value: unresponsive },
      ]),
      counter(METRICS.processExits, exits),
      startTimeGauge(startedAt),
    ];
  }

  /** Concurrent callers share one answer. */
  function read(): Promise<Snapshot> {
    reading ??= aggregate().finally(() => {
      reading = undefined;
    });
    return reading;
  }

  const timer = isPolling ? setInterval(read, LIMITS.metricsPollMs).unref() : undefined;
  return {
    add(readSource) {
      const source: Source = { read: readSource, last: [], request: undefined };
      sources.add(source);
      return {
        finish(last) {
          source.last = last;
        },
        remove() {
          sources.delete(source);
          exited = mergeSnapshots([exited, withoutGauges(source.last)]);
          exits += 1;
        },
      };
    },
    read,
    stop: () => clearInterval(timer),
  };
}
