/** Draws from a stream of chance: the same stream, the same draws. */
export interface Draw {
  /** A whole number from 0 up to this one, without it. */
  below(bound: number): number;
  /** From 0 up to 1. */
  share(): number;
  one<T>(of: readonly T[]): T;
  /** Whether what has this share of all cases is the case. */
  happens(share: number): boolean;
  /** Letters and digits that nobody guesses. */
  word(length: number): string;
}

const LETTERS = 'abcdefghijklmnopqrstuvwxyz0123456789';

export function drawOf(chance: () => number): Draw {
  const below = (bound: number) => Math.floor(chance() * bound);
  return {
    below,
    share: chance,
    one: <T>(of: readonly T[]) => of[below(of.length)] as T,
    happens: (share) => chance() < share,
    word: (length) => Array.from({ length }, () => LETTERS[below(LETTERS.length)]).join(''),
  };
}
