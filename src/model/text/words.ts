/** The characters that end a word of a name, an e-mail address or a username, next to the space. */
export const WORD_SEPARATORS = `.,;:_-+/\\|@&"'()’‐–·・`;

/** A longer word is found by so many characters of it. */
export const WORD_CHARACTERS_MAX = 64;

const SEPARATED = new RegExp(`[ ${WORD_SEPARATORS.replace(/[\\\]-]/g, '\\$&')}]+`, 'u');

const ASCII = /^[\x20-\x7e]*$/;
/** Accents, and the vowel signs of Hebrew and Arabic. In Japanese and Indic scripts, marks make other syllables. */
const ACCENTS = /[[\p{Mn}&&[\p{sc=Inherited}\p{sc=Hebrew}]]--[\u3099\u309a]]/gv;
/** The usual spelling of Latin letters that have no accent to lose. A folded key has no `ı` and no `ß`. */
const SPELLINGS: Readonly<Record<string, string>> = {
  ł: 'l',
  ø: 'o',
  đ: 'd',
  ħ: 'h',
  ð: 'd',
  æ: 'ae',
  œ: 'oe',
  þ: 'th',
};
const SPELLED = new RegExp(`[${Object.keys(SPELLINGS).join('')}]`, 'g');

/** The words of a folded key, each once and without accents. */
export function wordsOf(key: string): readonly string[] {
  const words = withoutAccents(key)
    .split(SEPARATED)
    .filter((word) => word !== '');
  return [...new Set(words.map(cut))];
}

function withoutAccents(key: string): string {
  if (ASCII.test(key)) return key;
  const bare = key.normalize('NFD').replace(ACCENTS, '');
  return bare.replace(SPELLED, (letter) => SPELLINGS[letter] ?? letter).normalize('NFC');
}

function cut(word: string): string {
  return word.length <= WORD_CHARACTERS_MAX ? word : [...word].slice(0, WORD_CHARACTERS_MAX).join('');
}

/** Two characters, or one of a script in which a name may have only one. */
const LONG_WORD = /^(?:..|\p{scx=Han}|\p{scx=Hangul}|\p{scx=Hiragana}|\p{scx=Katakana})/u;

/** Whether the beginning of a word is long enough to search all realms for it: shorter ones match too much. */
export function isLongWord(word: string): boolean {
  return LONG_WORD.test(word);
}
