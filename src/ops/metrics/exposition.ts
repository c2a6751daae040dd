import type { Family, Histogram, Labels, Snapshot } from './family.ts';

/** The text format of Prometheus, version 0.0.4. */
export const EXPOSITION_TYPE = 'text/plain; version=0.0.4; charset=utf-8';

export function exposition(snapshot: Snapshot): string {
  return snapshot.map(textOf).join('');
}

/** Omits a family without values, because no value is not zero. */
function textOf(family: Family): string {
  const { name, help, kind } = family;
  const lines =
    family.kind === 'histogram'
      ? histogramLines(family)
      : family.samples.map(({ labels, value }) => line(name, labels, value));
  if (lines.length === 0) return '';
  return [`# HELP ${name} ${escaped(help)}`, `# TYPE ${name} ${kind}`, ...lines, '', ''].join('\n');
}

/** The count of each bucket includes those below it. */
function histogramLines({ name, bounds, distributions }: Histogram): readonly string[] {
  return distributions.flatMap(({ labels, counts, sum }) => {
    let total = 0;
    const buckets = counts.map((count, index) => {
      total += count;
      return line(`${name}_bucket`, { le: String(bounds[index] ?? '+Inf'), ...labels }, total);
    });
    return [...buckets, line(`${name}_sum`, labels, sum), line(`${name}_count`, labels, total)];
  });
}

function line(name: string, labels: Labels, value: number): string {
  const pairs = Object.entries(labels).map(
    ([label, text]) => `${label}="${escaped(text).replaceAll('"', '\\"')}"`,
  );
  return `${name}${pairs.length > 0 ? `{${pairs.join(',')}}` : ''} ${value}`;
}

const escaped = (text: string) => text.replaceAll('\\', '\\\\').replaceAll('\n', '\\n');
