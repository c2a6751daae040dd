import { z } from 'zod';
import { text } from './text.ts';

/** The Unicode version of `foldedKey`. Keys of another version may differ; `doctor` reports them. */
export const UNICODE_VERSION = process.versions.unicode ?? 'unknown';

/** Printable ASCII, for which only the last lower-casing changes anything. */
const PLAIN = /^[\x20-\x7e]*$/;
const IGNORABLE = /\p{Default_Ignorable_Code_Point}/gu;

/**
 * Two usernames, e-mail addresses or names are equal if their keys are (docs/wire.md#folded-keys): NFKC, without
 * invisible code points, upper case, lower case, NFKC. The program computes the key, and engines compare its bytes, so
 * that all engines agree. Look-alikes of other scripts stay distinct. So does the capital sharp s (U+1E9E) from the small
 * one: it is its own upper case, while that of the small one is SS. Lower-casing yields two small sigmas, by their
 * position in the word. The key replaces the final one, so that a prefix of a text still has a prefix of its key; this
 * does not change which texts are equal.
 */
export function foldedKey(value: string): string {
  if (PLAIN.test(value)) return value.toLowerCase();
  const lowered = value.normalize('NFKC').replace(IGNORABLE, '').toUpperCase().toLowerCase();
  return lowered.replaceAll(FINAL_SIGMA, SIGMA).normalize('NFKC');
}

const FINAL_SIGMA = '\u03c2';
const SIGMA = '\u03c3';

/** A key must fit an index row together with the other columns of the index. */
export const KEY_BYTES_MAX = 1020;

const UNFIT = /[\p{Bidi_Control}\p{Cn}\p{Co}]/u;

/** A text of 1 to `max` code points that looks like what it is. */
export function displayedText(max: number) {
  return text(max).refine((value) => !UNFIT.test(value), {
    error: 'must hold no bidirectional control, unassigned or private-use character',
    abort: true,
  });
}

/** A username: stored as given, unique by its folded key. */
export function username() {
  return displayedText(255)
    .refine((value) => foldedKey(value) !== '', { error: 'must hold at least one visible character' })
    .refine((value) => Buffer.byteLength(foldedKey(value)) <= KEY_BYTES_MAX, {
      error: `must fold to at most ${KEY_BYTES_MAX} bytes`,
    });
}

/** An e-mail address: plausible, and stored as given. */
export function email() {
  return text(320).pipe(z.email({ error: 'must be an e-mail address' }));
}
