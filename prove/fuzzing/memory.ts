import { below, type Vitals, vitalsOfAll } from '../process_tree.ts';

/** What a service held at a moment: itself, and the processes that it keeps beside it as long as they have work. */
interface Sample {
  readonly second: number;
  readonly own: Vitals;
  readonly beside: Vitals;
}

export interface Curve {
  readonly samples: readonly Sample[];
  stop(): void;
}

const SAMPLE_MS = 1_000;

export function watch(pid: number): Curve {
  const start = performance.now();
  const samples: Sample[] = [];
  const timer = setInterval(() => {
    const second = Math.round((performance.now() - start) / 1_000);
    samples.push({ second, own: vitalsOfAll([pid]), beside: vitalsOfAll(below(pid)) });
  }, SAMPLE_MS);
  return { samples, stop: () => clearInterval(timer) };
}

export interface Growth {
  readonly of: string;
  readonly fromMb: number;
  readonly toMb: number;
  readonly share: number;
}

const eachBeside = ({ beside }: Sample) =>
  beside.processes > 0 ? beside.anonymousMb / beside.processes : undefined;

/** Processes beside come and go with their work, so what counts is what one of them holds. */
const FIGURES: readonly (readonly [string, (sample: Sample) => number | undefined])[] = [
  ['resident', ({ own }) => own.residentMb],
  ['not of files', ({ own }) => own.anonymousMb],
  ['not of files in each process beside', eachBeside],
];

/**
 * How much more is held in the last minute than in the second one, by the median of each. Nothing where it did not go
 * on for three minutes.
 */
export function growthsOf({ samples }: Curve): readonly Growth[] {
  const last = samples.at(-1)?.second ?? 0;
  if (last < 3 * 60) return [];
  return FIGURES.map(([of, figure]) => {
    const within = (from: number, to: number) =>
      medianOf(
        samples
          .filter(({ second }) => second >= from && second < to)
          .flatMap((sample) => figure(sample) ?? []),
      );
    const [fromMb, toMb] = [within(60, 120), within(last - 60, last)];
    return { of, fromMb, toMb, share: fromMb === 0 ? 0 : toMb / fromMb - 1 };
  });
}

function medianOf(figures: readonly number[]): number {
  return figures.toSorted((one, other) => one - other)[Math.floor(figures.length / 2)] ?? 0;
}
