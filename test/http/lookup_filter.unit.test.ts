import { describe, expect, test } from 'bun:test';
import fc from 'fast-check';
import { allOf, eq } from '../../src/client/filter.ts';
import { Fault } from '../../src/model/fault.ts';
import { equalityValues, parseFilter } from '../../src/model/filter/filter.ts';
import { parseLookupFilter } from '../../src/model/filter/lookup_filter.ts';
import { LIMITS } from '../../src/model/limits.ts';
import type { LookupKey, LookupRules } from '../../src/model/resource.ts';
import { oidcProfileInfo, passwordProfileInfo, RESOURCES } from '../../src/model/resources.ts';

/** The parser of plain lookup filters is a shortcut for the grammar: it returns the same lookup, or undefined. */

const oidc = oidcProfileInfo.reverseLookup as LookupRules;
const password = passwordProfileInfo.reverseLookup as LookupRules;
const ID = '01968d2b-1f6e-7c39-8a55-0242ac120002';

test.each<[text: string, rules: LookupRules, members: readonly string[], values: readonly string[]]>([
  [
    'eq(issuer,https://i.example/):eq(subject,auth0|a:b)',
    oidc,
    ['issuer', 'subject'],
    ['https://i.example/', 'auth0|a:b'],
  ],
  ['eq(subject,s):eq(issuer,i)', oidc, ['issuer', 'subject'], ['i', 's']],
  ["eq(issuer,'i, (j)'):eq(subject,\"it's\")", oidc, ['issuer', 'subject'], ['i, (j)', "it's"]],
  ['eq(subject,Ünï):eq(issuer,*\\)', oidc, ['issuer', 'subject'], ['*\\', 'Ünï']],
  [`eq(id,${ID.toUpperCase()})`, oidc, ['id'], [ID]],
  ['eq(username,ＪＡＮＥ)', password, ['username'], ['jane']],
  [
    `eq(username,jane):eq(password_profile_id,${ID})`,
    password,
    ['username', 'password_profile_id'],
    ['jane', ID],
  ],
])('the plain filter %s is parsed as by the grammar', (text, rules, members, values) => {
  expect(parseLookupFilter(text, rules)).toEqual({ members, values });
  expect(byGrammar(text, rules)).toEqual({ members, values });
});

test.each([
  ['no term', ''],
  ['a space before a value', 'eq(issuer, i):eq(subject,s)'],
  ['a space in a bare value', 'eq(issuer,i j):eq(subject,s)'],
  ['an escape', "eq(issuer,'i\\'j'):eq(subject,s)"],
  ['an unclosed quote', "eq(issuer,'i):eq(subject,s)"],
  ['an empty value in quotes', "eq(issuer,''):eq(subject,s)"],
  ['a lone surrogate', 'eq(issuer,\ud800):eq(subject,s)'],
  ['a surrogate pair, which the grammar accepts', 'eq(issuer,😀):eq(subject,s)'],
  ['a control character', 'eq(issuer,i\u0000):eq(subject,s)'],
  ['a group', '(eq(issuer,i)):eq(subject,s)'],
  ['another operator', `in(id,${ID})`],
  ['one member of two', 'eq(issuer,i)'],
  ['a member twice', 'eq(issuer,i):eq(issuer,j)'],
  ['a member of another resource', 'eq(username,u)'],
  ['a member of every object', 'eq(constructor,u)'],
  ['a third term', 'eq(issuer,i):eq(subject,s):eq(id,x)'],
  ['a malformed ID', 'eq(id,x)'],
  ['more bytes than a filter may have', `eq(issuer,i):eq(subject,${'s'.repeat(LIMITS.filterBytesMax)})`],
])('a filter with %s is left to the grammar', (_, text) =>
  expect(parseLookupFilter(text, oidc)).toBeUndefined(),
);

test('filters written by the client library are plain', () => {
  const { text } = allOf(eq('issuer', 'https://i.example/'), eq('subject', 'auth0|it, (is)'));
  expect(parseLookupFilter(text, oidc)?.values).toEqual(['https://i.example/', 'auth0|it, (is)']);
});

test('every member of a lookup allows eq', () => {
  for (const { reverseLookup: rules } of RESOURCES) {
    for (const member of rules?.by.flat() ?? []) {
      expect(rules?.filterables[member]?.operators as readonly string[]).toContain('eq');
    }
  }
});

/** The lookup that the grammar finds in a text: one value for each member of a set. */
function byGrammar(text: string, { filterables, by }: LookupRules): LookupKey | undefined {
  const filter = parseFilter(text, filterables);
  for (const members of by) {
    const all = equalityValues(filter, members);
    if (all?.every(({ length }) => length === 1)) return { members, values: all.flat() };
  }
  return undefined;
}

describe('random filters', () => {
  const character = fc.oneof(
    fc.constantFrom(...' \'"(),:|\\*%&=+#aé'),
    fc.string({ unit: 'binary', minLength: 1, maxLength: 1 }),
    fc.constantFrom('\ud800', '\udc00', '\u00a0', '\u0000', '\u007f', '\u0085', '\u200b'),
  );
  const value = fc.oneof(
    fc.array(character, { maxLength: 8 }).map((all) => all.join('')),
    fc.constant(ID),
  );
  const quoted = fc.tuple(value, fc.constantFrom('', "'", '"')).map(([text, quote]) => quote + text + quote);
  const term = (rules: LookupRules) =>
    fc.tuple(fc.constantFrom('eq', 'in'), fc.constantFrom(...Object.keys(rules.filterables)), quoted);

  test.each([
    ['OIDC', oidc],
    ['password', password],
  ])('random plain filters of %s profile infos are parsed as by the grammar', (_, rules) => {
    let read = 0;
    const terms = fc.array(term(rules), { minLength: 1, maxLength: 3 });
    fc.assert(
      fc.property(terms, (all) => {
        const text = all
          .map(([operator, name, quotedValue]) => `${operator}(${name},${quotedValue})`)
          .join(':');
        const plain = parseLookupFilter(text, rules);
        if (!plain) return;
        read += 1;
        expect(plain).toEqual(byGrammar(text, rules) as LookupKey);
      }),
      { seed: 4, numRuns: 20_000 },
    );
    expect(read).toBeGreaterThan(200);
  });

  test('random filters that the grammar rejects are not parsed as plain filters', () => {
    fc.assert(
      fc.property(fc.array(term(oidc), { minLength: 2, maxLength: 2 }), (all) => {
        const text = all.map(([, name, quotedValue]) => `eq(${name},${quotedValue})`).join(':');
        try {
          parseFilter(text, oidc.filterables);
        } catch (error) {
          expect(error).toBeInstanceOf(Fault);
          expect(parseLookupFilter(text, oidc)).toBeUndefined();
        }
      }),
      { seed: 5, numRuns: 20_000 },
    );
  });
});
