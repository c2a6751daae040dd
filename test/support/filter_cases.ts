import { expect } from 'bun:test';
import { Fault } from '../../src/model/fault.ts';
import { type Filterables, type ParsedFilter, parseFilter } from '../../src/model/filter/filter.ts';

/** Valid and invalid filters of test/http/filter.unit.serial.test.ts. */

const ORDERED = ['eq', 'gt', 'ge', 'lt', 'le'] as const;
/** An attribute for each comparison. */
export const ATTRIBUTES = {
  id: { compared: 'identifier', operators: ['in', ...ORDERED] },
  name: { compared: 'folded', operators: ['eq', 'in', 'like', 'ilike'] },
  email: { compared: 'folded', operators: ['eq', 'like', 'ilike'] },
  given_name: { compared: 'folded', operators: ['eq', 'ilike', 'is_null'] },
  created_at: { compared: 'instant', operators: ORDERED },
  issuer: { compared: 'exact', operators: ['eq', 'in'] },
  subject: { compared: 'exact', operators: ['eq', 'in', 'is_null'] },
  enabled: { compared: 'flag', operators: ['eq'] },
  text: { compared: 'words', operators: ['match'], members: ['name', 'email'] },
} as const satisfies Filterables;

export const parse = (text: string): ParsedFilter => parseFilter(text, ATTRIBUTES);

/** The rule that a filter violates, or undefined. Other errors are thrown. */
export function ruleOf(text: string): string | undefined {
  try {
    parse(text);
    return undefined;
  } catch (error) {
    if (!(error instanceof Fault)) throw error;
    expect(error.code).toBe('malformed_filter');
    expect(error.fieldErrors.map(({ field }) => field)).toEqual(['filter']);
    return error.fieldErrors[0]?.rule;
  }
}

export const name = (...values: string[]) => ({ kind: 'one_of', member: 'name', compared: 'folded', values });
export const exact = (member: string, ...values: string[]) => ({
  kind: 'one_of',
  member,
  compared: 'exact',
  values,
});
export const pattern = (part: string, text: string, member = 'name') => ({
  kind: 'pattern',
  member,
  compared: 'folded',
  part,
  text,
});
export const range = (operator: string, value: number) => ({
  kind: 'range',
  member: 'created_at',
  compared: 'instant',
  operator,
  value,
});
const words = (...values: string[]) => ({
  kind: 'words',
  member: 'text',
  words: values,
});
const instant = (at: string) => [
  [{ kind: 'one_of', member: 'created_at', compared: 'instant', values: [Date.parse(at)] }],
];

const flag = (value: number) => [[{ kind: 'one_of', member: 'enabled', compared: 'flag', values: [value] }]];

export const ID = '0F0A1B2C-3d4e-5f60-7182-93a4b5c6d7e8';
export const AT = '2018-04-16T10:11:59.715Z';
const ISSUER = 'https://login.example.com:8443/a(b)/';

