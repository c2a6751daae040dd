import { foldedKey } from './folded_key.ts';
import { text } from './text.ts';

/** The Unicode version of `foldedKey`. Keys of another version may differ; `doctor` reports them. */
export const UNICODE_VERSION = process.versions.unicode ?? 'unknown';

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

/** White space, unsafe characters, and what ends or quotes an address where several are written in one field. */
const NOT_IN_EMAIL = '\\s\\p{Cc}\\p{Cs}\\p{Bidi_Control}\\p{Cn},;:<>()\\[\\]\\\\"';
const EMAIL = new RegExp(`^[^@${NOT_IN_EMAIL}]+@[^@.${NOT_IN_EMAIL}]+(?:\\.[^@.${NOT_IN_EMAIL}]+)*$`, 'u');

/**
 * An e-mail address as people have it, stored as given (docs/wire.md#users). It has neither `format` nor `pattern`:
 * those of JSON Schema and of generated clients refuse addresses that exist.
 */
export function email() {
  return text(320).refine((value) => EMAIL.test(value), { error: 'must be an e-mail address' });
}
