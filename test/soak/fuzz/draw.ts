/** Draws from a random number generator: the same seed gives the same draws. */
export interface Draw {
  /** An integer from 0 to `bound`, exclusive. */
  below(bound: number): number;
  /** A number from 0 to 1, exclusive. */
  share(): number;
  one<T>(of: readonly T[]): T;
  /** True with this probability. */
  happens(share: number): boolean;
  /** Random letters and digits. */
  word(length: number): string;
}

const LETTERS = 'abcdefghijklmnopqrstuvwxyz0123456789';

export function drawOf(random: () => number): Draw {
  const below = (bound: number) => Math.floor(random() * bound);
  return {
    below,
    share: random,
    one: <T>(of: readonly T[]) => of[below(of.length)] as T,
    happens: (share) => random() < share,
    word: (length) => Array.from({ length }, () => LETTERS[below(LETTERS.length)]).join(''),
  };
}
