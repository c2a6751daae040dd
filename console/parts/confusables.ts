/**
 * What a reader cannot see, or takes for something else, in a text that a stranger has written (Unicode UTS 39 in
 * spirit; the characters are those that look like ASCII in common fonts).
 */

export type Piece =
  | { readonly kind: 'plain'; readonly text: string }
  | { readonly kind: 'invisible'; readonly text: string }
  | { readonly kind: 'alike'; readonly text: string };

/** Seen as nothing, as a gap that is no space, or as another order of what stands around it. */
const INVISIBLE = /[\p{C}\p{Zl}\p{Zp}\p{Default_Ignorable_Code_Point}\p{Bidi_Control}]|(?! )\p{Zs}/u;
/** Spaces that nobody counts. */
const BLANKS = /(^ +| +$| {2,})/;

/** Letters of other scripts that look like ASCII ones. */
const CYRILLIC = 'АВЕЅІЈКМНОРСТУХЬаеорсухіјѕһԁԛԝӏҮүՏ';
const GREEK = 'ΑΒΕΖΗΙΚΜΝΟΡΤΥΧανορτυχιϲϳ';
const OTHERS = 'ОոսօզցհɡɑıǀƖꓐꓑꓓꓔꓖꓗꓙꓚꓜꓝꓟꓠꓡꓢꓣꓦꓧꓪꓫꓬꓮꓰꓲꓳꓴᎪᎳᎵᎷᎻᏀᏃᏚᏞᏟᏢᏦ';
const CONFUSABLES = new Set(CYRILLIC + GREEK + OTHERS);
/** Whole alphabets of look-alikes: full width, and letters for formulas. */
const STYLED_ALPHABETS = /[\uff01-\uff5e\u{1d400}-\u{1d7ff}\u2100-\u214f]/u;

const EMOJI = /(\p{RGI_Emoji})/v;
const WORD = /([\p{L}\p{M}\p{N}]+)/u;

/** The pieces of a text, in their order. */
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

/** Splits a text by a pattern in parentheses: what it matches is read one way, what stands between another. */
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

/** A word that is wholly of another alphabet is what it is, unless every letter of it looks like an ASCII one. */
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

/** A text of a stranger where nothing but text can stand: what cannot be seen, or looks like something else, is spelt out. */
export function plainText(text: string): string {
  return piecesOf(text)
    .map(({ kind, text: piece }) =>
      kind === 'plain' ? piece : `${kind === 'alike' ? piece : ''}[${codePointOf(piece)}]`,
    )
    .join('');
}
