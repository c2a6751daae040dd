import { describe, expect, test } from 'bun:test';
import { readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import fc from 'fast-check';
import { equalityValues, type Filterables, parseFilter } from '../../src/model/filter/filter.ts';
import { OPERATORS } from '../../src/model/filter/grammar.ts';
import { LIMITS } from '../../src/model/limits.ts';
import { oidcProfileInfo, passwordProfileInfo, user } from '../../src/model/resources.ts';
import { foldedKey } from '../../src/model/text/folded_key.ts';
import {
  AT,
  ATTRIBUTES,
  exact,
  filterOfBytes,
  ID,
  INVALID_FILTERS,
  name,
  oneValue,
  operatorOf,
  parse,
  pattern,
  range,
  ruleOf,
  SIZE,
  terms,
  VALID_FILTERS,
  values,
} from '../support/filter_cases.ts';

test.each(VALID_FILTERS)('the filter %s is parsed', (text, filter) => {
  expect<unknown>(parse(text)).toEqual(filter);
  expect(structuredClone(parse(text))).toEqual(parse(text));
});

test.each(INVALID_FILTERS)('the filter %j is rejected at character %i', (text, character, rule) => {
  expect(ruleOf(text)).toBe(`at character ${character}: ${rule}`);
});

describe('bounds of filters', () => {
  test.each([
    ['filterBytesMax', LIMITS.filterBytesMax, filterOfBytes],
    ['filterTermsMax', LIMITS.filterTermsMax, (count: number) => terms(count, ':')],
    ['filterAlternativesMax', LIMITS.filterAlternativesMax, (count: number) => `(${terms(count, '|')})`],
    ['filterValuesMax', LIMITS.filterValuesMax, values],
  ] as const)('a filter at %s is accepted, one above it rejected', (_, bound, text) => {
    expect(ruleOf(text(bound))).toBeUndefined();
    expect(ruleOf(text(bound + 1))).toContain(`at most ${bound} `);
  });

  test('filterBytesMax counts bytes of UTF-8', () => {
    expect(ruleOf(`eq(subject,${'ä'.repeat(4_090)})`)).toBeUndefined();
    expect(ruleOf(`eq(subject,${'ä'.repeat(4_091)})`)).toBe(SIZE);
    expect(ruleOf(`eq(subject,${'字'.repeat(2_728)})`)).toBe(SIZE);
  });
});

describe('equalityValues', () => {
  const filter = parse('eq(issuer,i):eq(subject,s)');
  test.each<[text: string, members: readonly string[], isExact: boolean]>([
    ['eq(subject,s):eq(issuer,i)', ['issuer', 'subject'], true],
    ['eq(issuer,i)', ['issuer', 'subject'], false],
    ['eq(issuer,i):eq(issuer,s)', ['issuer', 'subject'], false],
    ['eq(issuer,i):eq(subject,s):eq(name,n)', ['issuer', 'subject'], false],
    ['eq(issuer,i):in(subject,s,t)', ['issuer', 'subject'], false],
    ['eq(issuer,i):in(subject,s)', ['issuer', 'subject'], true],
    ['eq(issuer,i):is_null(subject)', ['issuer', 'subject'], false],
    ['eq(issuer,i):(eq(subject,s)|eq(subject,t))', ['issuer', 'subject'], false],
    ['eq(issuer,i):(eq(subject,s))', ['issuer', 'subject'], true],
    ['like(name,n*)', ['name'], false],
  ])('equalityValues of %s for %j has one value for each member: %p', (text, members, isExact) => {
    const all = equalityValues(parse(text), members);
    expect(all?.every(({ length }) => length === 1) ?? false).toBe(isExact);
  });

  test('equalityValues returns the values in the order of the members', () => {
    expect(equalityValues(filter, ['subject', 'issuer'])).toEqual([['s'], ['i']]);
    expect(equalityValues(parse('in(name,B,a)'), ['name'])).toEqual([['b', 'a']]);
    expect(equalityValues(filter, ['issuer'])).toBeUndefined();
  });
});

const KNOWN_RULES = new Set([
  ...INVALID_FILTERS.map(([, , rule]) => rule),
  ...OPERATORS.map(oneValue),
  ...Object.keys(ATTRIBUTES).map((member) => operatorOf(member as keyof typeof ATTRIBUTES)),
]);

/** Every rule is one of a fixed list, so it cannot contain a value of the request. */
function expectKnownRule(text: string): void {
  const rule = ruleOf(text);
  if (rule === undefined || rule === SIZE) return;
  const [, character, message = ''] = /^at character (\d+): (.+)$/s.exec(rule) ?? [];
  expect([...KNOWN_RULES]).toContain(message);
  expect(Number(character)).toBeWithin(1, [...text].length + 2);
}

describe('arbitrary texts', () => {
  const fragments = fc.constantFrom(
    ...[...'():|,\'"\\* x', ...OPERATORS, ...Object.keys(ATTRIBUTES), ID, AT, 'ß', '🙂', '\ud800', '\0'],
  );
  const shuffled = fc.array(fragments, { maxLength: 40 }).map((parts) => parts.join(''));
  const almostFilters = fc
    .tuple(fc.constantFrom(...VALID_FILTERS.map(([text]) => text)), fc.nat(60), fc.nat(2), fragments)
    .map(([text, at, cut, put]) => text.slice(0, at) + put + text.slice(at + cut));

  test.each([
    ['of random characters', fc.string({ unit: 'binary', maxLength: 80 })],
    ['of shuffled tokens', shuffled],
    ['that is almost a filter', almostFilters],
  ])('a text %s is parsed, or rejected with a known rule', (_, arbitrary) => {
    fc.assert(fc.property(arbitrary, expectKnownRule), { numRuns: 3_000 });
  });

  const K = 8_000;
  test.each<[what: string, text: string]>([
    ['10,001 characters', filterOfBytes(10_001)],
    ['10,000 OR groups', Array(10_000).fill('(eq(name,x)|eq(name,y))').join(':')],
    ['10,000,000 parentheses', '('.repeat(10_000_000)],
    ['as many parentheses as fit', '('.repeat(K)],
    ['closing parentheses', `eq(name,x${')'.repeat(K)}`],
    ['nested terms', 'eq('.repeat(K / 4)],
    ['spaces', ' '.repeat(K)],
    ['a value of spaces', `eq(name,x${' '.repeat(K)})`],
    ['a long word', 'e'.repeat(K)],
    ['backslashes', `eq(name,'${'\\'.repeat(K)}')`],
    ['escaped wildcards', `like(name,'${'\\*'.repeat(K / 2)}*')`],
    ['wildcards', `like(name,${'*'.repeat(K)})`],
    ['quotes', `eq(name,${'"'.repeat(K)})`],
    ['commas', `in(name${','.repeat(K)})`],
    ['letters that fold to eighteen', `eq(name,${'\ufdfa'.repeat(K / 3)})`],
    ['combining marks in the wrong order', `eq(name,a${'\u0301\u0323'.repeat(K / 4)})`],
    ['digits of an instant', `ge(created_at,2018-04-16T10:11:59.${'1'.repeat(K)}Z)`],
  ])('a filter of %s is parsed or rejected within 100 ms', (_, text) => {
    const times = Array.from({ length: 5 }, () => {
      const start = performance.now();
      expectKnownRule(text);
      return performance.now() - start;
    });
    expect(Math.min(...times)).toBeLessThan(100);
  });
});

test.each([
  `x' or '1'='1`,
  `'; drop table user_info; --`,
  `") union select * from client --`,
  `%' escape '\\`,
  `x\\'; delete from realm where ''='`,
  '?1 :name @name $1',
])('SQL in a filter is an ordinary value: %s', (sql) => {
  const quoted = `"${sql.replace(/["\\]/g, '\\$&')}"`;
  expect<unknown>(parse(`eq(subject,${quoted})`)).toEqual([[exact('subject', sql)]]);
  const [[condition] = []] = parse(`like(name,${quoted.slice(0, -1).replaceAll('*', '\\*')}*")`);
  expect<unknown>(condition).toEqual(pattern('prefix', foldedKey(sql)));
});

// Filters that are printed and parsed again.

const letters = fc.oneof(
  fc.string({ unit: 'binary', minLength: 1, maxLength: 12 }).filter((text) => !/[\p{Cc}\p{Cs}]/u.test(text)),
  fc.array(fc.constantFrom(...'*\\\'"(),:| aÉσ'), { minLength: 1, maxLength: 8 }).map((all) => all.join('')),
);
const visible = letters.filter((text) => foldedKey(text) !== '');
/** Unquoted if possible, quoted, or quoted with every possible character escaped. */
const spelling = fc.constantFrom('bare', "'", '"', "\\'", '\\"');

/** A value as text. In a pattern a literal `*` is escaped. */
function spell(text: string, how: string, isPattern: boolean): string {
  const needsQuotes = /[()'",]|^ | $/.test(text) || (isPattern && text.includes('*'));
  if (how === 'bare' && !needsQuotes) return text;
  const quote = how.at(-1) === '"' ? '"' : "'";
  const special = how.startsWith('\\') ? /[^*]/gsu : quote === '"' ? /["\\]/g : /['\\]/g;
  const escaped = text.replace(special, '\\$&');
  return quote + (isPattern ? escaped.replaceAll('*', '\\*') : escaped) + quote;
}

/** A term as text, and its condition, made without the parser. */
type Pair = readonly [text: string, condition: unknown];

const oneOf: fc.Arbitrary<Pair> = fc
  .tuple(
    fc.constantFrom('name', 'subject'),
    fc.array(fc.tuple(visible, spelling), { minLength: 1, maxLength: 4 }),
  )
  .map(([member, all]) => {
    const spelled = all.map(([text, how]) => spell(text, how, false)).join(',');
    const plain = all.map(([text]) => text);
    const condition = member === 'name' ? name(...plain.map(foldedKey)) : exact(member, ...plain);
    return [`${all.length === 1 ? 'eq' : 'in'}(${member},${spelled})`, condition];
  });

const PARTS: Readonly<Record<string, readonly [before: string, after: string]>> = {
  prefix: ['', '*'],
  suffix: ['*', ''],
  infix: ['*', '*'],
};
const part = fc.constantFrom(...Object.keys(PARTS));
const like: fc.Arbitrary<Pair> = fc.tuple(part, visible, spelling).map(([where, fixed, how]) => {
  const [before, after] = PARTS[where] ?? ['', ''];
  const spelled = spell(fixed, how, true);
  const inner = /^['"]/.test(spelled)
    ? spelled[0] + before + spelled.slice(1, -1) + after + spelled[0]
    : before + spelled + after;
  // A blank at an open end stays, as next to another character.
  const [start, end] = [before && '|', after && '|'];
  const folded = foldedKey(start + fixed + end);
  return [`ilike(name,${inner})`, pattern(where, folded.slice(start.length, folded.length - end.length))];
});

const moment = fc.integer({ min: Date.parse('0000-01-01'), max: Date.parse('9999-12-31') });
const between: fc.Arbitrary<Pair> = fc
  .tuple(fc.constantFrom('gt', 'ge', 'lt', 'le'), moment)
  .map(([operator, value]) => {
    const spelled = new Date(value).toISOString();
    return [`${operator}(created_at,${spelled})`, range(operator, value)];
  });

test('a filter printed in any spelling is parsed to the same conditions', () => {
  const group = fc.array(fc.oneof(oneOf, like, between), { minLength: 1, maxLength: 3 });
  const filter = fc.array(group, { minLength: 1, maxLength: 3 });
  const property = fc.property(filter, fc.boolean(), (groups, isBare) => {
    const printed = groups.map((pairs) => {
      const joined = pairs.map(([text]) => text).join('|');
      return pairs.length === 1 && isBare ? joined : `(${joined})`;
    });
    const conditions = groups.map((pairs) => pairs.map(([, condition]) => condition));
    expect<unknown>(parse(printed.join(':'))).toEqual(conditions);
  });
  fc.assert(property, { numRuns: 2_000 });
});

describe('docs/filters.md', () => {
  const page = readFileSync(fileURLToPath(new URL('../../docs/filters.md', import.meta.url)), 'utf8');
  const rows = page
    .split('\n')
    .filter((line) => line.startsWith('| '))
    .map((line) => line.slice(1, -1).split(/(?<!\\)\|/));
  const marked = (cell = '') =>
    [...cell.matchAll(/`([^`]+)`/g)].map(([, code = '']) => code.replaceAll('\\|', '|'));
  const HOW = {
    folded: 'folded',
    exact: 'exactly',
    instant: 'as instants',
    identifier: 'as identifiers',
    flag: 'as true or false',
    words: 'by words',
  } as const;
  const described: readonly [string, Filterables | undefined][] = [
    [user.collection, user.filterables],
    [oidcProfileInfo.collection, oidcProfileInfo.reverseLookup?.filterables],
    [passwordProfileInfo.collection, passwordProfileInfo.reverseLookup?.filterables],
  ];

  test('docs/filters.md lists the members and operators of each list', () => {
    let path = '';
    const documented = rows
      .filter(([, , how = '']) => Object.values<string>(HOW).includes(how.trim()))
      .flatMap(([where, members, how = '', operators]) => {
        path = marked(where)[0] ?? path;
        return marked(members).map((member) => [path, member, how.trim(), ...marked(operators)].join(' '));
      });
    const known = described.flatMap(([collection, filterables = {}]) =>
      Object.entries(filterables).map(([member, { compared, operators }]) =>
        [collection, member, HOW[compared], ...operators].join(' '),
      ),
    );
    expect(documented.sort()).toEqual(known.sort());
  });

  test('the examples in docs/filters.md are valid, and equal their encoded forms', () => {
    const all: Filterables = Object.assign({}, ...described.map(([, filterables]) => filterables));
    const examples = rows.filter(([, encoded]) => marked(encoded)[0]?.startsWith('filter='));
    expect(examples.length).toBeGreaterThan(5);
    for (const [plain, encoded] of examples) {
      const [filter = ''] = marked(plain);
      const url = new URL(`http://localhost/?${marked(encoded)[0]}`);
      expect(url.searchParams.get('filter')).toBe(filter);
      expect(parseFilter(filter, all)).not.toBeEmpty();
    }
    for (const [, block = ''] of page.matchAll(/```\n([^`]+)\n```/g)) {
      for (const filter of block.split('\n')) expect(parseFilter(filter, all)).not.toBeEmpty();
    }
  });
});
