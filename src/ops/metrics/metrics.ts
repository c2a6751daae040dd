import { LIMITS } from '../../model/limits.ts';
import { withTimeout } from '../../model/timeout.ts';
import { EVENT_LOOP_SAMPLE_MS, METRICS } from './declarations.ts';
import { type Family, familyOf, histogram, type SampleFamily, type Snapshot } from './family.ts';
import { LATENCY_SECONDS, openHistogramCounts } from './histogram.ts';
import { openMeter } from './meter.ts';

/** Called for every snapshot. A collector that throws or is late is left out of it. */
export type Collector = () => Promise<readonly Family[]> | readonly Family[];

/**
 * The metrics of one process. `countsRequests`: counts requests and watches the event loop; otherwise there are only the metrics that
 * cost nothing until they are read.
 */
export function openMetrics(countsRequests: boolean) {
  const meter = countsRequests ? openMeter() : undefined;
  const loop = countsRequests ? watchEventLoop() : undefined;
  const collectors: Collector[] = [processMetrics];
  if (loop) collectors.push(loop.collect);
  if (meter) collectors.push(meter.collect);
  const none = (): readonly Family[] => [];
  const collect = (collector: Collector) =>
    withTimeout(Promise.try(collector), LIMITS.collectorMsMax, none).catch(none);
  return {
    /** Undefined where requests are not counted. */
    meter,
    add: (...more: readonly Collector[]) => void collectors.push(...more),
    snapshot: async (): Promise<Snapshot> => (await Promise.all(collectors.map(collect))).flat(),
    close: () => loop?.stop(),
  };
}

export function startTimeGauge(startedAt: number): SampleFamily {
  return familyOf(METRICS.startTime, startedAt / 1_000);
}

/** Under the names that Prometheus client libraries use. */
function processMetrics(): readonly Family[] {
  const { user, system } = process.cpuUsage();
  return [
    familyOf(METRICS.cpu, (user + system) / 1e6),
    familyOf(METRICS.residentMemory, process.memoryUsage.rss()),
  ];
}

/** Measures how late timers of this process are. */
function watchEventLoop() {
  const delays = openHistogramCounts();
  let due = performance.now() + EVENT_LOOP_SAMPLE_MS;
  const timer = setInterval(() => {
    const now = performance.now();
    delays.add(Math.max(0, now - due) / 1_000);
    due = now + EVENT_LOOP_SAMPLE_MS;
  }, EVENT_LOOP_SAMPLE_MS).unref();
  return {
    collect: (): readonly Family[] => [histogram(METRICS.eventLoopDelay, LATENCY_SECONDS, [delays.read({})])],
    stop: () => clearInterval(timer),
  };
}
