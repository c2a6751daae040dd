import { isForgedMac, type RowMacs, type SignedTable } from '../../log/store/row_macs.ts';
import { type Revision, type StoredId, uuidText } from '../../model/id.ts';
import type { Key, Resource } from '../../model/resource.ts';
import { passwordProfileInfo } from '../../model/resources.ts';
import type { Patch, Write } from '../../model/store.ts';
import { foldedKey } from '../../model/text/folded_key.ts';
import type { Statements } from '../../records/store/statements.ts';
import type { Dialect } from '../../sql/dialect.ts';
import { authenticatingColumns, COVERED_MEMBERS, comparedColumn } from '../../sql/tables/derived_columns.ts';
import { haveValues } from '../../sql/tables/records.ts';
import { first, type SqlValue, type Work } from '../../sql/transaction_work.ts';

const { table } = passwordProfileInfo;
const KEY = ['realm_id', 'user_id', 'id'];
/** What the MAC covers: a hash counts for this row, username and version alone. */
export const SIGNED_PASSWORD: SignedTable = {
  name: table,
  signed: [
    ...KEY,
    ...COVERED_MEMBERS.map((name) => comparedColumn(passwordProfileInfo, name)),
    'credential_version',
  ],
};
/** Parameters: the key. */
export const selectAuthenticated = (dialect: Dialect): string => {
  const [, ...columns] = SIGNED_PASSWORD.signed;
  const selected = [`${dialect.foundRows.id(table)} as realm_id`, ...columns, 'password_hash_mac'].join(', ');
  return `select ${selected} from ${table} where ${haveValues(passwordProfileInfo, KEY, dialect)}`;
};

/** The covered columns of a row, and its MAC. */
export type CoveredRow = Readonly<Record<string, SqlValue | undefined>>;

/** The MACs of password hashes; null without keys. */
export function openPasswordMacs(macs: RowMacs) {
  const of = (row: CoveredRow) => macs.of(SIGNED_PASSWORD, { ...row, ...idsAsText(row) });
  return {
    of,
    isValid: (row: CoveredRow) => !isForgedMac((row.password_hash_mac ?? null) as Uint8Array | null, of(row)),
  };
}

/** A MAC covers IDs, and not how an engine stores them. */
function idsAsText(row: CoveredRow): CoveredRow {
  const idOf = (column: string) => row[column] && uuidText(row[column] as StoredId);
  return Object.fromEntries([...KEY, 'password_profile_id'].map((column) => [column, idOf(column)]));
}

/** Statements that authenticate the password hashes that they write. */
export function withPasswordMacs(
  of: (resource: Resource) => Statements,
  dialect: Dialect,
  macs: RowMacs,
): (resource: Resource) => Statements {
  const authenticate = authenticateBy(openPasswordMacs(macs), selectAuthenticated(dialect));
  const authenticated = { ...of(passwordProfileInfo), authenticate };
  return (resource) => (resource === passwordProfileInfo ? authenticated : of(resource));
}

/**
 * A write that leaves the hash keeps its version; a patch with the same hash gives it another one. Both verify the stored MAC: a new one
 * would make the hash of a forged row valid again. Where the stored one is not valid, the row has none afterwards.
 */
function authenticateBy(macs: ReturnType<typeof openPasswordMacs>, select: string) {
  function authenticated(row: CoveredRow, stored: CoveredRow | undefined, newVersion?: Revision): CoveredRow {
    if ((row.password_hash ?? null) === null) return { credential_version: null, password_hash_mac: null };
    const kept = stored?.password_hash === row.password_hash ? stored : undefined;
    const version = { credential_version: newVersion ?? kept?.credential_version };
    return {
      ...version,
      password_hash_mac: kept && !macs.isValid(kept) ? null : macs.of({ ...row, ...version }),
    };
  }

  return function* (write: Write): Work<Patch['members']> {
    const { key } = write;
    if (write.op === 'patch') {
      const { members, revision } = write.patch;
      if (authenticatingColumns(passwordProfileInfo, Object.keys(members)).length === 0) return {};
      const stored = yield* first<CoveredRow>(select, ...key);
      const row = { ...stored, ...coveredValues(key, members) };
      return authenticated(row, stored, 'password_hash' in members ? revision : undefined);
    }
    const stored = write.op === 'insert' ? undefined : yield* first<CoveredRow>(select, ...key);
    const row = coveredValues(key, write.record);
    const isSame = stored?.password_hash === row.password_hash;
    return authenticated(row, stored, isSame ? undefined : write.record.revision);
  };
}

/** The covered columns of a row, as far as a write gives them values. */
function coveredValues(key: Key, { username, ...members }: Patch['members']): CoveredRow {
  return {
    ...(members as CoveredRow),
    ...Object.fromEntries(KEY.map((column, at) => [column, key[at]])),
    ...(username === undefined ? {} : { username_key: foldedKey(username as string) }),
  };
}
