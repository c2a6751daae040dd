import { z } from 'zod';
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

/** An e-mail address: plausible, and stored as given. */
export function email() {
  return text(320).pipe(z.email({ error: 'must be an e-mail address' }));
}
