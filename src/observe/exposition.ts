import type { Distribution, Histogram, Labels, Snapshot } from './family.ts';

/** A snapshot as Prometheus reads it. */
export interface Exposition {
  readonly type: string;
  readonly text: string;
}

/** The library is loaded with the first question: a service that nobody watches does without it. */
export async function expose(snapshot: Snapshot): Promise<Exposition> {
  const library = await import('prom-client');
  const registry = new library.Registry();
  for (const family of snapshot.filter(isTold)) {
    const { name, help } = family;
    const described = { name, help, labelNames: labelNamesOf(family), registers: [registry] };
    if (family.kind === 'counter') {
      const counter = new library.Counter(described);
      for (const { labels, value } of family.samples) counter.inc(labels, value);
    } else if (family.kind === 'gauge') {
      const gauge = new library.Gauge(described);
      for (const { labels, value } of family.samples) gauge.set(labels, value);
    } else {
      // The histogram of the library is told one value after the other; here is how many there were of each.
      const empty = await new library.Histogram({ ...described, registers: [] }).get();
      const values = valuesOf(family);
      new library.Gauge(described).get = async () => ({ ...empty, values });
    }
  }
  return { type: registry.contentType, text: await registry.metrics() };
}

/** Nothing is not the same as zero. */
function isTold(family: Snapshot[number]): boolean {
  return labelledOf(family).length > 0;
}

function labelledOf(family: Snapshot[number]): readonly { readonly labels: Labels }[] {
  return family.kind === 'histogram' ? family.distributions : family.samples;
}

function labelNamesOf(family: Snapshot[number]): string[] {
  return [...new Set(labelledOf(family).flatMap(({ labels }) => Object.keys(labels)))];
}

interface Value {
  readonly metricName: string;
  readonly labels: Labels;
  readonly value: number;
}

/** The lines of a histogram: each bucket holds those under it as well. */
function valuesOf({ name, bounds, distributions }: Histogram): Value[] {
  return distributions.flatMap(({ labels, counts, sum }: Distribution): Value[] => {
    let total = 0;
    const buckets = counts.map((count, place) => {
      total += count;
      const le = place < bounds.length ? String(bounds[place]) : '+Inf';
      return { metricName: `${name}_bucket`, labels: { le, ...labels }, value: total };
    });
    return [
      ...buckets,
      { metricName: `${name}_sum`, labels, value: sum },
      { metricName: `${name}_count`, labels, value: total },
    ];
  });
}
