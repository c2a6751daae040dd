/**
 * Finds invisible and confusable characters in untrusted texts (after Unicode UTS 39, limited to characters
 * that look like ASCII in common fonts).
 */

export type Piece =
  | { readonly kind: 'plain'; readonly text: string }
  | { readonly kind: 'invisible'; readonly text: string }
  | { readonly kind: 'alike'; readonly text: string };

/** Invisible, an unusual space, or a bidirectional control. */
const INVISIBLE = /[\p{C}\p{Zl}\p{Zp}\p{Default_Ignorable_Code_Point}\p{Bidi_Control}]|(?! )\p{Zs}/u;
/** Leading, trailing and repeated spaces. */
const BLANKS = /(^ +| +$| {2,})/;

/** Letters of other scripts that look like ASCII letters. */
const CYRILLIC = 'АВЕЅІЈКМНОРСТУХЬаеорсухіјѕһԁԛԝӏҮүՏ';
const GREEK = 'ΑΒΕΖΗΙΚΜΝΟΡΤΥΧανορτυχιϲϳ';
const OTHERS = 'ОոսօզցհɡɑıǀƖꓐꓑꓓꓔꓖꓗꓙꓚꓜꓝꓟꓠꓡꓢꓣꓦꓧꓪꓫꓬꓮꓰꓲꓳꓴᎪᎳᎵᎷᎻᏀᏃᏚᏞᏟᏢᏦ';
const CONFUSABLES = new Set(CYRILLIC + GREEK + OTHERS);
/** Full-width and mathematical alphabets. */
const STYLED_ALPHABETS = /[\uff01-\uff5e\u{1d400}-\u{1d7ff}\u2100-\u214f]/u;

const EMOJI = /(\p{RGI_Emoji})/v;
const WORD = /([\p{L}\p{M}\p{N}]+)/u;

/** Splits a text into pieces. */
export function piecesOf(text: string): readonly Piece[] {
  if (/^[\x21-\x7e]+( [\x21-\x7e]+)*$/.test(text)) return [plain(text)];
  return joined(
    splitBy(text, BLANKS, invisible, (part) =>
      splitBy(
        part,
        EMOJI,
        (emoji) => [plain(emoji)],
        (rest) => splitBy(rest, WORD, piecesOfWord, piecesOfGap),
      ),
    ),
  );
}

/** Splits a text by a capturing pattern; matches and the text between them are handled separately. */
function splitBy(
  text: string,
  pattern: RegExp,
  matched: (part: string) => Piece[],
  between: (part: string) => Piece[],
): Piece[] {
  return text.split(pattern).flatMap((part, index) => (index % 2 === 1 ? matched(part) : between(part)));
}

function invisible(blanks: string): Piece[] {
  return [...blanks].map((text) => ({ kind: 'invisible', text }));
}

function piecesOfGap(gap: string): Piece[] {
  return [...gap].map((text) => ({ kind: INVISIBLE.test(text) ? 'invisible' : 'plain', text }));
}

/** A word entirely in another script is plain, unless each of its letters looks like ASCII. */
function piecesOfWord(word: string): Piece[] {
  const characters = [...word];
  const letters = characters.filter((each) => /\p{L}/u.test(each));
  const isForeign =
    letters.every((each) => !/[A-Za-z]/.test(each)) && letters.some((each) => !isConfusable(each));
  return characters.map((text): Piece => {
    if (INVISIBLE.test(text)) return { kind: 'invisible', text };
    return {
      kind: isConfusable(text) && !(isForeign && !STYLED_ALPHABETS.test(text)) ? 'alike' : 'plain',
      text,
    };
  });
}

function isConfusable(character: string): boolean {
  return CONFUSABLES.has(character) || STYLED_ALPHABETS.test(character);
}

function plain(text: string): Piece {
  return { kind: 'plain', text };
}

function joined(pieces: readonly Piece[]): readonly Piece[] {
  const all: Piece[] = [];
  for (const piece of pieces) {
    const last = all.at(-1);
    if (last?.kind === 'plain' && piece.kind === 'plain') all[all.length - 1] = plain(last.text + piece.text);
    else all.push(piece);
  }
  return all;
}

/** `U+202E`. */
export function codePointOf(character: string): string {
  return `U+${(character.codePointAt(0) ?? 0).toString(16).toUpperCase().padStart(4, '0')}`;
}

/** Untrusted text where no markup is possible: suspicious characters are spelled out. */
export function plainText(text: string): string {
  return piecesOf(text)
    .map(({ kind, text: piece }) =>
      kind === 'plain' ? piece : `${kind === 'alike' ? piece : ''}[${codePointOf(piece)}]`,
    )
    .join('');
}
