import type { RowMacs } from '../../log/store/row_macs.ts';
import { type StoredId, type Uuid, uuidText } from '../../model/id.ts';
import { LIMITS } from '../../model/limits.ts';
import type { AuditEntry } from '../../model/log/audit_entry.ts';
import { type HashKind, hashKind, isCheckable, type MadeHash } from '../../model/password_hash.ts';
import { passwordProfileInfo, user } from '../../model/resources.ts';
import type { Dialect } from '../../sql/dialect.ts';
import { haveValues } from '../../sql/tables/records.ts';
import { all, execute, first, type Work } from '../../sql/transaction_work.ts';
import type { Transactions } from '../../sql/transactions.ts';
import { type CoveredRow, openPasswordMacs } from './password_macs.ts';

/** What a password check needs of a password profile info, of a user who is enabled. */
export interface Credential {
  readonly realmId: Uuid;
  readonly profileId: Uuid;
  readonly userId: Uuid;
  /** The password profile info. */
  readonly infoId: Uuid;
  /**
   * Undefined for none, for one that costs more than a check may, and for one that another program changed. Verified when it is read,
   * so that a refusal in the queue takes as long for a name that exists as for one that does not.
   */
  readonly hash: string | undefined;
  /** Made from the text after NFKC; false for an imported hash. */
  readonly isNormalised: boolean;
  /** Another one after each write of the password; a new hash of the same password keeps it. */
  readonly version: string;
}

/** How many passwords of a profile have a kind of hash. */
export interface HashKindCount extends Pick<Credential, 'isNormalised'> {
  readonly kind: HashKind;
  readonly count: number;
}

const { table } = passwordProfileInfo;
const HASH = 'password_hash';
/** Those that the MAC of a hash covers, and what else a check needs. */
export const credentialColumns = (
  realm: string,
): string => `${realm} as realm_id, user_id, id, password_profile_id, username_key, ${HASH}, password_hash_mac,
  password_normalised, credential_version`;
const KEY = ['realm_id', 'user_id', 'id'];
const OF_PROFILE = ['realm_id', 'password_profile_id'];

/** A disabled user has no credential, so that a right password takes as long as an unknown username. */
const OF_ENABLED = `exists (select 1 from ${user.table} u
    where u.realm_id = ${table}.realm_id and u.id = ${table}.user_id and u.enabled = 1)`;

const selectCredential = (columns: readonly string[], dialect: Dialect): string =>
  `select ${credentialColumns(dialect.foundRows.id(table))} from ${table}
  where ${haveValues(passwordProfileInfo, columns, dialect)}`;

/** Every statement about credentials. */
export const credentialTexts = (dialect: Dialect) => ({
  find: `${selectCredential(OF_PROFILE, dialect)} and ${OF_ENABLED} and username_key = ?`,
  get: `${selectCredential(KEY, dialect)} and ${OF_ENABLED}`,
  getOfAnyUser: selectCredential(KEY, dialect),
  rehash: `update ${table} set ${HASH} = ?, password_normalised = 1, password_hash_mac = ?
  where ${haveValues(passwordProfileInfo, KEY, dialect)}`,
  hashKinds: `select ${HASH} as hash, coalesce(password_normalised, 0) as normalised
  from ${table} where ${haveValues(passwordProfileInfo, OF_PROFILE, dialect)}
  order by realm_id, password_profile_id, username_key limit ?`,
});

export interface CredentialRow extends CoveredRow {
  readonly realm_id: StoredId;
  readonly user_id: StoredId;
  readonly id: StoredId;
  readonly password_profile_id: StoredId;
  readonly password_hash: string | null;
  readonly password_normalised: number | null;
  readonly credential_version: string | null;
}

interface HashRow {
  readonly hash: string | null;
  readonly normalised: number;
}

export function openCredentialStore(
  { read, write }: Pick<Transactions, 'read' | 'write'>,
  dialect: Dialect,
  rowMacs: RowMacs,
) {
  const sql = credentialTexts(dialect);
  const macs = openPasswordMacs(rowMacs);

  function decode(row: CredentialRow): Credential {
    const { password_hash: hash } = row;
    return {
      realmId: uuidText(row.realm_id),
      profileId: uuidText(row.password_profile_id),
      userId: uuidText(row.user_id),
      infoId: uuidText(row.id),
      get hash() {
        return hash !== null && isCheckable(hash) && macs.isValid(row) ? hash : undefined;
      },
      isNormalised: row.password_normalised === 1,
      version: row.credential_version ?? '',
    };
  }

  function* credential(text: string, ...key: readonly string[]): Work<Credential | undefined> {
    const row = yield* first<CredentialRow>(text, ...key);
    return row && decode(row);
  }

  return {
    /** The credential of a username in a profile, by its folded key; undefined for none, and for that of a disabled user. */
    find: (realmId: Uuid, profileId: Uuid, usernameKey: string) =>
      read(() => credential(sql.find, realmId, profileId, usernameKey)),
    get: (realmId: Uuid, userId: Uuid, infoId: Uuid) =>
      read(() => credential(sql.get, realmId, userId, infoId)),
    /** Whether a sign-in would accept a password of this link, if its user is enabled. */
    hasPassword: (realmId: Uuid, userId: Uuid, infoId: Uuid) =>
      read(function* () {
        return (yield* credential(sql.getOfAnyUser, realmId, userId, infoId))?.hash !== undefined;
      }),
    /**
     * Replaces the hash of a credential, with an audit entry, if it is still the stored one. Returns whether it was. Nobody sees
     * a change: the record keeps its time, revision and version.
     */
    rehash: ({ realmId, userId, infoId, hash }: Credential, made: MadeHash, auditEntry: AuditEntry) =>
      write([realmId], function* () {
        const row = yield* first<CredentialRow>(sql.get, realmId, userId, infoId);
        const isCurrent = row !== undefined && hash !== undefined && decode(row).hash === hash;
        if (!isCurrent) return { value: false, keep: false };
        const mac = macs.of({ ...row, [HASH]: made.hash });
        yield* execute(sql.rehash, made.hash, mac, realmId, userId, infoId);
        return { value: true, keep: true, auditEntries: [auditEntry] };
      }),
    /** The kinds of hashes that checks accept, among the first `LIMITS.listRecordsInlineMax` usernames of a profile. */
    hashKinds: (realmId: Uuid, profileId: Uuid) =>
      read(function* (): Work<readonly HashKindCount[]> {
        const rows = yield* all<HashRow>(sql.hashKinds, realmId, profileId, LIMITS.listRecordsInlineMax);
        const checkable = rows.filter(({ hash }) => hash !== null && isCheckable(hash));
        const groups = Map.groupBy(
          checkable,
          ({ hash, normalised }) => `${normalised} ${hashKind(hash as string)}`,
        );
        // In one order for all processes, because it decides which unknown name gets which kind.
        return [...groups]
          .sort(([a], [b]) => (a < b ? -1 : 1))
          .map(([group, { length: count }]) => ({
            isNormalised: group.startsWith('1'),
            kind: group.slice(2),
            count,
          }));
      }),
  };
}

export type CredentialStore = ReturnType<typeof openCredentialStore>;