/** Filters with their parsed form. */
export const VALID_FILTERS: readonly [text: string, filter: unknown][] = [
  ['eq(name,Jane Doe)', [[name('jane doe')]]],
  ['eq(name,  Jane Doe  )', [[name('jane doe')]]],
  ['eq(name,"  Jane Doe ")', [[name('jane doe')]]],
  [" ( eq ( name , 'a' ) | eq(name,b ) ) : eq( 'name' , c ) ", [[name('a'), name('b')], [name('c')]]],
  [
    'eq(name,Jane Doe):like(email,*@banks.com)',
    [[name('jane doe')], [pattern('suffix', '@banks.com', 'email')]],
  ],
  ['(eq(name,1)|eq(name,2)):eq(subject,3)', [[name('1'), name('2')], [exact('subject', '3')]]],
  ['(eq(name,1))', [[name('1')]]],
  ['in(name,Jane Doe,"Doe, Jane",\'x\')', [[name('jane doe', 'doe, jane', 'x')]]],
  // NFKC, width, case and composition of contract 8, row 16.
  ['eq(name,ＪＡＮＥ　Ｄｏｅ)', [[name('jane doe')]]],
  ['eq(name,E\u0301lodie)', [[name('élodie')]]],
  ['eq(name,Ja\u200bne)', [[name('jane')]]],
  // subject and issuer stay code point for code point, without wildcard, folding or normalisation (row 28).
  ['eq(subject,E\u0301L*)', [[exact('subject', 'E\u0301L*')]]],
  ['eq(subject,"\\*")', [[exact('subject', '*')]]],
  ['eq(subject,auth0|123)', [[exact('subject', 'auth0|123')]]],
  ['eq(subject,a:eq|b)', [[exact('subject', 'a:eq|b')]]],
  ['eq(subject,a\\b)', [[exact('subject', 'a\\b')]]],
  ['eq(subject,@$_*.{}|+:/-)', [[exact('subject', '@$_*.{}|+:/-')]]],
  ['eq(subject,;<>=?[]^`~#%&!ß🙂)', [[exact('subject', ';<>=?[]^`~#%&!ß🙂')]]],
  [`eq(issuer,'${ISSUER}')`, [[exact('issuer', ISSUER)]]],
  [`eq(subject,'a\\'b"c\\\\d\\e')`, [[exact('subject', `a'b"c\\de`)]]],
  [`eq(subject,"a'b\\"c(,)")`, [[exact('subject', `a'b"c(,)`)]]],
  ['eq(subject,"🙂\\🙂")', [[exact('subject', '🙂🙂')]]],
  ['like(name,Ja*)', [[pattern('prefix', 'ja')]]],
  ['ilike(name,*NE)', [[pattern('suffix', 'ne')]]],
  ['ilike(name,*aN*)', [[pattern('infix', 'an')]]],
  ['like(name,Jane)', [[name('jane')]]],
  ['like(name," Jane  *")', [[pattern('prefix', 'jane ')]]],
  ['like(name,"*\u3000Doe ")', [[pattern('suffix', ' doe')]]],
  ['like(name,"*  a *")', [[pattern('infix', ' a ')]]],
  ["like(name,'\\*')", [[name('*')]]],
  ['like(name,"\\*a\\*b*")', [[pattern('prefix', '*a*b')]]],
  ['like(name,"*a\\*")', [[pattern('suffix', 'a*')]]],
  ['like(name,Müller*)', [[pattern('prefix', 'müller')]]],
  ['like(name,100%_*)', [[pattern('prefix', '100%_')]]],
  ['like(name,a\\*)', [[pattern('prefix', 'a\\')]]],
  ['match(text,Doe)', [[words('doe')]]],
  ['match(text,*)', []],
  ['match(text,"do\\*e x")', [[words('do*e', 'x')]]],
  ['(eq(name,a)|match(text,*)):eq(name,b)', [[name('b')]]],
  [`match(text,'J. d’ÉLAN-o\\'x@y jan j')`, [[words('elan', 'jan', 'j', 'd', 'o', 'x', 'y')]]],
  [`is_null('given_name')`, [[{ kind: 'absent', member: 'given_name' }]]],
  ['is_null( given_name )', [[{ kind: 'absent', member: 'given_name' }]]],
  [`eq(id,${ID})`, [[{ kind: 'one_of', member: 'id', compared: 'identifier', values: [ID.toLowerCase()] }]]],
  [
    `gt(id,${ID})`,
    [
      [
        {
          kind: 'range',
          member: 'id',
          compared: 'identifier',
          operator: 'gt',
          value: ID.toLowerCase(),
        },
      ],
    ],
  ],
  [`gt(created_at,${AT})`, [[range('gt', Date.parse(AT))]]],
  [`ge(created_at,${AT})`, [[range('ge', Date.parse(AT))]]],
  [`lt(created_at,${AT})`, [[range('lt', Date.parse(AT))]]],
  [`le(created_at,${AT})`, [[range('le', Date.parse(AT))]]],
  [`eq(created_at,${AT})`, instant('2018-04-16T10:11:59.715Z')],
  ['eq(created_at,2018-04-16T10:11:59Z)', instant('2018-04-16T10:11:59.000Z')],
  ['eq(created_at,2018-04-16T10:11:59.7Z)', instant('2018-04-16T10:11:59.700Z')],
  ['eq(created_at,2018-04-16T10:11:59.715+02:30)', instant('2018-04-16T07:41:59.715Z')],
  ['eq(created_at,2018-12-31T23:30:00-02:30)', instant('2019-01-01T02:00:00.000Z')],
  ['eq(created_at,2018-04-16)', instant('2018-04-16T00:00:00.000Z')],
  ['eq(created_at,2020-02-29)', instant('2020-02-29T00:00:00.000Z')],
  ['eq(created_at,0050-01-01)', instant('0050-01-01T00:00:00.000Z')],
  ['eq(enabled,false)', flag(0)],
  ["eq(enabled,'true')", flag(1)],
];

const NO_OPERATOR = 'an operator was expected';
const UNKNOWN_OPERATOR = 'the operator must be one of eq, in, like, ilike, match, lt, le, gt, ge, is_null';
const UNKNOWN_ATTRIBUTE =
  'the attribute must be one of id, name, email, given_name, created_at, issuer, subject, enabled, text';
