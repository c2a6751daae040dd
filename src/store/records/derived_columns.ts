import type { Patch } from '../../directory/store.ts';
import { keyColumns, type Member, membersOf, type Resource } from '../../domain/resource.ts';
import { foldedKey } from '../../domain/text/folded_key.ts';
import { UNICODE_VERSION } from '../../domain/text/folding.ts';
import { wordsOf } from '../../domain/text/words.ts';
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
}

/** The Unicode version of the keys of a row. */
export const FOLDED_WITH = 'unicode_version';

/** The words that `match` searches, each once, with a space between two. */
export const WORDS = 'words';

/** Columns derived from members, for comparisons. */
export function derivedColumns(
  resource: Resource,
  { hasHashColumns }: Pick<Dialect, 'hasHashColumns'>,
): readonly Column[] {
  return [
    ...foldingColumns(resource),
    ...wordColumns(resource),
    ...(hasHashColumns ? hashColumns(resource) : []),
    ...authenticatingColumns(resource),
  ];
}

/** The derived columns whose value depends on members only. */
export function computedColumns(
  resource: Resource,
  { hasHashColumns }: Pick<Dialect, 'hasHashColumns'>,
): readonly Column[] {
  const keys = foldingColumns(resource).filter(({ name }) => name !== FOLDED_WITH);
  return [...keys, ...wordColumns(resource), ...(hasHashColumns ? hashColumns(resource) : [])];
}

/** The member of a resource that a MAC authenticates. */
export interface AuthenticatedMember {
  readonly name: string;
  readonly macColumn: string;
  readonly versionColumn: string;
  /** The members that the MAC covers: this one, and those that the record is found by. */
  readonly members: readonly string[];
  /** The columns that the MAC covers: the key of the record, those of the members, and the version. */
  readonly covered: readonly string[];
  /** Parameters: the key. Selects the covered columns and the MAC. */
  readonly select: string;
}

export function authenticatedMember(resource: Resource): AuthenticatedMember | undefined {
  const found = membersOf(resource).find(({ annotation }) => annotation.versionColumn);
  const versionColumn = found?.annotation.versionColumn;
  if (!found || !versionColumn) return undefined;
  const { name } = found;
  const macColumn = `${name}_mac`;
  const keys = keyColumns(resource);
  const members = [...resource.unique.flat(), name];
  const covered = [...keys, ...members.map((member) => comparedColumn(resource, member)), versionColumn];
  const where = keys.map((column) => `${column} = ?`).join(' and ');
  const select = `select ${covered.join(', ')}, ${macColumn} from ${resource.table} where ${where}`;
  return { name, macColumn, versionColumn, members, covered, select };
}

/** Their values are those of members with the names of the columns, which `record_macs.ts` adds. */
function authenticatingColumns(resource: Resource): readonly Column[] {
  const found = authenticatedMember(resource);
  return (found ? [found.macColumn, found.versionColumn] : []).map((name) => ({
    name,
    member: undefined,
    isVisible: false,
    encode: (record) => (record[name] ?? null) as SqlValue,
  }));
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

/** None if the records of the resource are not searched by words. */
export function wordColumns(resource: Resource): readonly Column[] {
  const members = wordMembers(resource);
  if (members.length === 0) return [];
  const encode: Column['encode'] = (record) =>
    wordsOf(members.map((name) => foldedKey(String(record[name] ?? ''))).join(' ')).join(' ');
  return [{ name: WORDS, member: undefined, isVisible: false, encode }];
}

/** The members whose words `match` searches. */
export function wordMembers({ searchAllRealms }: Resource): readonly string[] {
  const searched = Object.values(searchAllRealms?.filterables ?? {});
  return searched.flatMap((each) => (each.compared === 'words' ? each.members : []));
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
