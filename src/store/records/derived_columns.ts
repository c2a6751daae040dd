import type { Patch } from '../../directory/store.ts';
import type { Revision } from '../../domain/id.ts';
import { type Member, membersOf, type Resource } from '../../domain/resource.ts';
import { foldedKey } from '../../domain/text/folded_key.ts';
import { UNICODE_VERSION } from '../../domain/text/folding.ts';
import type { Dialect } from '../dialect.ts';
import type { SqlValue } from '../transaction_work.ts';
import { textHash } from './text_hash.ts';

/** A column of a table of records. */
export interface Column {
  readonly name: string;
  readonly isVisible: boolean;
  readonly encode: (record: Patch['members']) => SqlValue;
  /** Absent if the stored value is the member's value. */
  readonly decode?: (stored: unknown) => unknown;
  /** The member of the column; undefined for a column derived from a member. */
  readonly member: string | undefined;
  /** Its assignment in a replacement, if that is not `<name> = ?` with the value of `encode`. */
  readonly replacement?: {
    readonly assignment: string;
    readonly values: (record: Patch['members']) => readonly SqlValue[];
  };
}

/** The Unicode version of the keys of a row. */
export const FOLDED_WITH = 'unicode_version';

/** Columns derived from members, for comparisons. */
export function derivedColumns(
  resource: Resource,
  { hasHashColumns }: Pick<Dialect, 'hasHashColumns'>,
): readonly Column[] {
  return [
    ...foldingColumns(resource),
    ...(hasHashColumns ? hashColumns(resource) : []),
    ...macMembers(resource).map((name) => macColumnOf(macColumn(name))),
    ...versionColumns(resource),
  ];
}

/** The derived columns whose value depends on members only. */
export function computedColumns(
  resource: Resource,
  { hasHashColumns }: Pick<Dialect, 'hasHashColumns'>,
): readonly Column[] {
  const keys = foldingColumns(resource).filter(({ name }) => name !== FOLDED_WITH);
  return [...keys, ...(hasHashColumns ? hashColumns(resource) : [])];
}

/** The value is that of a member of the column's name, which `record_macs.ts` adds. */
function macColumnOf(name: string): Column {
  return {
    name,
    member: undefined,
    isVisible: false,
    encode: (record) => (record[name] ?? null) as SqlValue,
  };
}

/** The members that a MAC authenticates. */
export function macMembers(resource: Resource): readonly string[] {
  return membersOf(resource).flatMap(({ name, annotation }) => (annotation.macColumn ? [name] : []));
}

/** The column with the MAC of a member. */
export function macColumn(member: string): string {
  return `${member}_mac`;
}

/** The columns with the revisions that members were written with. A replacement that leaves the value keeps its revision. */
function versionColumns(resource: Resource): readonly Column[] {
  return membersOf(resource).flatMap(({ name: member, annotation: { versionColumn: name } }): Column[] => {
    if (name === undefined) return [];
    const encode: Column['encode'] = (record) =>
      record[member] === undefined ? null : (record.revision as Revision);
    const replacement = {
      assignment: `${name} = case when ${member} is not distinct from ? then ${name} else ? end`,
      values: (record: Patch['members']) => [(record[member] ?? null) as SqlValue, encode(record)],
    };
    return [{ name, member: undefined, isVisible: false, encode, replacement }];
  });
}

function hashColumns(resource: Resource): readonly Column[] {
  return membersOf(resource)
    .filter(({ annotation }) => annotation.hashColumn)
    .map(
      ({ name, annotation }): Column => ({
        name: hashColumn(name),
        member: undefined,
        isVisible: false,
        encode: (record) => {
          const text = record[name] as string;
          return textHash(annotation.foldedKeyColumn ? foldedKey(text) : text);
        },
      }),
    );
}

function foldingColumns(resource: Resource): readonly Column[] {
  const folded = foldedMembers(resource);
  if (folded.length === 0) return [];
  const keys = folded.map(
    ({ name }): Column => ({
      name: comparedColumn(resource, name),
      member: undefined,
      isVisible: false,
      encode: (record) => {
        const text = record[name] ?? null;
        return text === null ? null : foldedKey(text as string);
      },
    }),
  );
  return [...keys, { name: FOLDED_WITH, member: undefined, isVisible: false, encode: () => UNICODE_VERSION }];
}

export function foldedMembers(resource: Resource): readonly Member[] {
  return membersOf(resource).filter(({ annotation }) => annotation.foldedKeyColumn);
}

/** The column with the hash of a member's compared value. */
export function hashColumn(member: string): string {
  return `${member}_crc`;
}

/** The column that a member is compared by: its folded key, if it has one. */
export function comparedColumn(resource: Resource, member: string): string {
  const found = membersOf(resource).find(({ name }) => name === member);
  return found?.annotation.foldedKeyColumn ? `${member}_key` : member;
}
