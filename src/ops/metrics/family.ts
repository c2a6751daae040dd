export type Labels = Readonly<Record<string, string>>;

export interface Sample {
  readonly labels: Labels;
  readonly value: number;
}

/** The buckets of a histogram, with their labels. */
export interface Distribution {
  readonly labels: Labels;
  /** The number of values up to each bound and above the previous one; the last is the number above all bounds. */
  readonly counts: readonly number[];
  readonly sum: number;
}

export interface FamilyHeader {
  /** The Prometheus name, with the unit as its suffix. */
  readonly name: string;
  readonly help: string;
}

export type SampleFamily = FamilyHeader & {
  readonly kind: 'counter' | 'gauge';
  /** Of a gauge: how the values of several processes are combined; those of a counter are summed. */
  readonly across?: 'sum' | 'max' | 'min' | undefined;
  readonly samples: readonly Sample[];
};

export type Histogram = FamilyHeader & {
  readonly kind: 'histogram';
  readonly bounds: readonly number[];
  readonly distributions: readonly Distribution[];
};

/** A metric family. Plain data, so that one process can send it to another. */
export type Family = SampleFamily | Histogram;

export type Snapshot = readonly Family[];

/** A counter or gauge with a value without labels, with samples, or without any. */
export function familyOf(
  { kind, name, help, across = 'sum' }: Omit<SampleFamily, 'samples'>,
  values: number | undefined | readonly Sample[],
): SampleFamily {
  const samples = typeof values === 'number' ? [{ labels: {}, value: values }] : (values ?? []);
  return { kind, name, help, across: kind === 'gauge' ? across : undefined, samples };
}

export function histogram(
  { name, help }: FamilyHeader,
  bounds: readonly number[],
  distributions: readonly Distribution[],
): Histogram {
  return { kind: 'histogram', name, help, bounds, distributions };
}

/** Combines the metrics of several processes: sums counters and histograms, and combines gauges as their `across` says. */
export function mergeSnapshots(snapshots: readonly Snapshot[]): Snapshot {
  return mergeBy(snapshots.flat(), ({ name }) => name, mergeFamilies);
}

/** The counters and histograms: what remains of a process that exited. */
export function withoutGauges(snapshot: Snapshot): Snapshot {
  return snapshot.filter(({ kind }) => kind !== 'gauge');
}

function mergeFamilies(left: Family, right: Family): Family {
  if (left.kind === 'histogram' && right.kind === 'histogram') {
    const all = [...left.distributions, ...right.distributions];
    return { ...left, distributions: mergeBy(all, labelsOf, addDistributions) };
  }
  // A name has one kind in every process.
  if (left.kind === 'histogram' || right.kind === 'histogram') return left;
  const merge = MERGES[left.across ?? 'sum'];
  const samples = mergeBy([...left.samples, ...right.samples], labelsOf, (one, other) => ({
    ...one,
    value: merge(one.value, other.value),
  }));
  return { ...left, samples };
}

const MERGES = { sum: (left: number, right: number) => left + right, max: Math.max, min: Math.min } as const;

function addDistributions(left: Distribution, right: Distribution): Distribution {
  return {
    labels: left.labels,
    counts: left.counts.map((count, index) => count + (right.counts[index] ?? 0)),
    sum: left.sum + right.sum,
  };
}

const labelsOf = ({ labels }: Sample | Distribution) => JSON.stringify(Object.entries(labels).sort());

function mergeBy<T>(all: readonly T[], keyOf: (each: T) => string, merge: (one: T, other: T) => T) {
  return [...Map.groupBy(all, keyOf).values()].map((same) => same.reduce(merge));
}
