import { InvalidArgumentError } from 'commander';

/** Parsers of the values of options. Each throws InvalidArgumentError for an invalid one. */

/** The words of an option that may be repeated. */
export function words(raw: string, before: readonly string[] = []): readonly string[] {
  return [...before, ...raw.split(' ').filter(Boolean)];
}

/** A whole number from 1 on, at most `most`. */
export function parseWholeNumber(most?: number): (raw: string) => number {
  const range = most === undefined ? 'of at least 1' : `from 1 to ${most}`;
  return (raw) => {
    const value = /^[1-9]\d{0,14}$/.test(raw) ? Number(raw) : Number.NaN;
    if (value <= (most ?? value)) return value;
    throw new InvalidArgumentError(`Expected a whole number ${range}.`);
  };
}
