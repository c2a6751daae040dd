import type { Family, Labels, Snapshot } from '../../../src/ops/metrics/family.ts';
import { callApi } from '../../api/call_api.ts';

/** The metrics of all processes, when they were read. */
export interface MetricsReading {
  /** ISO 8601. */
  readonly at: string;
  readonly families: ReadonlyMap<string, Family>;
}

export async function readMetrics(signal: AbortSignal): Promise<MetricsReading> {
  const path = 'admin/v1/metrics';
  const { body } = await callApi<{ data: { families: Snapshot } }>({ path, signal, scope: 'admin' });
  return {
    at: new Date().toISOString(),
    families: new Map(body.data.families.map((family) => [family.name, family])),
  };
}

function samplesOf({ families }: MetricsReading, name: string) {
  const family = families.get(name);
  return family && family.kind !== 'histogram' ? family.samples : [];
}

/** A label of an info metric, whose value is always 1. */
export function labelOf(reading: MetricsReading, name: string, label: string): string | undefined {
  return samplesOf(reading, name)[0]?.labels[label];
}

/** The largest value of a gauge; undefined if it is missing. */
export function gaugeOf(reading: MetricsReading, name: string): number | undefined {
  const samples = samplesOf(reading, name);
  return samples.length === 0 ? undefined : Math.max(...samples.map(({ value }) => value));
}

/** The sum of a counter over the samples whose labels match; undefined if it is missing. */
export function totalOf(
  reading: MetricsReading,
  name: string,
  matches: (labels: Labels) => boolean,
): number | undefined {
  if (!reading.families.has(name)) return undefined;
  const values = samplesOf(reading, name).filter(({ labels }) => matches(labels));
  return values.reduce((total, { value }) => total + value, 0);
}

const FEW = new Intl.NumberFormat(undefined, { maximumSignificantDigits: 2 });
const MANY = new Intl.NumberFormat(undefined, { maximumFractionDigits: 0 });
const FEW_MAX = 10;
const MINUTE_SECONDS = 60;

export function number(value: number): string {
  return value < FEW_MAX ? FEW.format(value) : MANY.format(value);
}

/** `value` in seconds. */
export function duration(value: number): string {
  return value < 2 * MINUTE_SECONDS ? `${number(value)} s` : `${MANY.format(value / MINUTE_SECONDS)} min`;
}
