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
