import { type Vitals, vitalsOf } from '../process_tree.ts';

/** What a process and its children held over time. */
export interface Curve {
  readonly samples: readonly (Vitals & { readonly second: number })[];
  stop(): void;
}

const SAMPLE_MS = 1_000;

export function watch(pid: number): Curve {
  const start = performance.now();
  const samples: (Vitals & { readonly second: number })[] = [];
  const timer = setInterval(() => {
    samples.push({ second: Math.round((performance.now() - start) / 1_000), ...vitalsOf(pid) });
  }, SAMPLE_MS);
  return { samples, stop: () => clearInterval(timer) };
}

export interface Growth {
  readonly fromMb: number;
  readonly toMb: number;
  readonly share: number;
}

/**
 * How much more is held in the last minute than in the first one after a minute of warming up, by the median of each.
 * Undefined where it did not go on for three minutes.
 */
export function growthOf({ samples }: Curve, of: (vitals: Vitals) => number): Growth | undefined {
  const last = samples.at(-1)?.second ?? 0;
  if (last < 3 * 60) return undefined;
  const within = (from: number, to: number) =>
    medianOf(samples.filter(({ second }) => second >= from && second < to).map(of));
  const [fromMb, toMb] = [within(60, 120), within(last - 60, last)];
  return { fromMb, toMb, share: toMb / fromMb - 1 };
}

function medianOf(figures: readonly number[]): number {
  return figures.toSorted((one, other) => one - other)[Math.floor(figures.length / 2)] ?? 0;
}
