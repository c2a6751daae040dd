import type { Distribution, Labels } from './family.ts';

/** Bucket bounds of latencies in seconds, from a lookup in memory to a time-out. */
export const LATENCY_SECONDS = Object.freeze([
  0.000_05, 0.000_1, 0.000_25, 0.000_5, 0.001, 0.002_5, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5,
]);

/** Counts values by bucket, in preallocated arrays (docs/decisions/0018-metrics.md). */
export function openHistogramCounts(bounds: readonly number[] = LATENCY_SECONDS) {
  const limits = Float64Array.from(bounds);
  const counts = new Float64Array(bounds.length + 1);
  let sum = 0;
  return {
    add(value: number): void {
      let index = 0;
      while (index < limits.length && value > (limits[index] as number)) index += 1;
      counts[index] = (counts[index] as number) + 1;
      sum += value;
    },
    total: () => counts.reduce((total, count) => total + count, 0),
    read: (labels: Labels): Distribution => ({ labels, counts: [...counts], sum }),
  };
}
