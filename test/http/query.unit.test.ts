import { describe, expect, test } from 'bun:test';
import fc from 'fast-check';
import { readPageCursor, writePageCursor } from '../../src/http/pipeline/paging.ts';
import {
  type FurtherParameters,
  type ListQuery,
  onlyFilter,
  readQuery,
} from '../../src/http/pipeline/query.ts';
import { Fault } from '../../src/model/fault.ts';
import { LIMITS } from '../../src/model/limits.ts';
import type { Sort } from '../../src/model/store.ts';
import { systemClock } from '../../src/ops/process/clock.ts';

const URL_START = 'http://service.example/v2/authentication-realms';
const FILTER_AND_SORT: FurtherParameters = ['filter', 'sort'];
const NEWEST: Sort = { by: 'created_at', isDescending: true };
const DEFAULTS = {
  limit: undefined,
  offset: undefined,
  after: undefined,
  filter: undefined,
  sort: NEWEST,
  carried: '',
};

const read = (query: string, rules = FILTER_AND_SORT): ListQuery => readQuery(`${URL_START}${query}`, rules);

/** The errors about a query; empty if it is valid. */
function fieldErrorsOf(query: string): readonly string[] {
  try {
    read(query);
    return [];
  } catch (error) {
    if (!(error instanceof Fault)) throw error;
    expect(error.code).toBe('invalid_query');
    return error.fieldErrors.map(({ field, rule }) => `${field}: ${rule}`);
  }
}

describe('readQuery accepts', () => {
  const VALID: readonly (readonly [string, Partial<ListQuery>])[] = [
    ['', {}],
    ['?', {}],
    ['?&&', {}],
    ['?page[limit]=5', { limit: 5 }],
    ['?page%5Blimit%5D=5&page%5Boffset%5D=10', { limit: 5, offset: 10 }],
    ['?page%5blimit%5d=100', { limit: 100 }],
    ['?%70age[limit]=1', { limit: 1 }],
    ['?page[offset]=10000', { offset: 10_000 }],
    ['?page[limit]=%35', { limit: 5 }],
    ['?page[after]=', { after: 'start' }],
    ['?page[after]', { after: 'start' }],
    ['?sort=name&page[limit]=5', { limit: 5 }],
    ['?Page[limit]=abc&limit=0&page[size]=0&include=all&=x', {}],
    ['?x=%zz&page[limit]=5', { limit: 5 }],
    ['?page[limit]=5#page[limit]=6', { limit: 5 }],
  ];
  for (const [query, expected] of VALID) {
    test(`readQuery accepts the query ${query || '(empty)'}`, () => {
      expect(read(query, [])).toEqual({ ...DEFAULTS, ...expected });
    });
  }

  const SORTS: readonly (readonly [string, Sort])[] = [
    ['created_at', { by: 'created_at', isDescending: false }],
    ['-created_at', NEWEST],
    ['updated_at', { by: 'updated_at', isDescending: false }],
    ['-updated_at', { by: 'updated_at', isDescending: true }],
    ['id', { by: 'id', isDescending: false }],
    ['-id', { by: 'id', isDescending: true }],
  ];
  for (const [text, sort] of SORTS) {
    test(`readQuery accepts sort=${text}`, () => {
      expect(read(`?sort=${text}`)).toEqual({ ...DEFAULTS, sort, carried: `&sort=${text}` });
    });
  }

  test('readQuery decodes a plus as a space, and an encoded plus as a plus', () => {
    expect(read('?filter=eq(name,Jane+Doe)').filter).toBe('eq(name,Jane Doe)');
    expect(read('?filter=eq(name,Jane%2BDoe)').filter).toBe('eq(name,Jane+Doe)');
    expect(read('?filter=a=b').filter).toBe('a=b');
  });

  test('links repeat a filter unchanged, or encoded if a URL requires it', () => {
    const rows = [
      ['eq(name,Jane+Doe):eq(email,a%2Bb@c.d)', '&filter=eq(name,Jane+Doe):eq(email,a%2Bb@c.d)'],
      ['(eq(a,1)|eq(a,2))', '&filter=(eq(a%2C1)%7Ceq(a%2C2))'],
      ["eq(a,'x')", '&filter=eq(a%2C%27x%27)'],
      ['eq(a,"x\\y")', '&filter=eq(a%2C%22x%5Cy%22)'],
      ['eq(a,{})', '&filter=eq(a%2C%7B%7D)'],
      ['eq(a,Ü😀)', '&filter=eq(a%2C%C3%9C%F0%9F%98%80)'],
    ] as const;
    for (const [raw, carried] of rows) {
      const { filter, carried: given } = read(`?filter=${raw}&sort=-id`);
      expect(given).toBe(`${carried}&sort=-id`);
      // Parsing it again gives the same result.
      expect(read(`?${given.slice(1)}`)).toMatchObject({ filter: filter as string, carried: given });
    }
  });
});

