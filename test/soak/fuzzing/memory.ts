import { join } from 'node:path';
import { descendantsOf, mappedMb, type ProcessUsage, usageOfAll } from '../../support/process_tree.ts';

/** What a service held at a moment: itself, and the processes that it keeps beside it as long as they have work. */
export interface Sample {
  readonly second: number;
  readonly own: ProcessUsage;
  /** Of what is resident, the pages of the database that it has mapped. */
  readonly databaseMb: number;
  readonly beside: ProcessUsage;
}

export interface Curve {
  readonly samples: readonly Sample[];
  /** Takes no sample and counts no second while this goes on, in which nothing is asked of the service. */
  rest<T>(during: () => Promise<T>): Promise<T>;
  stop(): void;
}

const SAMPLE_MS = 1_000;

/** Watches the process that serves this database file. */
export function watch(pid: number, database: string): Curve {
  let start = performance.now();
  let isResting = false;
  const samples: Sample[] = [];
  const timer = setInterval(() => {
    if (isResting) return;
    const second = Math.round((performance.now() - start) / 1_000);
    samples.push(sampleOf(pid, database, second));
  }, SAMPLE_MS);
  return {
    samples,
    async rest(during) {
      const since = performance.now();
      isResting = true;
      try {
        return await during();
      } finally {
        start += performance.now() - since;
        isResting = false;
      }
    },
    stop: () => clearInterval(timer),
  };
}

function sampleOf(pid: number, database: string, second: number): Sample {
  const databaseMb = mappedMb(pid, database);
  return { second, own: usageOfAll([pid]), databaseMb, beside: usageOfAll(descendantsOf(pid)) };
}

export interface Growth {
  readonly of: string;
  readonly fromMb: number;
  readonly toMb: number;
  readonly share: number;
}

type Samples = Pick<Curve, 'samples'>;
type Figure = (sample: Sample) => number | undefined;

/** What a process is to load before itself, so that it can be asked what it holds. */
export const COLLECTING = join(import.meta.dir, 'collecting.ts');
/** The runtime is collected, and left alone so long, until it holds no less by this share, or as often as this. */
const REST_MS = 10_000;
const LESS = 0.01;
const COLLECTIONS_MAX = 18;
/** The allocator gives pages back over a minute or two once there is nothing to do. */
const GIVING_BACK_MS = 150_000;

const notOfFiles: Figure = ({ own }) => own.anonymousMb;
const eachBeside: Figure = ({ beside }) =>
  beside.processes > 0 ? beside.anonymousMb / beside.processes : undefined;

function within({ samples }: Samples, from: number, figure: Figure): readonly number[] {
  return samples
    .filter(({ second }) => second >= from && second < from + 60)
    .flatMap((sample) => figure(sample) ?? []);
}

function growth(of: string, fromMb: number, toMb: number): Growth {
  return { of, fromMb, toMb, share: fromMb === 0 ? 0 : toMb / fromMb - 1 };
}

/**
 * What a process with COLLECTING loaded holds for good, once what was under way is over. Under way it holds up
 * to three times as much garbage, for as long as the runtime sees fit, and the allocator keeps the pages of it until there
 * is nothing to do: how much that is follows from how busy the machine is. Compiled code is as much after one minute of
 * fuzzing as after ten, that of 3,200 functions; left alone, the runtime lets go of it for one sample and not for the other: it
 * is told to.
 */
export async function heldBy(
  pid: number,
  database: string,
  { restMs = REST_MS, givingBackMs = GIVING_BACK_MS } = {},
): Promise<Sample> {
  const collect = () => process.kill(pid, 'SIGUSR2');
  collect();
  await Bun.sleep(givingBackMs);
  const held = async () => {
    collect();
    await Bun.sleep(restMs);
    return sampleOf(pid, database, 0);
  };
  // Two collections in a row that free nothing: what was freed by one may be given back by the next.
  let samples = [await held(), await held(), await held()];
  for (let count = 3; count < COLLECTIONS_MAX && isFalling(samples); count += 1) {
    samples = [...samples.slice(1), await held()];
  }
  if (isFalling(samples))
    throw new Error(`less was held at each of ${COLLECTIONS_MAX} looks: it is not at rest`);
  // The least of them: what has its turn every minute, as checkpoints do, leaves garbage behind in one or the other.
  return samples.reduce((least, sample) => (sample.own.anonymousMb < least.own.anonymousMb ? sample : least));
}

function isFalling(samples: readonly Sample[]): boolean {
  const [before, ...later] = samples.map(({ own }) => own.anonymousMb);
  return Math.min(...later) < (before ?? 0) * (1 - LESS);
}

/**
 * How much more is held at the end. Pages of the database are left out, because the log in it grows with every request and
 * the system takes them back as it likes.
 */
export function growthsOf(first: Sample, end: Sample): readonly Growth[] {
  const beside: Figure = ({ own, databaseMb }) => own.residentMb - databaseMb;
  return [
    growth('at rest, resident beside the database', beside(first) ?? 0, beside(end) ?? 0),
    growth('at rest, not of files', first.own.anonymousMb, end.own.anonymousMb),
  ];
}

/**
 * How much more one of the processes beside holds in the last minute than behind its first one, by the least of each: what is
 * worked with, as the memory of a hash, is not held. They come and go with their work, so they cannot be asked at rest; those
 * of the first minute end in the rest behind it, and others begin.
 * Nothing where it did not go on for four minutes.
 */
export function growthBeside(curve: Samples): readonly Growth[] {
  const last = curve.samples.at(-1)?.second ?? 0;
  if (last < 4 * 60) return [];
  const [fromMb, toMb] = [2 * 60, last - 59].map((from) => leastOf(within(curve, from, eachBeside)));
  return [growth('not of files in each process beside', fromMb ?? 0, toMb ?? 0)];
}

/** A line about every minute that is over. */
export function minutesOf(curve: Samples): readonly string[] {
  const minutes = Math.floor((curve.samples.at(-1)?.second ?? 0) / 60);
  return Array.from({ length: minutes }, (_, minute) => {
    const told = (of: string, figure: Figure, digits = 1) => {
      const figures = within(curve, minute * 60, figure);
      return `${Math.min(...figures).toFixed(digits)} to ${Math.max(...figures).toFixed(digits)} ${of}`;
    };
    return [
      `minute ${minute + 1}: ${told('MB resident', ({ own }) => own.residentMb)}`,
      told('MB of the database', ({ databaseMb }) => databaseMb),
      told('MB not of files', notOfFiles),
      told('descriptors', ({ own }) => own.descriptors, 0),
      told('processes beside', ({ beside }) => beside.processes, 0),
      told('MB not of files in each', eachBeside),
    ].join(', ');
  });
}

/** 0 of none. */
function leastOf(figures: readonly number[]): number {
  return figures.length === 0 ? 0 : Math.min(...figures);
}
