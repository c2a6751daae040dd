import type { Family, Labels } from '../../../src/ops/metrics/family.ts';

/** The metrics of all processes, when they were read. */
export interface MetricsReading {
  /** Milliseconds since the Unix epoch. */
  readonly at: number;
  readonly families: ReadonlyMap<string, Family>;
}

export const START_TIME = 'process_start_time_seconds';

/** Counters and gauges; none of a metric that is missing. */
export function samplesOf({ families }: MetricsReading, name: string) {
  const family = families.get(name);
  return family && family.kind !== 'histogram' ? family.samples : [];
}

/** A label of an info metric, whose value is always 1. */
export function labelOf(reading: MetricsReading, name: string, label: string): string | undefined {
  return samplesOf(reading, name)[0]?.labels[label];
}

/** The largest value of a gauge; undefined if it is missing. */
export function gaugeOf(
  reading: MetricsReading,
  name: string,
  isCounted: (labels: Labels) => boolean = () => true,
): number | undefined {
  const values = samplesOf(reading, name).flatMap(({ labels, value }) => (isCounted(labels) ? [value] : []));
  return values.length === 0 ? undefined : Math.max(...values);
}
