import type { SqlValue } from '../transaction_work.ts';

const PLACEHOLDER = /\?(\d*)/g;

/**
 * Numbers the placeholders of a statement: `?` takes the value after the highest one used so far, `?2` the second value, and may be
 * repeated. Values without a placeholder are left out. `order` has the index of the value of `$1`, `$2`, ….
 */
export function numberParameters(text: string) {
  const order: number[] = [];
  const numbers = new Map<number, number>();
  let last = 0;
  const numbered = text.replace(PLACEHOLDER, (_, digits: string) => {
    const position = digits === '' ? last + 1 : Number(digits);
    last = Math.max(last, position);
    return `$${numbers.getOrInsertComputed(position, () => order.push(position - 1))}`;
  });
  return { text: numbered, order };
}

/** A value as it is passed to the driver. */
export type ParameterValue = string | Uint8Array | null;

/** Numbers are sent as text: the server then infers the type of each parameter, and a statement has one form. */
export function parameterValues(values: readonly SqlValue[], order: readonly number[]): ParameterValue[] {
  return order.map((index) => {
    const value = values[index];
    if (value === undefined) throw new Error('a placeholder of the statement has no value');
    return typeof value === 'number' ? String(value) : value;
  });
}