const NO_BRACKET = '"(" was expected';
const NO_ATTRIBUTE = 'an attribute was expected';
const NO_COMMA = '"," was expected';
const NO_VALUE = 'a value was expected';
const UNCLOSED_TERM = '"," or ")" was expected';
const UNCLOSED_GROUP = '"|" or ")" was expected';
const UNCLOSED_QUOTE = 'a quote is opened and not closed';
const EMPTY_QUOTE = 'what is quoted must not be empty';
const NEEDS_QUOTES = 'a value that holds a parenthesis or a quote must be quoted';
const NO_END = '":" or the end was expected';
const CHARACTER = 'no control character and no lone surrogate is allowed';
const WORD_WILDCARD =
  'each word matches every word that it begins, without a wildcard; in quotes, \\* is the character itself';
const WILDCARD =
  'a wildcard may stand at the start and at the end only; in quotes, \\* is the character itself';
const INVISIBLE = 'a value with a visible character was expected, of at most 320 characters';
const INSTANT =
  'an instant was expected: YYYY-MM-DD, or YYYY-MM-DDTHH:MM:SS.mmm with Z or an offset as +HH:MM';
const IDENTIFIER = 'an identifier in UUID form was expected';
const FLAG = 'true or false was expected';
export const SIZE = 'must have at most 8192 bytes';
export const oneValue = (operator: string) =>
  `${operator} takes one value; one that holds a comma must be quoted`;
export const operatorOf = (member: keyof typeof ATTRIBUTES) =>
  `the operator of ${member} must be one of ${ATTRIBUTES[member].operators.join(', ')}`;
const MANY_ALTERNATIVES = 'a group takes at most 4 alternatives';
const MANY_TERMS = 'a filter takes at most 10 terms';
const MANY_VALUES = 'in takes at most 100 values';

export const terms = (count: number, between: string) => Array(count).fill('eq(name,x)').join(between);
export const values = (count: number) => `in(name${',x'.repeat(count)})`;
export const filterOfBytes = (bytes: number) => `eq(subject,${'x'.repeat(bytes - 12)})`;

