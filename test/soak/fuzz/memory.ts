import { join } from 'node:path';
import { descendantsOf, mappedMb, type ResourceUsage, resourcesOfAll } from '../../support/process_tree.ts';

/** Memory of a service at one moment: its main process, and its worker processes, which live while they have work. */
export interface Sample {
  readonly second: number;
  readonly own: ResourceUsage;
  /** The part of the resident memory that is mapped pages of the database. */
  readonly databaseMb: number;
  readonly workers: ResourceUsage;
}

export interface MemoryCurve {
  readonly samples: readonly Sample[];
  /** Takes no sample and counts no time while the action runs, during which no request is sent. */
  pause<T>(action: () => Promise<T>): Promise<T>;
  stop(): void;
}

const SAMPLE_MS = 1_000;

/** Watches the process that serves this database file. */
export function watchMemory(pid: number, database: string): MemoryCurve {
  let start = performance.now();
  let isPaused = false;
  const samples: Sample[] = [];
  const timer = setInterval(() => {
    if (isPaused) return;
    const second = Math.round((performance.now() - start) / 1_000);
    samples.push(sampleOf(pid, database, second));
  }, SAMPLE_MS);
  return {
    samples,
    async pause(action) {
      const since = performance.now();
      isPaused = true;
      try {
        return await action();
      } finally {
        start += performance.now() - since;
        isPaused = false;
      }
    },
    stop: () => clearInterval(timer),
  };
}

function sampleOf(pid: number, database: string, second: number): Sample {
  const databaseMb = mappedMb(pid, database);
  return { second, own: resourcesOfAll([pid]), databaseMb, workers: resourcesOfAll(descendantsOf(pid)) };
}

export interface Growth {
  readonly measure: string;
  readonly fromMb: number;
  readonly toMb: number;
  readonly share: number;
}

type Samples = Pick<MemoryCurve, 'samples'>;
type Figure = (sample: Sample) => number | undefined;

/** The preload script that makes a process collect its garbage on a signal. */
export const GC_ON_SIGNAL = join(import.meta.dir, 'gc_on_signal.ts');
/** Collect and wait this long, until memory no longer falls by this share, or this often. */
const COLLECTION_MS = 10_000;
const DECREASE_MIN = 0.01;
const COLLECTIONS_MAX = 18;
/** The allocator returns pages to the system over a minute or two of idleness. */
const RELEASE_MS = 150_000;

const anonymousMb: Figure = ({ own }) => own.anonymousMb;
const anonymousMbPerWorker: Figure = ({ workers }) =>
  workers.processes > 0 ? workers.anonymousMb / workers.processes : undefined;

function figuresOfMinute({ samples }: Samples, from: number, figure: Figure): readonly number[] {
  return samples
    .filter(({ second }) => second >= from && second < from + 60)
    .flatMap((sample) => figure(sample) ?? []);
}

function growth(measure: string, fromMb: number, toMb: number): Growth {
  return { measure, fromMb, toMb, share: fromMb === 0 ? 0 : toMb / fromMb - 1 };
}

/**
 * Memory that a process with GC_ON_SIGNAL loaded retains while idle. Under load it holds up to three times as much garbage,
 * and the allocator keeps those pages until the process is idle: how much depends on how busy the machine is. Compiled code
 * (3,200 functions after one minute of fuzzing as after ten) is discarded too: otherwise the runtime discards it before one
 * sample and not before the other.
 */
export async function memoryAtRest(
  pid: number,
  database: string,
  { collectionMs = COLLECTION_MS, releaseMs = RELEASE_MS } = {},
): Promise<Sample> {
  const collect = () => process.kill(pid, 'SIGUSR2');
  collect();
  await Bun.sleep(releaseMs);
  const sampleAfterCollection = async () => {
    collect();
    await Bun.sleep(collectionMs);
    return sampleOf(pid, database, 0);
  };
  // Two collections in a row must free nothing: pages freed by one may be returned to the system only by the next.
  let samples = [await sampleAfterCollection(), await sampleAfterCollection(), await sampleAfterCollection()];
  for (let count = 3; count < COLLECTIONS_MAX && isFalling(samples); count += 1) {
    samples = [...samples.slice(1), await sampleAfterCollection()];
  }
  if (isFalling(samples))
    throw new Error(`memory still fell after ${COLLECTIONS_MAX} collections: the service is not idle`);
  // The minimum: a periodic task such as a checkpoint may have left garbage in one of the samples.
  return samples.reduce((least, sample) => (sample.own.anonymousMb < least.own.anonymousMb ? sample : least));
}

function isFalling(samples: readonly Sample[]): boolean {
  const [before, ...later] = samples.map(({ own }) => own.anonymousMb);
  return Math.min(...later) < (before ?? 0) * (1 - DECREASE_MIN);
}

/**
 * Growth from the first to the last idle sample. Mapped database pages are excluded: the change log grows with every request,
 * and the system evicts them as it likes.
 */
export function growthsOf(first: Sample, end: Sample): readonly Growth[] {
  const outsideDatabase: Figure = ({ own, databaseMb }) => own.residentMb - databaseMb;
  return [
    growth('at rest, resident without the database', outsideDatabase(first) ?? 0, outsideDatabase(end) ?? 0),
    growth('at rest, anonymous', first.own.anonymousMb, end.own.anonymousMb),
  ];
}

/**
 * Growth of a worker process from its first to its last minute, by the minimum of each, which excludes working memory such
 * as that of a password hash. Workers end when idle, so they cannot be sampled at rest; those of the first minute end in the
 * pause after it, and new ones start. Empty for runs shorter than four minutes.
 */
export function workerGrowth(curve: Samples): readonly Growth[] {
  const last = curve.samples.at(-1)?.second ?? 0;
  if (last < 4 * 60) return [];
  const [fromMb, toMb] = [2 * 60, last - 59].map((from) =>
    leastOf(figuresOfMinute(curve, from, anonymousMbPerWorker)),
  );
  return [growth('anonymous in each worker process', fromMb ?? 0, toMb ?? 0)];
}

/** One line per completed minute. */
export function minutesOf(curve: Samples): readonly string[] {
  const minutes = Math.floor((curve.samples.at(-1)?.second ?? 0) / 60);
  return Array.from({ length: minutes }, (_, minute) => {
    const range = (measure: string, figure: Figure, digits = 1) => {
      const figures = figuresOfMinute(curve, minute * 60, figure);
      return `${Math.min(...figures).toFixed(digits)} to ${Math.max(...figures).toFixed(digits)} ${measure}`;
    };
    return [
      `minute ${minute + 1}: ${range('MB resident', ({ own }) => own.residentMb)}`,
      range('MB of mapped database', ({ databaseMb }) => databaseMb),
      range('MB anonymous', anonymousMb),
      range('descriptors', ({ own }) => own.descriptors, 0),
      range('worker processes', ({ workers }) => workers.processes, 0),
      range('MB anonymous in each', anonymousMbPerWorker),
    ].join(', ');
  });
}

/** 0 for an empty list. */
function leastOf(figures: readonly number[]): number {
  return figures.length === 0 ? 0 : Math.min(...figures);
}
