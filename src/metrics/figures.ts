import { METRICS } from './declarations.ts';
import type { Family, Labels, Snapshot } from './family.ts';

/** What the Health page of the console shows: rates and latencies between two readings of the metrics. */

/** All metrics at one time. */
export interface MetricsReading {
  /** Milliseconds, on the monotonic clock. */
  readonly at: number;
  readonly families: ReadonlyMap<string, Family>;
}

export function readingOf(snapshot: Snapshot, at: number): MetricsReading {
  return { at, families: new Map(snapshot.map((family) => [family.name, family])) };
}

/** Undefined if nothing happened or the metric is missing. The names are those of docs/admin.md#metrics-of-all-processes. */
export interface Figures {
  readonly lookups_per_second: number | undefined;
  readonly requests_per_second: number | undefined;
  /** Quantiles in milliseconds. */
  readonly lookup_ms_p50: number | undefined;
  readonly lookup_ms_p95: number | undefined;
  readonly lookup_ms_p99: number | undefined;
  readonly request_ms_p99: number | undefined;
  /** Answers with a status of 4xx. */
  readonly client_errors_per_second: number | undefined;
  /** Answers with a status of 5xx. */
  readonly server_errors_per_second: number | undefined;
  readonly commits_per_second: number | undefined;
  /** Processors that were busy. */
  readonly cpus: number | undefined;
  readonly event_loop_delay_ms_p99: number | undefined;
}

/** A lookup, as defined in the dashboard in deploy/. */
const LOOKUP = /\/user-authentication-(?:oidc|password)-profile-info\/:id$/;

type LabelFilter = (labels: Labels) => boolean;

const anyLabels: LabelFilter = () => true;
const isLookup: LabelFilter = ({ method, route = '' }) => method === 'GET' && LOOKUP.test(route);

/** Whether the service records request metrics: only with --metrics-port. */
export function countsRequests({ families }: MetricsReading): boolean {
  return families.has(METRICS.requests.name);
}

/** Compares two readings. Undefined if a counter was reset: the service restarted. */
export function figuresBetween(before: MetricsReading, now: MetricsReading): Figures | undefined {
  if (wasReset(before, now)) return undefined;
  const seconds = (now.at - before.at) / MS;
  const rate = ({ name }: { readonly name: string }, matches: LabelFilter = anyLabels) => {
    const grown = increase(before, now, name, matches);
    return grown === undefined ? undefined : grown / seconds;
  };
  const lookups = countsBetween(before, now, METRICS.requestDuration.name, isLookup);
  const all = countsBetween(before, now, METRICS.requestDuration.name, anyLabels);
  const loop = countsBetween(before, now, METRICS.eventLoopDelay.name, anyLabels);
  return {
    lookups_per_second: rate(METRICS.requests, isLookup),
    requests_per_second: rate(METRICS.requests),
    lookup_ms_p50: quantile(lookups, 0.5),
    lookup_ms_p95: quantile(lookups, 0.95),
    lookup_ms_p99: quantile(lookups, 0.99),
    request_ms_p99: quantile(all, 0.99),
    client_errors_per_second: rate(METRICS.requests, ({ status }) => status === '4xx'),
    server_errors_per_second: rate(METRICS.requests, ({ status }) => status === '5xx'),
    commits_per_second: rate(METRICS.commits),
    cpus: rate(METRICS.cpu),
    event_loop_delay_ms_p99: quantile(loop, 0.99),
  };
}

function wasReset(before: MetricsReading, now: MetricsReading): boolean {
  const { name: start } = METRICS.startTime;
  if (gaugeOf(before, start) !== gaugeOf(now, start)) return true;
  return [...before.families.values()].some((family) => {
    const later = now.families.get(family.name);
    if (family.kind === 'gauge' || later === undefined) return false;
    return totalOf(later) < totalOf(family);
  });
}

function totalOf(family: Family): number {
  return sum(
    family.kind === 'histogram'
      ? family.distributions.flatMap(({ counts }) => counts)
      : family.samples.map(({ value }) => value),
  );
}

function increase(
  before: MetricsReading,
  now: MetricsReading,
  name: string,
  matches: LabelFilter,
): number | undefined {
  const family = now.families.get(name);
  if (!family) return undefined;
  return sumOf(family, matches) - sumOf(before.families.get(name), matches);
}

function sumOf(family: Family | undefined, matches: LabelFilter): number {
  const samples = family && family.kind !== 'histogram' ? family.samples : [];
  return sum(samples.filter(({ labels }) => matches(labels)).map(({ value }) => value));
}

interface Counts {
  readonly bounds: readonly number[];
  readonly counts: readonly number[];
}

function countsBetween(
  before: MetricsReading,
  now: MetricsReading,
  name: string,
  matches: LabelFilter,
): Counts {
  const later = countsOf(now.families.get(name), matches);
  const earlier = countsOf(before.families.get(name), matches);
  const counts = later.counts.map((count, place) => count - (earlier.counts[place] ?? 0));
  return { bounds: later.bounds, counts };
}

function countsOf(family: Family | undefined, matches: LabelFilter): Counts {
  if (family?.kind !== 'histogram') return { bounds: [], counts: [] };
  const { bounds } = family;
  const distributions = family.distributions.filter(({ labels }) => matches(labels));
  const counts = Array.from({ length: bounds.length + 1 }, (_, place) =>
    sum(distributions.map(({ counts: each }) => each[place] ?? 0)),
  );
  return { bounds, counts };
}

const MS = 1_000;

/** In milliseconds, interpolated linearly within its bucket, like histogram_quantile of Prometheus. */
export function quantile({ bounds, counts }: Counts, part: number): number | undefined {
  const total = sum(counts);
  if (total <= 0) return undefined;
  const rank = part * total;
  let below = 0;
  for (const [place, count] of counts.entries()) {
    const upper = bounds[place];
    if (upper === undefined) break;
    if (below + count >= rank && count > 0) {
      const lower = bounds[place - 1] ?? 0;
      return (lower + ((upper - lower) * (rank - below)) / count) * MS;
    }
    below += count;
  }
  return (bounds.at(-1) ?? 0) * MS;
}

/** The largest value of a gauge; undefined if it is missing. */
export function gaugeOf({ families }: MetricsReading, name: string): number | undefined {
  const family = families.get(name);
  const samples = family && family.kind !== 'histogram' ? family.samples : [];
  return samples.length === 0 ? undefined : Math.max(...samples.map(({ value }) => value));
}

function sum(values: readonly number[]): number {
  return values.reduce((total, value) => total + value, 0);
}
