import { withTimeout } from '../platform/timeout.ts';
import { watchEventLoop } from './event_loop.ts';
import { counter, type Family, type Gauge, gauge, type Snapshot } from './family.ts';
import { type Meter, openMeter } from './meter.ts';

/** Called when somebody asks for metrics. What it throws, or does not return in time, is left out. */
export type Collector = () => Promise<readonly Family[]> | readonly Family[];

/** What one process measures of itself. */
export interface Metrics {
  /** Counts requests; undefined where nobody asked for that. */
  readonly meter: Meter | undefined;
  add(...collectors: readonly Collector[]): void;
  snapshot(): Promise<Snapshot>;
  close(): void;
}

export interface MetricsSettings {
  /** Requests are counted and the event loop is watched; else there is only what costs nothing until it is read. */
  readonly isCounting: boolean;
  /** Largest time of one collector. */
  readonly readingMsMax: number;
  readonly causesMax: number;
}

export function openMetrics({ isCounting, readingMsMax, causesMax }: MetricsSettings): Metrics {
  const meter = isCounting ? openMeter(causesMax) : undefined;
  const loop = isCounting ? watchEventLoop() : undefined;
  const collectors: Collector[] = [processMetrics];
  if (loop) collectors.push(loop.collect);
  if (meter) collectors.push(meter.collect);
  const collect = async (collector: Collector) => {
    const families = await withTimeout(Promise.try(collector), readingMsMax, () => undefined).catch(
      () => undefined,
    );
    return families ?? [];
  };
  return {
    meter,
    add: (...more) => void collectors.push(...more),
    snapshot: async () => (await Promise.all(collectors.map(collect))).flat(),
    close: () => loop?.stop(),
  };
}

export function startTimeGauge(startedAt: number): Gauge {
  const help = 'When the service started, in seconds since the epoch.';
  return gauge('min', 'process_start_time_seconds', help, startedAt / 1_000);
}

/** By the names that every exporter has for them. */
function processMetrics(): readonly Family[] {
  const { user, system } = process.cpuUsage();
  return [
    counter('process_cpu_seconds_total', 'Processor time, of all serving processes.', (user + system) / 1e6),
    gauge(
      'sum',
      'process_resident_memory_bytes',
      'Resident memory, of all serving processes; what they share is counted for each.',
      process.memoryUsage.rss(),
    ),
  ];
}
