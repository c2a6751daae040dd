import { SCHEMA } from 'authrealm:schema';
import { type Filter, matches } from '../../../src/client/filter.ts';

/** One word has so many characters: shorter beginnings match too much. */
const CHARACTERS_MIN = 2;

/** A search for the beginnings of the words of a text; undefined if they are too short or too many. */
export function wordFilter(text: string): Filter | undefined {
  const words = visibleText(text).split(/[\s\p{P}]+/u);
  const isLong = words.some((word) => word.length >= CHARACTERS_MIN);
  return isLong && words.length <= SCHEMA.limits.filterWordsMax ? matches('text', text) : undefined;
}

/** The text without invisible characters. */
export function visibleText(text: string): string {
  return text.normalize('NFKC').replace(/\p{Default_Ignorable_Code_Point}/gu, '');
}
