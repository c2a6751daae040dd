import type { HealthCheck } from '../../description.ts';
import { gaugeOf, type MetricsReading, START_TIME, samplesOf } from './metrics.ts';

/** A check with the value that its alert compares with the limit; undefined if there is nothing to measure. */
export interface CheckResult {
  readonly check: HealthCheck;
  readonly value: number | undefined;
  readonly isBroken: boolean;
}

/** Counters are compared with an earlier reading. Without one they count from the start of the service. */
export function runCheck(
  check: HealthCheck,
  now: MetricsReading,
  earlier: MetricsReading | undefined,
): CheckResult {
  const value = measure(check, now, earlier);
  const isBelow = value !== undefined && value < check.limit;
  return { check, value, isBroken: check.isMinimum ? isBelow : value !== undefined && value > check.limit };
}

function measure(check: HealthCheck, now: MetricsReading, earlier?: MetricsReading): number | undefined {
  const { metric, per, over, seconds = 0, quantile } = check;
  if (quantile !== undefined) return quantileOf(quantile, now, earlier, check);
  if (over === undefined)
    return per === undefined
      ? gaugeOf(now, metric, (labels) => isMatch(check, labels))
      : largestShare(now, metric, per);
  if (!now.families.has(metric)) return undefined;
  const added = sumOf(now, check) - (earlier ? sumOf(earlier, check) : 0);
  if (per !== undefined) {
    const all = { metric: per, labels: [] };
    const total = sumOf(now, all) - (earlier ? sumOf(earlier, all) : 0);
    return total === 0 ? 0 : added / total;
  }
  const startedAt = (gaugeOf(now, START_TIME) ?? 0) * 1_000;
  // In a time shorter than that of the alert, nothing is extrapolated.
  const elapsed = Math.max((now.at - (earlier?.at ?? startedAt)) / 1_000, seconds);
  return over === 'rate' ? added / elapsed : (added * seconds) / elapsed;
}

type Selector = Pick<HealthCheck, 'metric' | 'labels'>;

function isMatch({ labels: patterns }: Selector, labels: Readonly<Record<string, string>>): boolean {
  return patterns.every(([label, pattern]) => new RegExp(`^(?:${pattern})$`).test(labels[label] ?? ''));
}

function sumOf(reading: MetricsReading, selector: Selector): number {
  return samplesOf(reading, selector.metric)
    .filter(({ labels }) => isMatch(selector, labels))
    .reduce((sum, { value }) => sum + value, 0);
}

/** Of two gauges with the same labels. */
function largestShare(reading: MetricsReading, metric: string, per: string): number | undefined {
  const shares = samplesOf(reading, metric).flatMap(({ labels, value }) => {
    const whole = gaugeOf(reading, per, (other) => JSON.stringify(other) === JSON.stringify(labels));
    return whole ? [value / whole] : [];
  });
  return shares.length === 0 ? undefined : Math.max(...shares);
}

/** Interpolates within a bucket, as Prometheus does. */
function quantileOf(
  quantile: number,
  now: MetricsReading,
  earlier: MetricsReading | undefined,
  selector: Selector,
): number | undefined {
  const family = now.families.get(selector.metric);
  if (family?.kind !== 'histogram') return undefined;
  const before = earlier ? countsOf(earlier, selector) : [];
  const counts = countsOf(now, selector).map((count, index) => count - (before[index] ?? 0));
  const total = counts.reduce((sum, count) => sum + count, 0);
  let below = 0;
  for (const [index, count] of counts.entries()) {
    const upper = family.bounds[index];
    if (upper === undefined) break;
    const lower = family.bounds[index - 1] ?? 0;
    if (count > 0 && below + count >= quantile * total)
      return lower + ((upper - lower) * (quantile * total - below)) / count;
    below += count;
  }
  return total === 0 ? undefined : family.bounds.at(-1);
}

function countsOf({ families }: MetricsReading, selector: Selector): readonly number[] {
  const family = families.get(selector.metric);
  if (family?.kind !== 'histogram') return [];
  const matching = family.distributions.filter(({ labels }) => isMatch(selector, labels));
  return [...family.bounds, Number.POSITIVE_INFINITY].map((_, index) =>
    matching.reduce((sum, { counts }) => sum + (counts[index] ?? 0), 0),
  );
}
