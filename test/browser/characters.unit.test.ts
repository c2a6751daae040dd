import { describe, expect, test } from 'bun:test';
import { codePointOf, piecesOf } from '../../console/parts/confusables.ts';

const marked = (text: string) =>
  piecesOf(text).map(({ kind, text: piece }) =>
    kind === 'plain' ? piece : `[${kind} ${codePointOf(piece)}]`,
  );

describe('invisible characters', () => {
  test.each([
    ['jane\u202egnp.exe', ['jane', '[invisible U+202E]', 'gnp.exe']],
    ['a\u200bb', ['a', '[invisible U+200B]', 'b']],
    ['a\u00a0b', ['a', '[invisible U+00A0]', 'b']],
    ['a\ufeff', ['a', '[invisible U+FEFF]']],
    ['a\u{e0041}b', ['a', '[invisible U+E0041]', 'b']],
    ['\u3164', ['[invisible U+3164]']],
    ['a\ue000', ['a', '[invisible U+E000]']],
    [' a', ['[invisible U+0020]', 'a']],
    ['a ', ['a', '[invisible U+0020]']],
    ['a  b', ['a', '[invisible U+0020]', '[invisible U+0020]', 'b']],
  ])('invisible characters are marked with their code points in %j', (text, pieces) =>
    expect(marked(text)).toEqual(pieces),
  );
});

describe('characters that look like other letters', () => {
  test.each([
    ['pаypal', ['p', '[alike U+0430]', 'ypal']],
    ['аррӏе', ['а', 'р', 'р', 'ӏ', 'е'].map((letter) => `[alike ${codePointOf(letter)}]`)],
    ['ｊane', ['[alike U+FF4A]', 'ane']],
    ['𝐣ane', ['[alike U+1D423]', 'ane']],
    ['Αdmin', ['[alike U+0391]', 'dmin']],
  ])('letters that look like Latin ones are marked with their code points in %j', (text, pieces) =>
    expect(marked(text)).toEqual(pieces),
  );
});

describe('ordinary text', () => {
  test.each([
    'Jane Doe',
    'auth0|5f7c8ec7c33c6c004bbafe82',
    'Zoë Müller-Lüdenscheidt',
    'Анна Каренина',
    'Αλέξανδρος',
    '王小明',
    'محمد',
    'שרה',
    'नेहा',
    '👩‍👩‍👧 and 🏳️‍🌈',
    '',
  ])('ordinary text is not marked: %j', (text) => expect(marked(text).join('')).toBe(text));
});
