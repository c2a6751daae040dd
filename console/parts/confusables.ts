/**
 * Finds what misleads in untrusted texts: invisible characters, and letters of another script within a word
 * (Unicode UTS 39).
 */

/** Part of a text. A character that misleads has its code point, such as `U+202E`, and is empty if it is invisible. */
interface Piece {
  readonly text: string;
  readonly code?: string;
}

/** Scripts in which a joiner between two letters changes how they are written. */
const JOINING = 'Arab Syrc Mong Nkoo Deva Beng Guru Gujr Orya Taml Telu Knda Mlym Sinh Khmr Mymr'
  .split(' ')
  .map((script) => String.raw`\p{scx=${script}}`)
  .join('');
/** An emoji, or a joiner that its letters need. */
const SHOWN = String.raw`\p{RGI_Emoji}|(?<=[${JOINING}])[\u200c\u200d](?=[${JOINING}])`;
const INVISIBLE = String.raw`[\p{C}\p{Zl}\p{Zp}\p{Default_Ignorable_Code_Point}\p{Bidi_Control}[\p{Zs}--\x20]]`;
/** A space at an end, or next to another one. */
const BLANK = '^ | $|(?<= ) | (?= )';
const WORD = String.raw`(?:(?!${INVISIBLE})[\p{L}\p{M}\p{N}])+`;
const TOKENS = new RegExp(`${SHOWN}|(${INVISIBLE}|${BLANK})|(${WORD})|.`, 'gsv');

/** Full-width and mathematical alphabets. */
const STYLED = /[\uff21-\uff3a\uff41-\uff5a\u{1d400}-\u{1d7ff}\u2100-\u214f]/u;
/** No letter, or one of a script whose words may have Latin letters. */
const NEUTRAL = /\P{L}|[\p{sc=Zyyy}\p{sc=Zinh}\p{scx=Han}\p{scx=Hira}\p{scx=Kana}\p{scx=Hang}\p{scx=Bopo}]/u;
/** Scripts with letters that look like those of another one. */
const SCRIPTS = ['Latin', 'Cyrillic', 'Greek', 'Armenian', 'Cherokee', 'Coptic', 'Lisu'].map(
  (name) => [name, new RegExp(`\\p{sc=${name}}`, 'u')] as const,
);

/** Letters that look like Latin ones in common fonts. */
const CYRILLIC = 'АВЕЅІЈКМНОРСТУХЬаеорсухіјѕһԁԛԝӏҮүՏ';
const GREEK = 'ΑΒΕΖΗΙΚΜΝΟΡΤΥΧανορτυχιϲϳ';
const OTHERS = 'ОոսօզցհꓐꓑꓓꓔꓖꓗꓙꓚꓜꓝꓟꓠꓡꓢꓣꓦꓧꓪꓫꓬꓮꓰꓲꓳꓴᎪᎳᎵᎷᎻᏀᏃᏚᏞᏟᏢᏦ';
const READ_AS_LATIN = new RegExp(`^(?:[${CYRILLIC}${GREEK}${OTHERS}]|${STYLED.source})+$`, 'u');

function scriptOf(character: string): string | undefined {
  if (STYLED.test(character)) return 'styled';
  if (NEUTRAL.test(character)) return undefined;
  return SCRIPTS.find(([, pattern]) => pattern.test(character))?.[0] ?? 'other';
}

/** The script of most letters of a word that mixes scripts; undefined for other words. */
function mainScript(word: string): string | undefined {
  const scripts = [...word].map(scriptOf).filter((script) => script !== undefined);
  const counts = [...Map.groupBy(scripts, (script) => script).values()];
  return counts.length < 2 ? undefined : counts.sort((one, other) => other.length - one.length)[0]?.[0];
}

/** Splits a text at the characters that mislead. */
export function piecesOf(text: string): readonly Piece[] {
  const pieces: Piece[] = [];
  for (const [token, invisible, word] of text.matchAll(TOKENS)) {
    if (invisible !== undefined) pieces.push({ text: '', code: codePointOf(invisible) });
    else
      for (const piece of word === undefined ? [{ text: token }] : piecesOfWord(word)) append(pieces, piece);
  }
  return pieces;
}

function piecesOfWord(word: string): readonly Piece[] {
  const main = mainScript(word);
  return [...word].map((text) =>
    main === undefined || (scriptOf(text) ?? main) === main ? { text } : { text, code: codePointOf(text) },
  );
}

/** Joins adjacent pieces that do not mislead. */
function append(pieces: Piece[], piece: Piece): void {
  const last = pieces.at(-1);
  const isJoined = last && last.code === undefined && piece.code === undefined;
  if (isJoined) pieces[pieces.length - 1] = { text: last.text + piece.text };
  else pieces.push(piece);
}

/** The script of a word that has no Latin letter but could be read as Latin; undefined if there is none. */
export function scriptReadAsLatin(text: string): string | undefined {
  const words = (text.match(/[\p{L}\p{M}\p{N}]+/gu) ?? []).map((word) => word.replace(/\P{L}/gu, ''));
  const word = words.find((letters) => READ_AS_LATIN.test(letters));
  return word === undefined ? undefined : scriptOf(word);
}

function codePointOf(character: string): string {
  return `U+${(character.codePointAt(0) ?? 0).toString(16).toUpperCase().padStart(4, '0')}`;
}

/** Untrusted text where no markup is possible. */
export function plainText(text: string): string {
  return piecesOf(text)
    .map((piece) => (piece.code === undefined ? piece.text : `${piece.text}[${piece.code}]`))
    .join('');
}
