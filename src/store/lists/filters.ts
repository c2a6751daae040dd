import type { ComparableValue, FilterCondition, ParsedFilter } from '../../domain/filter/filter.ts';
import { keyColumns, membersOf, type Resource } from '../../domain/resource.ts';
import type { Dialect } from '../dialect.ts';
import { comparedColumn } from '../records/derived_columns.ts';

/** A part of a WHERE clause with the values of its placeholders, in order. The text never holds a value. */
export interface Clause {
  readonly text: string;
  readonly values: readonly ComparableValue[];
}

/** The column that a condition compares, or the source of its words. Throws if the resource has no such member: a bug. */
export type ColumnOf = (condition: FilterCondition) => string;

const STAMPS = ['created_at', 'updated_at'] as const;

/** The columns of a resource for filters. */
export function columnsOf(resource: Resource, { words }: Pick<Dialect, 'words'>): ColumnOf {
  const names = new Map<string, string>([
    ...keyColumns(resource).map((name): [string, string] => [name, name]),
    ...STAMPS.map((name): [string, string] => [name, name]),
    ...membersOf(resource).map(({ name }): [string, string] => [name, name]),
  ]);
  return (condition) => {
    if (condition.kind === 'words') return words.source(resource.table);
    const name = names.get(condition.member);
    if (name === undefined) throw new Error(`${resource.name} has no member of this name to filter by`);
    return 'compared' in condition && condition.compared === 'folded' ? comparedColumn(resource, name) : name;
  };
}

/** A filter as a clause: groups joined by AND, the conditions of a group by OR. Empty for an empty filter. */
export function clauseOf(filter: ParsedFilter, columns: ColumnOf, dialect: Dialect): Clause {
  const values: ComparableValue[] = [];
  let text = '';
  for (const group of filter) {
    let alternatives = '';
    for (const condition of group) {
      const one = textOf(condition, columns(condition), dialect);
      alternatives = alternatives === '' ? one : `${alternatives} or ${one}`;
      collectValues(condition, values, dialect);
    }
    if (group.length > 1) alternatives = `(${alternatives})`;
    text = text === '' ? alternatives : `${text} and ${alternatives}`;
  }
  return { text, values };
}

const SIGNS = { gt: '>', ge: '>=', lt: '<', le: '<=' } as const;

/** A condition in SQL; `collectValues` adds the values of its placeholders. */
function textOf(condition: FilterCondition, column: string, { id, position, words }: Dialect): string {
  const value = 'compared' in condition && condition.compared === 'identifier' ? id('?') : '?';
  switch (condition.kind) {
    case 'one_of':
      return condition.values.length === 1
        ? `${column} = ${value}`
        : `${column} in (${new Array(parameterCount(condition)).fill(value).join(', ')})`;
    case 'range':
      return `${column} ${SIGNS[condition.operator]} ${value}`;
    case 'pattern':
      if (condition.part === 'infix') return `${position}(${column}, ?) > 0`;
      if (condition.part === 'suffix') {
        return `(length(${column}) >= ? and substr(${column}, length(${column}) + 1 - ?) = ?)`;
      }
      return successor(condition.text) === undefined
        ? `${column} >= ?`
        : `(${column} >= ? and ${column} < ?)`;
    case 'words':
      return words.match(column, condition.words);
    case 'absent':
      return `${column} is null`;
  }
}

function collectValues(
  condition: FilterCondition,
  into: ComparableValue[],
  { words }: Pick<Dialect, 'words'>,
): void {
  switch (condition.kind) {
    case 'one_of':
      into.push(...condition.values);
      for (let count = condition.values.length; count < parameterCount(condition); count += 1) {
        into.push(condition.values[0] as ComparableValue);
      }
      return;
    case 'range':
      into.push(condition.value);
      return;
    case 'pattern':
      into.push(...partsOf(condition));
      return;
    case 'words':
      into.push(...words.values(condition.words));
      return;
    case 'absent':
      return;
  }
}

function partsOf({ part, text }: Extract<FilterCondition, { kind: 'pattern' }>): ComparableValue[] {
  if (part === 'infix') return [text];
  if (part === 'suffix') {
    // Engines count code points.
    const { length } = [...text];
    return [length, length, text];
  }
  const end = successor(text);
  return end === undefined ? [text] : [text, end];
}

/**
 * The number of placeholders for the values of a condition: the next power of two, filled up with a repeated value. Lists
 * of up to a hundred values then need only eight statements.
 */
function parameterCount({ values }: Extract<FilterCondition, { kind: 'one_of' }>): number {
  return 2 ** Math.ceil(Math.log2(values.length));
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
