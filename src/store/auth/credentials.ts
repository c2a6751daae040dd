import type { AuditEntry } from '../../domain/audit_entry.ts';
import type { Uuid } from '../../domain/id.ts';
import { LIMITS } from '../../domain/limits.ts';
import { decoyHash, type HashKind, isCheckable, type MadeHash } from '../../domain/password_hash.ts';
import { passwordProfileInfo } from '../../domain/resources.ts';
import type { Dialect } from '../dialect.ts';
import { type CoveredRow, openPasswordMacs } from '../records/password_macs.ts';
import { all, execute, first, type Long, type Work } from '../transaction_work.ts';
import type { Transactions } from '../transactions.ts';
import type { RowMacs } from './row_macs.ts';

/** What a password check needs of a password profile info. */
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
export const CREDENTIAL_COLUMNS = `realm_id, user_id, id, password_profile_id, username_key, ${HASH}, password_hash_mac,
  password_normalised, credential_version`;
const FIND = `select ${CREDENTIAL_COLUMNS} from ${table} where realm_id = ? and password_profile_id = ? and username_key = ?`;
const GET = `select ${CREDENTIAL_COLUMNS} from ${table} where realm_id = ? and user_id = ? and id = ?`;
const REHASH = `update ${table} set ${HASH} = ?, password_normalised = 1, password_hash_mac = ?
  where realm_id = ? and user_id = ? and id = ?`;

/** In one order for all processes, because it decides which unknown name gets which kind. */
const hashKinds = ({ position }: Pick<Dialect, 'position'>): string =>
  `select kind, normalised, count(*) as count from (
     select case when substr(${HASH}, 1, 2) = '$2' then substr(${HASH}, 1, 7)
         else substr(${HASH}, 1, ${position}(${HASH}, ',p=') + 4) end as kind,
       coalesce(password_normalised, 0) as normalised
     from ${table} where realm_id = ? and password_profile_id = ?
     order by realm_id, password_profile_id, username_key limit ?
   ) as sample where kind is not null group by kind, normalised order by kind, normalised`;

export interface CredentialRow extends CoveredRow {
  readonly realm_id: Uuid;
  readonly user_id: Uuid;
  readonly id: Uuid;
  readonly password_profile_id: Uuid;
  readonly password_hash: string | null;
  readonly password_normalised: number | null;
  readonly credential_version: string | null;
}

interface HashKindRow {
  readonly kind: HashKind;
  readonly normalised: number;
  readonly count: Long;
}

export function openCredentialStore(
  { read, write }: Pick<Transactions, 'read' | 'write'>,
  dialect: Pick<Dialect, 'position'>,
  rowMacs: RowMacs,
) {
  const hashKindsText = hashKinds(dialect);
  const macs = openPasswordMacs(rowMacs);

  function decode(row: CredentialRow): Credential {
    const { password_hash: hash } = row;
    return {
      realmId: row.realm_id,
      profileId: row.password_profile_id,
      userId: row.user_id,
      infoId: row.id,
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
    /** The credential of a username in a profile, by its folded key. */
    find: (realmId: Uuid, profileId: Uuid, usernameKey: string) =>
      read(() => credential(FIND, realmId, profileId, usernameKey)),
    get: (realmId: Uuid, userId: Uuid, infoId: Uuid) => read(() => credential(GET, realmId, userId, infoId)),
    /**
     * Replaces the hash of a credential, with an audit entry, if it is still the stored one. Returns whether it was. Nobody sees
     * a change: the record keeps its time, revision and version.
     */
    rehash: ({ realmId, userId, infoId, hash }: Credential, made: MadeHash, auditEntry: AuditEntry) =>
      write([realmId], function* () {
        const row = yield* first<CredentialRow>(GET, realmId, userId, infoId);
        const isCurrent = row !== undefined && hash !== undefined && decode(row).hash === hash;
        if (!isCurrent) return { value: false, keep: false };
        const mac = macs.of({ ...row, [HASH]: made.hash });
        yield* execute(REHASH, made.hash, mac, realmId, userId, infoId);
        return { value: true, keep: true, auditEntries: [auditEntry] };
      }),
    /** The kinds of hashes that checks accept, among the first `LIMITS.listRecordsInlineMax` usernames of a profile. */
    hashKinds: (realmId: Uuid, profileId: Uuid) =>
      read(function* (): Work<readonly HashKindCount[]> {
        const rows = yield* all<HashKindRow>(hashKindsText, realmId, profileId, LIMITS.listRecordsInlineMax);
        return rows
          .filter(({ kind }) => isCheckable(decoyHash(kind)))
          .map((row) => ({ kind: row.kind, isNormalised: row.normalised === 1, count: Number(row.count) }));
      }),
  };
}

export type CredentialStore = ReturnType<typeof openCredentialStore>;

/** Every statement about credentials. */
export const credentialTexts = (dialect: Pick<Dialect, 'position'>): readonly string[] => [
  ...[FIND, GET, REHASH, hashKinds(dialect)],
];
