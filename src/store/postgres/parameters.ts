import type { SqlValue } from '../records/statements.ts';

/** A text with the places of the protocol, `$1` and on, and for each of them which value it takes. */
export interface NumberedStatement {
  readonly text: string;
  readonly order: readonly number[];
}

const PLACE = /\?(\d*)/g;

/**
 * Numbers the places of a statement. Its own are `?`, which takes the value behind the last one named so far, or `?2`,
 * which may stand in several places; values that no place names are left out.
 */
export function numberParameters(text: string): NumberedStatement {
  const order: number[] = [];
  const known = new Map<number, number>();
  let last = 0;
  const said = text.replace(PLACE, (_, digits: string) => {
    const named = digits === '' ? last + 1 : Number(digits);
    last = Math.max(last, named);
    let place = known.get(named);
    if (place === undefined) {
      place = order.push(named - 1);
      known.set(named, place);
    }
    return `$${place}`;
  });
  return { text: said, order };
}

/** A value as the driver sends it. */
export type ParameterValue = string | Uint8Array | null;

/** Numbers go as text: their type is then the one of their place, and a statement has one form. */
export function parameterValues(values: readonly SqlValue[], order: readonly number[]): ParameterValue[] {
  return order.map((index) => {
    const value = values[index];
    if (value === undefined) throw new Error('a place of the statement has no value');
    return typeof value === 'number' ? String(value) : value;
  });
}
