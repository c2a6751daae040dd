/**
 * The characters that end a word of a name, an e-mail address or a username, next to the space. The migrations that index the
 * words name the same ones.
 */
export const WORD_SEPARATORS = `.,;:_-+/\\|@&"'()’‐–·・`;

/** A longer word is found by so many characters of it. */
export const WORD_CHARACTERS_MAX = 64;

const SEPARATED = new RegExp(`[ ${WORD_SEPARATORS.replace(/[\\\]-]/g, '\\$&')}]+`, 'u');

/** The words of a folded key, each once. */
export function wordsOf(key: string): readonly string[] {
  const words = key.split(SEPARATED).filter((word) => word !== '');
  return [...new Set(words.map((word) => [...word].slice(0, WORD_CHARACTERS_MAX).join('')))];
}

/** Two characters, or one of a script in which a name may have only one. */
const LONG_WORD = /^(?:..|\p{scx=Han}|\p{scx=Hangul}|\p{scx=Hiragana}|\p{scx=Katakana})/u;

/** Whether the beginning of a word is long enough to search all realms for it: shorter ones match too much. */
export function isLongWord(word: string): boolean {
  return LONG_WORD.test(word);
}
