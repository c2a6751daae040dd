const FEW = new Intl.NumberFormat(undefined, { maximumSignificantDigits: 2 });
const MANY = new Intl.NumberFormat(undefined, { maximumFractionDigits: 0 });
const FEW_MAX = 10;
const MINUTE_SECONDS = 60;

function shown(value: number): string {
  return value < FEW_MAX ? FEW.format(value) : MANY.format(value);
}

export function rate(value: number): string {
  return `${shown(value)}/s`;
}

export function milliseconds(value: number): string {
  return `${shown(value)} ms`;
}

/** `value` in seconds. */
export function duration(value: number): string {
  return value < 2 * MINUTE_SECONDS ? `${shown(value)} s` : `${MANY.format(value / MINUTE_SECONDS)} min`;
}

export function count(value: number): string {
  return shown(value);
}
