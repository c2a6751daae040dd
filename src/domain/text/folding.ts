import { z } from 'zod';
import { text } from './text.ts';

/** The Unicode version the folding below was made with. A key made with another one may differ: see `doctor`. */
export const UNICODE_VERSION = process.versions.unicode ?? 'unknown';

/** Printable ASCII, for which all steps but the last lowering change nothing. */
const PLAIN = /^[\x20-\x7e]*$/;
const IGNORABLE = /\p{Default_Ignorable_Code_Point}/gu;

/**
 * The key by which two usernames, e-mail addresses or names are the same one (contract 8, row 16): NFKC, without
 * invisible code points, upper, lower, NFKC. Made here and compared bytewise, so that every engine agrees.
 * Look-alikes of other scripts stay distinct. So does one letter from its own small form, because the row's steps are
 * taken as written: the capital sharp s (U+1E9E) is its own upper case, while that of the small one is SS. Lower case
 * knows two small sigmas, by their place in the word: one of them stands for both, so that a key that begins with
 * another one still does when the text goes on. Which texts are the same does not depend on it.
 */
export function foldedKey(value: string): string {
  if (PLAIN.test(value)) return value.toLowerCase();
  const lowered = value.normalize('NFKC').replace(IGNORABLE, '').toUpperCase().toLowerCase();
  return lowered.replaceAll(FINAL_SIGMA, SIGMA).normalize('NFKC');
}

const FINAL_SIGMA = '\u03c2';
const SIGMA = '\u03c3';

/** A key must fit an index row beside the other columns of its index (contract 8, row 41). */
export const KEY_BYTES_MAX = 1020;

const UNFIT = /[\p{Bidi_Control}\p{Cn}\p{Co}]/u;

/** A username: kept as given, unique by its folded key. */
export function username() {
  return text(255)
    .refine((value) => !UNFIT.test(value), {
      error: 'must hold no bidirectional control, unassigned or private-use character',
      abort: true,
    })
    .refine((value) => foldedKey(value) !== '', { error: 'must hold at least one visible character' })
    .refine((value) => Buffer.byteLength(foldedKey(value)) <= KEY_BYTES_MAX, {
      error: `must fold to at most ${KEY_BYTES_MAX} bytes`,
    });
}

/** An e-mail address as the contract understands it: a plausible one, kept as given. */
export function email() {
  return text(320).pipe(z.email({ error: 'must be an e-mail address' }));
}