describe('readQuery rejects', () => {
  const LIMIT = 'page[limit]: must be a whole number from 1 to 100';
  const OFFSET = 'page[offset]: must be a whole number from 0 to 10000';
  const SORT = 'sort: must be one of created_at, -created_at, updated_at, -updated_at, id, -id';
  const AFTER = 'page[after]: must be empty, or come from links.next of a list in the same order';
  const NO_CURSORS = expect.stringMatching(/^page\[after\]: cannot be combined with a sort by updated_at/);
  const ENCODED = 'must be UTF-8, percent-encoded';
  const INVALID: readonly (readonly [string, ...string[]])[] = [
    ...['0', '101', '-1', '', '1.0', '1e1', '+5', ' 5', '0x5', 'all', '05', '999999999999999999', '٥'].map(
      (value) => [`page[limit]=${value}`, LIMIT] as const,
    ),
    ...['10001', '-1', '', 'x', '0.5'].map((value) => [`page[offset]=${value}`, OFFSET] as const),
    ...['name', '', '+id', '-', 'ID', '-created_at,id'].map((value) => [`sort=${value}`, SORT] as const),
    ['page[limit]=5&page%5Blimit%5D=5', 'page[limit]: must be given at most once'],
    ['filter=a&filter=a', 'filter: must be given at most once'],
    ['filter=%zz', `filter: ${ENCODED}`],
    ['filter=%', `filter: ${ENCODED}`],
    ['filter=%ff', `filter: ${ENCODED}`],
    ['filter=%ED%A0%80', `filter: ${ENCODED}`],
    ['%zz=1', `query: a name in it ${ENCODED}`],
    ['page[after]=&page[offset]=0', 'page[after]: cannot be combined with page[offset]'],
    ['page[after]=abc', AFTER],
    ...['', 'abc'].flatMap((cursor) =>
      ['updated_at', '-updated_at'].map(
        (sort) => [`page[after]=${cursor}&sort=${sort}`, NO_CURSORS] as const,
      ),
    ),
    ['page[limit]=0&page[offset]=-1&sort=x', LIMIT, OFFSET, SORT],
  ];
  for (const [query, ...rules] of INVALID) {
    test(`readQuery rejects ${query} with the parameter and the rule`, () =>
      expect(fieldErrorsOf(`?${query}`)).toEqual(rules));
  }

  test('errors about a query never contain its values', () => {
    const names = fc.constantFrom('page[limit]', 'page[offset]', 'page[after]', 'sort', 'filter', 'page%5');
    const query = fc.array(fc.tuple(names, fc.string({ unit: 'grapheme', minLength: 8 })), { maxLength: 8 });
    fc.assert(
      fc.property(query, (pairs) => {
        const errors = fieldErrorsOf(`?${pairs.map(([name, value]) => `${name}=${value}`).join('&')}`).join();
        for (const [, value] of pairs) expect(errors).not.toContain(value);
      }),
    );
  });
});

