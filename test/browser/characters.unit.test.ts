import { describe, expect, test } from 'bun:test';
import { piecesOf, scriptReadAsLatin } from '../../console/parts/confusables.ts';

const marked = (text: string) =>
  piecesOf(text).map(({ text: piece, code }) =>
    code === undefined ? piece : `[${piece === '' ? 'invisible' : 'alike'} ${code}]`,
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
    ['jan\u200de', ['jan', '[invisible U+200D]', 'e']],
    ['\u200cمی', ['[invisible U+200C]', 'می']],
    ['د\u200fعوة', ['د', '[invisible U+200F]', 'عوة']],
  ])('invisible characters are marked with their code points in %j', (text, pieces) =>
    expect(marked(text)).toEqual(pieces),
  );
});

describe('words that mix scripts', () => {
  test.each([
    ['pаypal', ['p', '[alike U+0430]', 'ypal']],
    ['Pоссия', ['[alike U+0050]', 'оссия']],
    ['ｊane', ['[alike U+FF4A]', 'ane']],
    ['𝐣ane', ['[alike U+1D423]', 'ane']],
    ['Αdmin', ['[alike U+0391]', 'dmin']],
    ['Gסogle', ['G', '[alike U+05E1]', 'ogle']],
    ['Ꭰdmin Jane', ['[alike U+13A0]', 'dmin Jane']],
  ])('letters of another script within a word are marked in %j', (text, pieces) =>
    expect(marked(text)).toEqual(pieces),
  );
});

describe('identifiers', () => {
  test.each([
    ['аррӏе@example.com', 'Cyrillic'],
    ['ΑΝΝΑ', 'Greek'],
    ['ｊａｎｅ', 'styled'],
    ['ꓙꓮꓠꓰ7', 'Lisu'],
    ['петров@example.com', undefined],
    ['Ayşe', undefined],
    ['pаypal', undefined],
  ])('the script of a whole word that can be read as Latin is named in %j', (text, script) =>
    expect(scriptReadAsLatin(text)).toBe(script),
  );
});

describe('ordinary text', () => {
  test.each([
    'Jane Doe',
    'auth0|5f7c8ec7c33c6c004bbafe82',
    'Zoë Müller-Lüdenscheidt',
    'Анна Каренина',
    'Ayşe Yıldırım',
    'Вера',
    'ΑΝΝΑ',
    'аррӏе',
    '田中Tanakaさん',
    'ＪＡＮＥ',
    'می\u200cخواهم',
    'श्री\u200dमती',
    'ක්\u200dෂ',
    'Αλέξανδρος',
    '王小明',
    'محمد',
    'שרה',
    'नेहा',
    '👩‍👩‍👧 and 🏳️‍🌈',
    '',
  ])('ordinary text is not marked: %j', (text) => expect(marked(text).join('')).toBe(text));
});
