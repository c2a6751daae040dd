import { expect, test } from 'bun:test';
import fc from 'fast-check';
import { LIMITS } from '../../src/model/limits.ts';
import { jsonErrorPlace } from '../../src/model/text/json_error.ts';

function isJson(text: string): boolean {
  try {
    JSON.parse(text);
    return true;
  } catch {
    return false;
  }
}

/** The offset of a place in a text. */
function offsetOf(place: string, text: string): number {
  const [line = 0, column = 0] = (place.match(/\d+/g) ?? []).map(Number);
  const before = text.split('\n').slice(0, line - 1);
  const within = [...(text.split('\n')[line - 1] ?? '')].slice(0, column - 1);
  return [...before, within.join('')].join('\n').length;
}

/** Parts of JSON, and of what is nearly JSON. */
const PARTS = [
  ...[
    '{',
    '}',
    '[',
    ']',
    ',',
    ':',
    '"',
    '"a"',
    '"é"',
    '\\',
    '\\n',
    '\\u00e9',
    '\\u00',
    '\\x',
    "'",
    '/*',
    ' ',
  ],
  ...[
    '\n',
    '\t',
    '\r\n',
    '\f',
    '\u00a0',
    '\ufeff',
    '\0',
    '\u2028',
    '\ud83d',
    '🙂',
    '0',
    '01',
    '-',
    '-0',
    '1.',
  ],
  ...['.5', '1.5', '1e', '1E+9', '+1', 'true', 'tru', 'null', 'NaN', 'Infinity', 'undefined', '{"a":', '[1,'],
];

test.each([
  ['{"a": 1,}', 'line 1, column 9'],
  ['{"a": 1', 'line 1, column 8'],
  ['{\n  "a": 1\n  "b": 2\n}', 'line 3, column 3'],
  ['{a: 1}', 'line 1, column 2'],
  ["{'a': 1}", 'line 1, column 2'],
  ['{"a": "one\ntwo"}', 'line 1, column 11'],
  ['{"é🙂": x}', 'line 1, column 8'],
  ['{"a": "\\q"}', 'line 1, column 8'],
  ['{} {}', 'line 1, column 4'],
  ['\ufeff{}', 'line 1, column 1'],
  ['[01]', 'line 1, column 3'],
  ['', 'line 1, column 1'],
])('the place where %j stops being JSON is %s', (text, place) => {
  expect(jsonErrorPlace(text)).toBe(place);
});

test('a text has a place of an error exactly if JSON.parse rejects it', () => {
  const texts = fc.oneof(
    fc.array(fc.constantFrom(...PARTS), { maxLength: 12 }).map((parts) => parts.join('')),
    fc.json(),
    fc.jsonValue().map((value) => JSON.stringify(value, undefined, '\t')),
    fc.string({ unit: 'binary' }).map((text) => `"${text}"`),
  );
  fc.assert(
    fc.property(texts, (text) => {
      expect([text, jsonErrorPlace(text) === undefined]).toEqual([text, isJson(text)]);
    }),
    { numRuns: 5_000 },
  );
});

test('a character that no JSON contains is found where it stands, or at the start of its number, word or escape', () => {
  const cases = fc.tuple(fc.jsonValue(), fc.nat(), fc.constantFrom(undefined, '\t', '\n'));
  fc.assert(
    fc.property(cases, ([value, position, indentation]) => {
      const json = JSON.stringify(value, undefined, indentation);
      const at = position % (json.length + 1);
      const text = `${json.slice(0, at)}\0${json.slice(at)}`;
      const between = text.slice(offsetOf(String(jsonErrorPlace(text)), text), at);
      expect(between).toMatch(/^(?:|-|\.|e[+-]?|[a-z]{1,4}|\\(?:u[\da-f]{0,3})?)$/);
    }),
    { numRuns: 5_000 },
  );
});

test('the place of an error is found at the end of the longest body', () => {
  const length = LIMITS.bodyBytesMax - 2;
  for (const filling of ['x'.repeat(length), '\\n'.repeat(length / 2)]) {
    expect(jsonErrorPlace(`"${filling}\0`)).toBe(`line 1, column ${length + 2}`);
  }
});

test('the place of an error is found in the body with the most levels', () => {
  for (const opening of ['[', '{"":']) {
    const text = opening.repeat(LIMITS.bodyBytesMax / opening.length);
    expect(jsonErrorPlace(text)).toBe(`line 1, column ${text.length + 1}`);
  }
});
