export type Labels = Readonly<Record<string, string>>;

/** One figure. */
export interface Sample {
  readonly labels: Labels;
  readonly value: number;
}

/** How often something came to how much. */
export interface Distribution {
  readonly labels: Labels;
  /** How many were at or under each bound and over the one before it, and last how many were over all of them. */
  readonly counts: readonly number[];
  readonly sum: number;
}

interface Named {
  /** As Prometheus has it: letters, digits and underscores, its unit at the end. */
  readonly name: string;
  readonly help: string;
}

export type Counter = Named & { readonly kind: 'counter'; readonly samples: readonly Sample[] };

export type Gauge = Named & {
  readonly kind: 'gauge';
  /** What the figures of several processes come to. */
  readonly across: 'sum' | 'max' | 'min';
  readonly samples: readonly Sample[];
};

export type Histogram = Named & {
  readonly kind: 'histogram';
  readonly bounds: readonly number[];
  readonly distributions: readonly Distribution[];
};

/** Everything that is measured under one name. Plain data, so that one process can send it to another. */
export type Family = Counter | Gauge | Histogram;

export type Snapshot = readonly Family[];

/** One value without labels; none where it is undefined. */
type Values = number | undefined | readonly Sample[];

export function counter(name: string, help: string, values: Values): Counter {
  return { kind: 'counter', name, help, samples: samplesOf(values) };
}

export function gauge(across: Gauge['across'], name: string, help: string, values: Values): Gauge {
  return { kind: 'gauge', across, name, help, samples: samplesOf(values) };
}

function samplesOf(values: Values): readonly Sample[] {
  if (typeof values === 'number') return [{ labels: {}, value: values }];
  return values ?? [];
}

/** What several processes measured, as one. Counters and histograms are summed; a gauge says itself what it comes to. */
export function together(snapshots: readonly Snapshot[]): Snapshot {
  const families = new Map<string, Family>();
  for (const family of snapshots.flat()) {
    const known = families.get(family.name);
    families.set(family.name, known === undefined ? family : joined(known, family));
  }
  return [...families.values()];
}

/** What stays true of a process that has ended: what it counted. */
export function lasting(snapshot: Snapshot): Snapshot {
  return snapshot.filter(({ kind }) => kind !== 'gauge');
}

function joined(left: Family, right: Family): Family {
  if (left.kind === 'histogram') {
    return right.kind === 'histogram'
      ? { ...left, distributions: byLabels([...left.distributions, ...right.distributions], added) }
      : left;
  }
  if (right.kind === 'histogram') return left;
  const merge = MERGES[left.kind === 'gauge' ? left.across : 'sum'];
  const samples = byLabels([...left.samples, ...right.samples], (one, other) => ({
    ...one,
    value: merge(one.value, other.value),
  }));
  return { ...left, samples };
}

const MERGES = {
  sum: (left: number, right: number) => left + right,
  max: Math.max,
  min: Math.min,
} as const;

function added(left: Distribution, right: Distribution): Distribution {
  return {
    labels: left.labels,
    counts: left.counts.map((count, place) => count + (right.counts[place] ?? 0)),
    sum: left.sum + right.sum,
  };
}

function byLabels<T extends { readonly labels: Labels }>(
  all: readonly T[],
  merge: (left: T, right: T) => T,
): readonly T[] {
  const found = new Map<string, T>();
  for (const each of all) {
    const key = JSON.stringify(Object.entries(each.labels).sort());
    const known = found.get(key);
    found.set(key, known === undefined ? each : merge(known, each));
  }
  return [...found.values()];
}
