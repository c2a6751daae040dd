import type { Distribution, Labels } from './family.ts';

/** Counts how often something took how long; what it fills was made before. */
export interface Tally {
  add(value: number): void;
  /** How many there were. */
  total(): number;
  read(labels: Labels): Distribution;
}

/** The bounds of latencies, in seconds: from a lookup in memory to what is given up. */
export const SECONDS = Object.freeze([
  0.000_05, 0.000_1, 0.000_25, 0.000_5, 0.001, 0.002_5, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5,
]);

export function openTally(bounds: readonly number[] = SECONDS): Tally {
  const limits = Float64Array.from(bounds);
  const counts = new Float64Array(bounds.length + 1);
  let sum = 0;
  return {
    add(value) {
      let place = 0;
      while (place < limits.length && value > (limits[place] as number)) place += 1;
      counts[place] = (counts[place] as number) + 1;
      sum += value;
    },
    total: () => counts.reduce((total, count) => total + count, 0),
    read: (labels) => ({ labels, counts: [...counts], sum }),
  };
}
