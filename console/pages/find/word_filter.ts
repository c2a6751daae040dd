import { SCHEMA } from 'authrealm:schema';
import { type Filter, matches } from '../../../src/client/filter.ts';
import { foldedKey } from '../../../src/domain/text/folded_key.ts';
import { wordsOf } from '../../../src/domain/text/words.ts';

/** One word has so many characters: shorter beginnings match too much. */
const CHARACTERS_MIN = 2;
const { filterWordsMax } = SCHEMA.limits;

/** A search for the beginnings of the words of a text; undefined for a text with a `wordProblem`. */
export function wordFilter(text: string): Filter | undefined {
  return wordProblem(text) === undefined ? matches('text', text) : undefined;
}

/** Why the service rejects a search for the words of a text, as a sentence for the user. */
export function wordProblem(text: string): string | undefined {
  const words = wordsOf(foldedKey(text));
  if (words.length > filterWordsMax) return `Type at most ${filterWordsMax} words.`;
  const isLong = words.some((word) => word.length >= CHARACTERS_MIN);
  return isLong ? undefined : `Type a word of at least ${CHARACTERS_MIN} letters or digits.`;
}
