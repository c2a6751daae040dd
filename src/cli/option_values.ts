import { InvalidArgumentError, Option } from 'commander';

/** Options of several commands, and parsers of their values, which throw InvalidArgumentError for an invalid one. */

/** An option with several words, which may be repeated. */
export function listOption(flags: string, description: string): Option {
  return new Option(flags, description).argParser((raw: string, before: readonly string[] = []) => [
    ...before,
    ...raw.split(' ').filter(Boolean),
  ]);
}

/** `--all-realms` instead of `--realm`, for example: its value is `*`. */
export function allOption(name: string, description: string): Option {
  return new Option(`--all-${name}s`, description).preset('*').conflicts(name);
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
