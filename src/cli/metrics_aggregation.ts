import { LIMITS } from '../model/limits.ts';
import { withTimeout } from '../model/timeout.ts';
import { METRICS } from '../ops/metrics/declarations.ts';
import { familyOf, mergeSnapshots, type Snapshot, withoutGauges } from '../ops/metrics/family.ts';
import { startTimeGauge } from '../ops/metrics/metrics.ts';

interface Source {
  readonly read: () => Promise<Snapshot>;
  last: Snapshot;
  /** The outstanding request: a late process gets no second one before it answers. */
  request: Promise<Snapshot | undefined> | undefined;
}

/** Aggregates the metrics of all serving processes. `isPolling`: processes are read periodically, so that little is lost of a killed process. */
export function openMetricsAggregation(startedAt: number, isPolling: boolean) {
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
    const own = [
      familyOf(METRICS.processes, [
        { labels: { state: 'responding' }, value: present.length - unresponsive },
        { labels: { state: 'unresponsive' }, value: unresponsive },
      ]),
      familyOf(METRICS.processExits, exits),
      startTimeGauge(startedAt),
    ];
    return mergeSnapshots([...snapshots, exited, own]);
  }

  /**
   * The sum of all processes; concurrent callers share one answer. A process that does not answer within LIMITS.metricsReplyMsMax
   * contributes its last known counts; the counts of an exited process remain.
   */
  function read(): Promise<Snapshot> {
    reading ??= aggregate().finally(() => {
      reading = undefined;
    });
    return reading;
  }

  const timer = isPolling ? setInterval(read, LIMITS.metricsPollMs).unref() : undefined;
  return {
    /** Adds a process; `readSource` requests its metrics. */
    add(readSource: () => Promise<Snapshot>) {
      const source: Source = { read: readSource, last: [], request: undefined };
      sources.add(source);
      return {
        /** The last metrics of a process that is about to exit. */
        finish(last: Snapshot): void {
          source.last = last;
        },
        /** The process has exited. */
        remove(): void {
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
