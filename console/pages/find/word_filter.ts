import { SCHEMA } from 'authrealm:schema';
import { type Filter, matches } from '../../../src/client/filter.ts';
import { foldedKey } from '../../../src/model/text/folded_key.ts';
import { isLongWord, wordsOf } from '../../../src/model/text/words.ts';

const { filterWordsMax } = SCHEMA.limits;

/** A search for the beginnings of the words of a text; undefined for a text with a `wordProblem`. */
export function wordFilter(text: string): Filter | undefined {
  return wordProblem(text) === undefined ? matches('text', text) : undefined;
}

/** Why the service rejects a search for the words of a text, as a sentence for the user. */
export function wordProblem(text: string): string | undefined {
  const words = wordsOf(foldedKey(text));
  if (words.length > filterWordsMax) return `Type at most ${filterWordsMax} words.`;
  return words.some(isLongWord) ? undefined : 'Type a word of at least 2 letters or digits.';
}
