import type { z } from 'zod';
import { type Member, membersOf, type Resource } from '../../model/resource.ts';
import { passwordProfileInfo } from '../../model/resources.ts';
import type { Patch } from '../../model/store.ts';
import { foldedKey } from '../../model/text/folded_key.ts';
import { UNICODE_VERSION } from '../../model/text/folding.ts';
import { wordsOf } from '../../model/text/words.ts';
import type { Dialect } from '../dialect.ts';
import type { SqlValue } from '../transaction_work.ts';

/** A column of a table of records. */
export interface Column {
  readonly name: string;
  readonly isVisible: boolean;
  readonly encode: (record: Patch['members']) => SqlValue;
  /** Absent if the stored value is the member's value. */
  readonly decode?: (stored: SqlValue) => unknown;
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
    // Their values are those of members with the names of the columns, which `password_macs.ts` adds.
    ...authenticatingColumns(resource).map((name): Column => {
      const encode: Column['encode'] = (record) => (record[name] ?? null) as SqlValue;
      return { name, member: undefined, isVisible: false, encode };
    }),
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

/** The members that the MAC of a password hash covers. */
export const COVERED_MEMBERS = ['password_profile_id', 'username', 'password_hash'];

/**
 * The MAC that authenticates a password hash as that of its row, and the revision of the write that set it: an edit by hand counts as
 * no hash (docs/guides/password-guessing.md#hashes). None unless one of the written members is covered.
 */
export function authenticatingColumns(resource: Resource, written = COVERED_MEMBERS): readonly string[] {
  const isCovered = written.some((name) => COVERED_MEMBERS.includes(name));
  return resource === passwordProfileInfo && isCovered ? Object.keys(AUTHENTICATING_COLUMNS) : [];
}

export const AUTHENTICATING_COLUMNS = { password_hash_mac: 'bytes?', credential_version: 'text?' } as const;

/** Whether a record can lack the member: it is optional without a default. */
export function mayBeMissing(schema: z.ZodType): boolean {
  const parsed = schema.safeParse(undefined);
  return parsed.success && parsed.data === undefined;
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
          // The same number on every engine and release. Queries compare the text as well.
          return Bun.hash.crc32(annotation.foldedKeyColumn ? foldedKey(text) : text);
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
function wordColumns(resource: Resource): readonly Column[] {
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
