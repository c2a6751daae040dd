import type { ComparableValue, FilterCondition, ParsedFilter } from '../../../model/filter/filter.ts';
import { keyColumns, membersOf, type Resource } from '../../../model/resource.ts';
import type { Dialect } from '../../../sql/dialect.ts';
import { comparedColumn } from '../../../sql/tables/derived_columns.ts';

/** A part of a WHERE clause with the values of its placeholders, in order. The text never holds a value. */
export interface Clause {
  readonly text: string;
  readonly values: readonly ComparableValue[];
}

/** The column that a condition compares, or the source of its words. Throws if the resource has no such member: a bug. */
export type ColumnOf = (condition: FilterCondition) => string;

/** The columns of a resource for filters. */
export function columnsOf(resource: Resource, { words }: Pick<Dialect, 'words'>): ColumnOf {
  const members = membersOf(resource).map(({ name }) => name);
  const names = new Set([...keyColumns(resource), 'created_at', 'updated_at', ...members]);
  return (condition) => {
    const { kind, member } = condition;
    if (kind === 'words') return words.source(resource.table);
    if (!names.has(member)) throw new Error(`${resource.name} has no member of this name to filter by`);
    return 'compared' in condition && condition.compared === 'folded'
      ? comparedColumn(resource, member)
      : member;
  };
}

/** A filter as a clause: groups joined by AND, the conditions of a group by OR. Empty for an empty filter. */
export function clauseOf(filter: ParsedFilter, columns: ColumnOf, dialect: Dialect): Clause {
  const groups = filter.map((group) => group.map((each) => conditionClause(each, columns(each), dialect)));
  const texts = groups.map((group) => {
    const alternatives = group.map(({ text }) => text).join(' or ');
    return group.length > 1 ? `(${alternatives})` : alternatives;
  });
  return { text: texts.join(' and '), values: groups.flat().flatMap(({ values }) => values) };
}

const SIGNS = { gt: '>', ge: '>=', lt: '<', le: '<=' } as const;

function conditionClause(
  condition: FilterCondition,
  column: string,
  { id, position, words }: Dialect,
): Clause {
  const value = 'compared' in condition && condition.compared === 'identifier' ? id('?') : '?';
  switch (condition.kind) {
    case 'one_of': {
      const values = filledUp(condition.values);
      if (values.length === 1) return { text: `${column} = ${value}`, values };
      return { text: `${column} in (${values.map(() => value).join(', ')})`, values };
    }
    case 'range':
      return { text: `${column} ${SIGNS[condition.operator]} ${value}`, values: [condition.value] };
    case 'pattern':
      return patternClause(condition, column, position);
    case 'words':
      return { text: words.match(column, condition.words), values: words.values(condition.words) };
    case 'absent':
      return { text: `${column} is null`, values: [] };
  }
}

function patternClause(
  { part, text }: Extract<FilterCondition, { kind: 'pattern' }>,
  column: string,
  position: string,
): Clause {
  if (part === 'infix') return { text: `${position}(${column}, ?) > 0`, values: [text] };
  if (part === 'suffix') {
    // Engines count code points.
    const { length } = [...text];
    const isEnd = `substr(${column}, length(${column}) + 1 - ?) = ?`;
    return { text: `(length(${column}) >= ? and ${isEnd})`, values: [length, length, text] };
  }
  const end = successor(text);
  if (end === undefined) return { text: `${column} >= ?`, values: [text] };
  return { text: `(${column} >= ? and ${column} < ?)`, values: [text, end] };
}

/**
 * As many values as the next power of two, filled up with a repeated one. Lists of up to a hundred values then need only eight
 * statements.
 */
function filledUp(values: readonly ComparableValue[]): readonly ComparableValue[] {
  const length = 2 ** Math.ceil(Math.log2(values.length));
  return Array.from({ length }, (_, at) => values[at] ?? (values[0] as ComparableValue));
}

const LAST_CODE_POINT = 0x10ffff;
const FIRST_SURROGATE = 0xd800;
const AFTER_SURROGATES = 0xe000;

/**
 * The first text after all texts with this prefix, in the order of code points, which is that of UTF-8 bytes; `x*` is
 * therefore an index range. Undefined if there is none.
 */
export function successor(text: string): string | undefined {
  const points = [...text];
  for (let last = points.pop(); last !== undefined; last = points.pop()) {
    const point = last.codePointAt(0) as number;
    if (point === LAST_CODE_POINT) continue;
    const next = point + 1 === FIRST_SURROGATE ? AFTER_SURROGATES : point + 1;
    return points.join('') + String.fromCodePoint(next);
  }
  return undefined;
}
