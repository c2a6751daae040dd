import { watchLoop } from './event_loop.ts';
import type { Snapshot } from './family.ts';
import { type Meter, openMeter } from './meter.ts';
import { openReadings, type Reading, type Readings } from './readings.ts';

/** What one process measures of itself. */
export interface Metrics extends Pick<Readings, 'add'> {
  /** Counts requests; absent where nobody asked for that. */
  readonly meter: Meter | undefined;
  snapshot(): Promise<Snapshot>;
  close(): void;
}

export interface MetricsSettings {
  /** Requests are counted and the event loop is watched; else there is only what costs nothing until it is read. */
  readonly isCounting: boolean;
  readonly readingMsMax: number;
  readonly causesMax: number;
}

export function openMetrics({ isCounting, readingMsMax, causesMax }: MetricsSettings): Metrics {
  const readings = openReadings(readingMsMax);
  const meter = isCounting ? openMeter(causesMax) : undefined;
  const loop = isCounting ? watchLoop() : undefined;
  readings.add(...ownReadings());
  return {
    meter,
    add: readings.add,
    async snapshot() {
      const read = await readings.read();
      return [...read, ...(loop?.read() ?? []), ...(meter?.read() ?? [])];
    },
    close: () => loop?.stop(),
  };
}

/** By the names that every exporter has for them. */
function ownReadings(): readonly Reading[] {
  const cpuSeconds = () => {
    const { user, system } = process.cpuUsage();
    return (user + system) / 1e6;
  };
  return [
    {
      kind: 'counter',
      name: 'process_cpu_seconds_total',
      help: 'Processor time, of all serving processes.',
      read: cpuSeconds,
    },
    {
      kind: 'gauge',
      across: 'sum',
      name: 'process_resident_memory_bytes',
      help: 'Resident memory, of all serving processes; what they share is counted for each.',
      read: () => process.memoryUsage.rss(),
    },
  ];
}
