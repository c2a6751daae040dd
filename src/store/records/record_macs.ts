import type { Patch, Write } from '../../directory/store.ts';
import type { Revision } from '../../domain/id.ts';
import { type Key, keyColumns, type Resource } from '../../domain/resource.ts';
import { foldedKey } from '../../domain/text/folded_key.ts';
import type { RowMacs } from '../auth/row_macs.ts';
import { first, type SqlValue, type Work } from '../transaction_work.ts';
import { type AuthenticatedMember, authenticatedMember, comparedColumn } from './derived_columns.ts';
import type { Statements } from './statements.ts';

/** The covered columns of a row, and its MAC. */
export type CoveredRow = Readonly<Record<string, SqlValue | undefined>>;

/** The MACs of the rows of a resource. */
export interface RecordMacs {
  /** Null without keys. */
  of(row: CoveredRow): Uint8Array | null;
  isValid(row: CoveredRow): boolean;
}

/** Throws if no member of the resource is authenticated: a bug of the caller. */
export function openRecordMacs(resource: Resource, macs: RowMacs): RecordMacs {
  const found = authenticatedMember(resource);
  if (!found) throw new Error(`${resource.name} has no authenticated member`);
  const { macColumn, covered } = found;
  const valuesOf = (row: CoveredRow) => covered.map((column) => row[column] ?? null);
  return {
    of: (row) => macs.of(resource.table, ...valuesOf(row)),
    isValid: (row) => macs.isValid(row[macColumn] as Uint8Array | null, resource.table, ...valuesOf(row)),
  };
}

/** Statements that authenticate what they write. */
export function withRecordMacs(
  of: (resource: Resource) => Statements,
  macs: RowMacs,
): (resource: Resource) => Statements {
  const cache = new Map<Resource, Statements>();
  return (resource) => {
    const known = cache.get(resource);
    if (known) return known;
    const member = authenticatedMember(resource);
    const texts = of(resource);
    const statements = member
      ? { ...texts, authenticate: authenticateBy(resource, member, openRecordMacs(resource, macs)) }
      : texts;
    cache.set(resource, statements);
    return statements;
  };
}

/**
 * A write that leaves the value keeps its version, and verifies the stored MAC: a new one would make the value of a forged row valid
 * again. Where the stored one is not valid, the row has none afterwards. A patch with the same value sets it again.
 */
function authenticateBy(
  resource: Resource,
  { name, macColumn, versionColumn, members: covered, select }: AuthenticatedMember,
  macs: RecordMacs,
): (write: Write) => Work<Patch['members']> {
  function authenticated(row: CoveredRow, kept: CoveredRow | undefined, revision: Revision): CoveredRow {
    if ((row[name] ?? null) === null) return { [versionColumn]: null, [macColumn]: null };
    const version = kept ? kept[versionColumn] : revision;
    const mac = kept && !macs.isValid(kept) ? null : macs.of({ ...row, [versionColumn]: version });
    return { [versionColumn]: version, [macColumn]: mac };
  }

  return function* (write) {
    const { key } = write;
    if (write.op === 'patch' && !covered.some((member) => member in write.patch.members)) return {};
    const stored = write.op === 'insert' ? undefined : yield* first<CoveredRow>(select, ...key);
    if (write.op !== 'patch') {
      const row = comparedValues(resource, key, covered, write.record);
      const kept = stored?.[name] === row[name] ? stored : undefined;
      return authenticated(row, kept, write.record.revision);
    }
    const { members, revision } = write.patch;
    const row = { ...stored, ...comparedValues(resource, key, covered, members) };
    return authenticated(row, name in members ? undefined : stored, revision);
  };
}

/** The columns of the key and of these members in a row, as far as a write gives them values. */
function comparedValues(
  resource: Resource,
  key: Key,
  names: readonly string[],
  members: Patch['members'],
): CoveredRow {
  const compared = names.flatMap((name): [string, SqlValue][] => {
    if (!(name in members)) return [];
    const [column, value = null] = [comparedColumn(resource, name), members[name]];
    return [[column, (column === name ? value : foldedKey(value as string)) as SqlValue]];
  });
  return Object.fromEntries([...keyColumns(resource).map((column, at) => [column, key[at]]), ...compared]);
}
