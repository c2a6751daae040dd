type Labels = Readonly<Record<string, string>>;

/** A metric family (docs/reference/metrics.md). */
export interface Family {
  readonly name: string;
  readonly kind: 'counter' | 'gauge' | 'histogram';
  readonly samples?: readonly { readonly labels: Labels; readonly value: number }[];
  /** Bucket bounds of a histogram, in seconds. */
  readonly bounds?: readonly number[];
  /** Counts per bucket (not cumulative); the last one is the overflow bucket. */
  readonly distributions?: readonly {
    readonly labels: Labels;
    readonly counts: readonly number[];
    readonly sum: number;
  }[];
}

/** All metrics at one time. */
export interface Snapshot {
  /** Milliseconds, on the monotonic clock. */
  readonly at: number;
  readonly families: ReadonlyMap<string, Family>;
}

export function snapshotOf(families: readonly Family[], at: number): Snapshot {
  return { at, families: new Map(families.map((family) => [family.name, family])) };
}

/** Rates and latencies between two snapshots. Undefined if nothing happened or the metric is missing. */
export interface Figures {
  readonly lookups: number | undefined;
  readonly requests: number | undefined;
  /** Of lookups, in milliseconds. */
  readonly median: number | undefined;
  readonly p95: number | undefined;
  readonly p99: number | undefined;
  /** Of all requests. */
  readonly allP99: number | undefined;
  /** Rate of 4xx responses. */
  readonly refused: number | undefined;
  /** Rate of 5xx responses. */
  readonly failed: number | undefined;
  readonly commits: number | undefined;
  /** Processors that were busy. */
  readonly processors: number | undefined;
  /** Of the event loop, in milliseconds. */
  readonly loopDelay: number | undefined;
}

const REQUESTS = 'authrealm_requests_total';
const SECONDS = 'authrealm_request_duration_seconds';
/** A lookup, as defined in the dashboard in deploy/. */
const LOOKUP = /\/user-authentication-(?:oidc|password)-profile-info\/:id$/;

type LabelFilter = (labels: Labels) => boolean;

const anyLabels: LabelFilter = () => true;
const isLookup: LabelFilter = ({ method, route = '' }) => method === 'GET' && LOOKUP.test(route);

/** Whether the service records request metrics: only with --metrics-port. */
export function countsRequests({ families }: Snapshot): boolean {
  return families.has(REQUESTS);
}

/** Compares two snapshots. Undefined if a counter was reset: the service restarted. */
export function figuresBetween(before: Snapshot, now: Snapshot): Figures | undefined {
  if (wasReset(before, now)) return undefined;
  const seconds = (now.at - before.at) / 1_000;
  const rate = (name: string, matches: LabelFilter = anyLabels) => {
    const grown = increase(before, now, name, matches);
    return grown === undefined ? undefined : grown / seconds;
  };
  const lookups = countsBetween(before, now, SECONDS, isLookup);
  const all = countsBetween(before, now, SECONDS, anyLabels);
  const loop = countsBetween(before, now, 'authrealm_event_loop_delay_seconds', anyLabels);
  return {
    lookups: rate(REQUESTS, isLookup),
    requests: rate(REQUESTS),
    median: quantile(lookups, 0.5),
    p95: quantile(lookups, 0.95),
    p99: quantile(lookups, 0.99),
    allP99: quantile(all, 0.99),
    refused: rate(REQUESTS, ({ status }) => status === '4xx'),
    failed: rate(REQUESTS, ({ status }) => status === '5xx'),
    commits: rate('authrealm_commits_total'),
    processors: rate('process_cpu_seconds_total'),
    loopDelay: quantile(loop, 0.99),
  };
}

function wasReset(before: Snapshot, now: Snapshot): boolean {
  const start = 'process_start_time_seconds';
  if (gaugeOf(before, start) !== gaugeOf(now, start)) return true;
  return [...before.families.values()].some((family) => {
    const later = now.families.get(family.name);
    if (family.kind === 'gauge' || later === undefined) return false;
    return totalOf(later) < totalOf(family);
  });
}

function totalOf({ samples = [], distributions = [] }: Family): number {
  return sum(samples.map(({ value }) => value)) + sum(distributions.flatMap(({ counts }) => counts));
}

function increase(before: Snapshot, now: Snapshot, name: string, matches: LabelFilter): number | undefined {
  const family = now.families.get(name);
  if (!family) return undefined;
  return sumOf(family, matches) - sumOf(before.families.get(name), matches);
}

function sumOf(family: Family | undefined, matches: LabelFilter): number {
  return sum((family?.samples ?? []).filter(({ labels }) => matches(labels)).map(({ value }) => value));
}

interface Counts {
  readonly bounds: readonly number[];
  readonly counts: readonly number[];
}

function countsBetween(before: Snapshot, now: Snapshot, name: string, matches: LabelFilter): Counts {
  const family = now.families.get(name);
  const bounds = family?.bounds ?? [];
  const later = countsOf(family, matches);
  const earlier = countsOf(before.families.get(name), matches);
  return { bounds, counts: later.map((count, place) => count - (earlier[place] ?? 0)) };
}

function countsOf(family: Family | undefined, matches: LabelFilter): readonly number[] {
  const distributions = (family?.distributions ?? []).filter(({ labels }) => matches(labels));
  const places = (family?.bounds?.length ?? -1) + 1;
  return Array.from({ length: places }, (_, place) =>
    sum(distributions.map(({ counts }) => counts[place] ?? 0)),
  );
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
export function gaugeOf({ families }: Snapshot, name: string): number | undefined {
  const samples = families.get(name)?.samples ?? [];
  return samples.length === 0 ? undefined : Math.max(...samples.map(({ value }) => value));
}

/** A label of an info metric, whose value is always 1. */
export function labelOf({ families }: Snapshot, name: string, label: string): string | undefined {
  return families.get(name)?.samples?.[0]?.labels[label];
}

function sum(values: readonly number[]): number {
  return values.reduce((total, value) => total + value, 0);
}

const FEW = new Intl.NumberFormat(undefined, { maximumSignificantDigits: 2 });
const MANY = new Intl.NumberFormat(undefined, { maximumFractionDigits: 0 });
const FEW_MAX = 10;
const MINUTE_SECONDS = 60;

export function number(value: number): string {
  return value < FEW_MAX ? FEW.format(value) : MANY.format(value);
}

export function rate(value: number): string {
  return `${number(value)}/s`;
}

export function milliseconds(value: number): string {
  return `${number(value)} ms`;
}

/** `value` in seconds. */
export function duration(value: number): string {
  return value < 2 * MINUTE_SECONDS ? `${number(value)} s` : `${MANY.format(value / MINUTE_SECONDS)} min`;
}
