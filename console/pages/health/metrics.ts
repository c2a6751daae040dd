import type { MetricsReading } from '../../../src/metrics/figures.ts';

/** A label of an info metric, whose value is always 1. */
export function labelOf({ families }: MetricsReading, name: string, label: string): string | undefined {
  const family = families.get(name);
  return family && family.kind !== 'histogram' ? family.samples[0]?.labels[label] : undefined;
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
