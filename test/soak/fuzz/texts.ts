import type { Json } from '../../support/json_schema.ts';
import type { Draw } from './draw.ts';

/** Harmless and hostile texts and values. `mark` is part of every longer one. */

/** Texts in several scripts, all valid as a name. */
const HARMLESS = [
  'Jane',
  'Ünï',
  '李小龍',
  'מרים',
  'ليلى',
  '👩‍👩‍👧',
  'é',
  'ﬁ',
  'ǅ',
  'ẞ',
  'O’Neill',
  '"\\/',
  '<b>&amp;</b>',
];

/** A text of at most `max` code points that every free-text member accepts. */
export function harmlessText(draw: Draw, mark: string, max: number): string {
  const room = max - mark.length - 1;
  if (room < 4) return mark.slice(0, max);
  const isLong = draw.happens(0.05);
  const piece = draw.one(HARMLESS);
  const count = isLong ? Math.floor(room / [...piece].length) : 1 + draw.below(3);
  const text = [...piece.repeat(Math.min(count, 400))].slice(0, room).join('');
  return `${mark} ${text}`.trimEnd();
}

const CONTROLS = [
  '\0',
  '\u0001',
  '\t',
  '\n',
  '\r\n',
  '\u001b[31m',
  '\u007f',
  '\u0085',
  '\u2028',
  '\ufeff',
  '\ufffe',
];
const BIDI = ['\u202e', '\u2066', '\u200f', '\u061c'];
const SURROGATES = ['\ud800', '\udfff', '\udc00\ud800', 'a\ud83d'];
const INVISIBLE = ['\u200b', '\u200d', '\u00ad', '\u{e0041}', '\ufe0f', '\u034f', '\u3164'];
const UNASSIGNED = ['\u0378', '\ue000', '\u{10ffff}', '\uffff'];
const INJECTIONS = [
  "' or 1=1 --",
  '"; drop table user_info; --',
  '$(id)',
  '`id`',
  '{{7*7}}',
  '#{7*7}',
  '../../../../etc/passwd',
  '..\\..\\',
  '%00',
  '%2e%2e%2f',
  '<script>alert(1)</script>',
  'file:///etc/passwd',
  'http://169.254.169.254/latest/meta-data',
  'javascript:alert(1)',
  '__proto__',
  'constructor',
  'toString',
  'null',
  'undefined',
  'NaN',
  'true',
  '0',
  '-1',
  '1e309',
  '9007199254740993',
  '*',
  '',
  ' ',
  '😀'.repeat(300),
  'a\u0301'.repeat(200),
  '﷽'.repeat(100),
  'ẞ'.repeat(255),
];
const KINDS = [CONTROLS, BIDI, SURROGATES, INVISIBLE, UNASSIGNED, INJECTIONS];

/** A text as an attacker may send it. */
export function hostileText(draw: Draw, mark: string): string {
  const text = draw.one(draw.one(KINDS));
  const place = draw.below(5);
  if (place === 0) return text;
  if (place === 1) return `${text}${mark}`;
  if (place === 2) return `${mark}${text}`;
  if (place === 3) return `${mark}${text}${mark}`;
  return mark.repeat(draw.one([2, 22, 86, 350]));
}

/** JSON numbers as text: JavaScript values cannot represent all of them. */
const NUMBERS = [
  '0',
  '-0',
  '-1',
  '1.5',
  '1e309',
  '-1e-400',
  '9007199254740993',
  '0.1e1',
  '255',
  '4294967296',
];

/** A value that is rarely valid, as JSON text. */
export function hostileValue(draw: Draw, mark: string): string {
  const kind = draw.below(8);
  if (kind < 3) return JSON.stringify(hostileText(draw, mark));
  if (kind === 3) return draw.one(NUMBERS);
  if (kind === 4) return draw.one(['null', 'true', 'false', '[]', '{}', '[[]]', '{"":{}}']);
  if (kind === 5) return nested(draw.one([3, 60, 64, 65, 2_000]), draw.happens(0.5));
  if (kind === 6)
    return `[${Array.from({ length: 1 + draw.below(120) }, () => JSON.stringify(mark)).join()}]`;
  return `{"__proto__":{"${mark}":1},"constructor":null,"${mark}":"${mark}"}`;
}

function nested(depth: number, isList: boolean): string {
  return isList ? '['.repeat(depth) + ']'.repeat(depth) : `${'{"a":'.repeat(depth)}1${'}'.repeat(depth)}`;
}

/** The JSON text of a body, with the value at a path replaced by raw text. */
export function withText(body: Json, at: readonly string[], text: string): string {
  const hole = `hole-${Math.abs(text.length)}-${at.join('-')}`;
  const bodyWithHole = replaceAt(body, at, hole);
  return JSON.stringify(bodyWithHole).replace(JSON.stringify(hole), () => text);
}

function replaceAt(body: Json, [name, ...below]: readonly string[], hole: string): Json {
  if (name === undefined) return hole;
  const members = typeof body === 'object' && body !== null && !Array.isArray(body) ? body : {};
  const { [name]: member = null, ...others } = members as { readonly [name: string]: Json };
  return { ...others, [name]: replaceAt(member, below, hole) };
}
