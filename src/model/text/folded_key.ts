/** Printable ASCII without a blank that folding removes: only lower-casing changes anything. */
const PLAIN = /^[\x21-\x7e]+(?: [\x21-\x7e]+)*$/;
const IGNORABLE = /\p{Default_Ignorable_Code_Point}/gu;
/** White space, and characters that are as blank: of Braille, of musical notation, and of Khitan and Egyptian script. */
const BLANKS = /[\p{White_Space}\u2800\u{1d159}\u{16fe4}\u{13441}\u{13442}]+/gu;
const FINAL_SIGMA = '\u03c2';
const SIGMA = '\u03c3';

/**
 * Two usernames, e-mail addresses or names are equal if their keys are (docs/wire.md#folded-keys): those that nobody can tell
 * apart by typing. The program computes the key, and engines compare its bytes, so that all engines agree. Look-alikes of
 * other scripts stay distinct.
 */
export function foldedKey(value: string): string {
  return PLAIN.test(value) ? value.toLowerCase() : foldedPart(value).trim();
}

/**
 * The key of a part of a text, which keeps a blank at its ends. Lower-casing before upper-casing makes one of both capital
 * letters of the sharp s. It yields two small sigmas, by their position in the word: the key replaces the final one, so that a
 * prefix of a text still has a prefix of its key.
 */
export function foldedPart(value: string): string {
  const visible = value.normalize('NFKC').replace(IGNORABLE, '');
  const lowered = visible.toLowerCase().toUpperCase().toLowerCase();
  return lowered.replaceAll(FINAL_SIGMA, SIGMA).normalize('NFKC').replace(BLANKS, ' ');
}