export const INVALID_FILTERS: readonly [text: string, character: number, rule: string][] = [
  ['', 1, NO_OPERATOR],
  ['   ', 4, NO_OPERATOR],
  [':', 1, NO_OPERATOR],
  ['=', 1, NO_OPERATOR],
  ['()', 2, NO_OPERATOR],
  ['((eq(name,x)))', 2, NO_OPERATOR],
  ['eq(name,x):', 12, NO_OPERATOR],
  ['eq(name,x)::eq(name,y)', 12, NO_OPERATOR],
  ['(eq(name,x)|)', 13, NO_OPERATOR],
  ['EQ(name,x)', 1, UNKNOWN_OPERATOR],
  ['equals(name,x)', 1, UNKNOWN_OPERATOR],
  ['constructor(name,x)', 1, UNKNOWN_OPERATOR],
  ['eq(name,x):or(name,x)', 12, UNKNOWN_OPERATOR],
  ['eq', 3, NO_BRACKET],
  ['eq name', 4, NO_BRACKET],
  ['eq:(name,x)', 3, NO_BRACKET],
  ['eq(', 4, NO_ATTRIBUTE],
  ['eq()', 4, NO_ATTRIBUTE],
  ['eq( ,x)', 5, NO_ATTRIBUTE],
  ['eq(name', 8, NO_COMMA],
  ['eq(name)', 8, NO_COMMA],
  ['in(name)', 8, NO_COMMA],
  ['eq(name,', 9, NO_VALUE],
  ['eq(name,)', 9, NO_VALUE],
  ['eq(name,   )', 12, NO_VALUE],
  ['in(name,a,,b)', 11, NO_VALUE],
  ['in(name,a,)', 11, NO_VALUE],
  ['eq(name,(x))', 9, NO_VALUE],
  ['eq(name,x', 10, UNCLOSED_TERM],
  ['eq(name,"x"', 12, UNCLOSED_TERM],
  ['eq(name,"x"y)', 12, UNCLOSED_TERM],
  ['is_null(given_name', 19, UNCLOSED_TERM],
  ["eq(name,O'Brien)", 10, NEEDS_QUOTES],
  ['eq(name,Jane (Doe))', 14, NEEDS_QUOTES],
  ['eq(name,"x""y")', 12, NEEDS_QUOTES],
  ['eq(name,Doe, Jane)', 12, oneValue('eq')],
  ['lt(created_at,2018-04-16,2019-04-16)', 25, oneValue('lt')],
  ['is_null(given_name,x)', 19, 'is_null takes no value'],
  ["eq(name,'x)", 9, UNCLOSED_QUOTE],
  ["eq(name,'x\\')", 9, UNCLOSED_QUOTE],
  ['eq(name,"x\\', 9, UNCLOSED_QUOTE],
  ["eq(name,'')", 9, EMPTY_QUOTE],
  ["eq('',x)", 4, EMPTY_QUOTE],
  ['eq(name,x)eq(name,y)', 11, NO_END],
  ['eq(name,x)|eq(name,y)', 11, NO_END],
  ['eq(name,x))', 11, NO_END],
  ['(eq(name,x)', 12, UNCLOSED_GROUP],
  ['(eq(name,x):eq(name,y))', 12, UNCLOSED_GROUP],
  ['eq(name,a\u0000b)', 10, CHARACTER],
  ['eq(name,"a\nb")', 11, CHARACTER],
  ['eq(name,a\u007f)', 10, CHARACTER],
  ['eq(name,a\u0085)', 10, CHARACTER],
  ['eq(name,🙂a\ud83d)', 11, CHARACTER],
  ['eq(name,\udc00)', 9, CHARACTER],
  // Counted in code points, whatever they take in UTF-16.
  ['eq(name,🙂🙂):eq(name,', 21, NO_VALUE],
  ['eq(nickname,x)', 4, UNKNOWN_ATTRIBUTE],
  ['eq(Name,x)', 4, UNKNOWN_ATTRIBUTE],
  ['eq(__proto__,x)', 4, UNKNOWN_ATTRIBUTE],
  ['eq(constructor,x)', 4, UNKNOWN_ATTRIBUTE],
  ['eq(name,x):eq("name ",x)', 15, UNKNOWN_ATTRIBUTE],
  ['eq(name,x):gt(name,x)', 12, operatorOf('name')],
  ['like(subject,x*)', 1, operatorOf('subject')],
  ['like(created_at,2018*)', 1, operatorOf('created_at')],
  ['is_null(id)', 1, operatorOf('id')],
  ['eq(text,x)', 1, operatorOf('text')],
  ['match(name,x)', 1, operatorOf('name')],
  ['match(text,x,y)', 13, oneValue('match')],
  ['match(text,"-- .")', 12, 'a word was expected'],
  ['match(text,\u200b)', 12, INVISIBLE],
  [
    `match(text,${Array.from({ length: 17 }, (_, at) => `w${at}`).join(' ')})`,
    12,
    'match takes at most 16 words',
  ],
  ['like(name,a*b)', 11, WILDCARD],
  ['match(text,jane*)', 12, WORD_WILDCARD],
  ["match(text,'* doe')", 12, WORD_WILDCARD],
  ['like(name,**)', 11, INVISIBLE],
  ['like(name,*)', 11, INVISIBLE],
  ['like(name,a**)', 11, WILDCARD],
  ['like(name,***)', 11, WILDCARD],
  ['like(name,"a*\\*")', 11, WILDCARD],
  ['eq(name,\u200b)', 9, INVISIBLE],
  ['like(name,\u00ad*)', 11, INVISIBLE],
  ['like(name,"* *")', 11, INVISIBLE],
  ['in(name,x,\u200b)', 11, INVISIBLE],
  ['eq(id,x)', 7, IDENTIFIER],
  [`gt(id,${ID.slice(1)})`, 7, IDENTIFIER],
  [`in(id,${ID},*)`, 44, IDENTIFIER],
  [`eq(id,"${ID} ")`, 7, IDENTIFIER],
  ...['no', '0', '1', 'False', 'TRUE', 'null', '*', '"true "'].map((value): [string, number, string] => [
    `eq(enabled,${value})`,
    12,
    FLAG,
  ]),
  ['in(enabled,true,false)', 1, operatorOf('enabled')],
  ['is_null(enabled)', 1, operatorOf('enabled')],
  ...[
    '2018',
    '2018-02-30',
    '2019-02-29',
    '2018-13-01',
    '2018-00-01',
    '2018-01-00',
    '+002018-01-01',
    '2018-04-16T10:11Z',
    '2018-04-16T10:11:59',
    '2018-04-16 10:11:59Z',
    '2018-04-16T24:00:00Z',
    '2018-04-16T10:60:00Z',
    '2018-04-16T23:59:60Z',
    '2018-04-16T10:11:59.7151Z',
    '2018-04-16T10:11:59.Z',
    '2018-04-16T10:11:59 02:00',
    '2018-04-16T10:11:59+0200',
    '2018-04-16T10:11:59+24:00',
    '2018-04-16T10:11:59+02:60',
    '２０１８-04-16',
    '1523873519715',
    '*',
  ].map((at): [string, number, string] => [`ge(created_at,${at})`, 15, INSTANT]),
  [`(${terms(5, '|')})`, 46, MANY_ALTERNATIVES],
  [terms(11, ':'), 111, MANY_TERMS],
  [`(${terms(4, '|')}):(${terms(4, '|')}):(${terms(3, '|')})`, 116, MANY_TERMS],
  [values(101), 208, MANY_VALUES],
];