describe('page cursors', () => {
  const id = systemClock.mintId();
  const sorts = (['created_at', 'id'] as const).flatMap((by) => [
    { by, isDescending: true },
    { by, isDescending: false },
  ]);

  const nameOf = ({ by, isDescending }: Sort) => `${by} ${isDescending ? 'descending' : 'ascending'}`;

  for (const sort of sorts) {
    const at = sort.by === 'id' ? undefined : 1_750_000_000_123;
    const cursor = writePageCursor({ at, id }, sort);

    test(`a cursor for ${nameOf(sort)} is read as it was written`, () => {
      expect(cursor).toMatch(/^[\w-]+$/);
      expect(readPageCursor(cursor, sort)).toEqual({ at, id });
      expect(read(`?sort=${sort.isDescending ? '-' : ''}${sort.by}&page[after]=${cursor}`).after).toEqual({
        at,
        id,
      });
    });

    test(`a cursor for ${nameOf(sort)} is invalid in another order`, () => {
      for (const other of sorts) if (other !== sort) expect(readPageCursor(cursor, other)).toBeUndefined();
    });

    test(`a cursor for ${nameOf(sort)} that is truncated or extended is invalid`, () => {
      const indexes = Array.from(cursor, (_, place) => place);
      const others = [
        ...indexes.map((end) => cursor.slice(0, end)),
        ...['A', '=', ' '].map((end) => cursor + end),
      ];
      for (const other of others) expect(readPageCursor(other, sort)).toBeUndefined();
    });

    test(`a cursor for ${nameOf(sort)} with a changed character is invalid or another position`, () => {
      const changed = (to: string) =>
        Array.from(
          cursor,
          (was, place) => `${cursor.slice(0, place)}${was === to ? '_' : to}${cursor.slice(place + 1)}`,
        );
      for (const other of changed('-')) expect(readPageCursor(other, sort)).not.toEqual({ at, id });
      for (const invalid of ['+', '/', '=', '\u0100', '.'].flatMap(changed)) {
        expect(readPageCursor(invalid, sort)).toBeUndefined();
      }
    });
  }

  test('cursors hold timestamps from the year 1 to 9999, and reject others', () => {
    for (const at of [Date.UTC(1, 0), -1, 0, Date.UTC(9999, 11)]) {
      expect(readPageCursor(writePageCursor({ at, id }, NEWEST), NEWEST)).toEqual({ at, id });
    }
    for (const at of [2 ** 53, 0.5, Number.NaN]) {
      expect(readPageCursor(writePageCursor({ at, id }, NEWEST), NEWEST)).toBeUndefined();
    }
  });
});

test('a query of the maximum request line is read within 200 ms', () => {
  const long = '&page[after]=%20+x'.repeat(LIMITS.headerBytesMax / 18);
  // The least of several times: a busy machine interrupts some.
  const times = Array.from({ length: 5 }, () => {
    const start = performance.now();
    fieldErrorsOf(`?${long}`);
    fieldErrorsOf(`?filter=${'%41'.repeat(LIMITS.headerBytesMax / 3)}`);
    fieldErrorsOf(`?${'&'.repeat(LIMITS.headerBytesMax)}`);
    return performance.now() - start;
  });
  expect(Math.min(...times)).toBeLessThan(200);
});

describe('onlyFilter', () => {
  test.each([
    ['?filter=a=b', 'a=b'],
    ['?filter=a+b%2Bc%C3%A9', 'a b+cé'],
    ['?filter=', ''],
    ['?filter=%ff', undefined],
    ['?filter=a&', undefined],
    ['?filter=a#b', undefined],
    ['?%66ilter=a', undefined],
    ['?page[limit]=1', undefined],
    ['?', undefined],
    ['', undefined],
  ])('onlyFilter of %s is %p', (query, filter) => expect(onlyFilter(`${URL_START}${query}`)).toBe(filter));

  test('onlyFilter agrees with readQuery for random queries', () => {
    const fragments = fc.constantFrom(
      'filter',
      '=',
      '&',
      '#',
      '?',
      '%',
      '+',
      '%26',
      '%ff',
      'a',
      'page[limit]=1',
      'é',
    );
    fc.assert(
      fc.property(fc.array(fragments, { maxLength: 8 }), (all) => {
        const query = `?filter=${all.join('')}`;
        const filter = onlyFilter(`${URL_START}${query}`);
        if (filter === undefined) return;
        const { carried, ...rest } = read(query);
        const { carried: _, ...defaults } = DEFAULTS;
        expect(rest).toEqual({ ...defaults, filter });
        expect(carried).toStartWith('&filter=');
      }),
    );
  });
});
