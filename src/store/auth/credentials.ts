import type { Credential, CredentialStore, StoredHash } from '../../auth/sign_in/credentials.ts';
import type { Uuid } from '../../domain/id.ts';
import { LIMITS } from '../../domain/limits.ts';
import { type HashKind, isCheckable } from '../../domain/password_hash.ts';
import { passwordProfileInfo } from '../../domain/resources.ts';
import type { Dialect } from '../dialect.ts';
import { type CoveredRow, openRecordMacs } from '../records/record_macs.ts';
import { all, execute, first, type Work } from '../transaction_work.ts';
import type { Transactions } from '../transactions.ts';
import type { RowMacs } from './row_macs.ts';

const { table } = passwordProfileInfo;
const HASH = 'password_hash';
/** Those that the MAC of a hash covers, and what else a check needs. */
export const CREDENTIAL_COLUMNS = `realm_id, user_id, id, password_profile_id, username_key, ${HASH}, password_hash_mac,
  password_normalised, credential_version`;
const FIND = `select ${CREDENTIAL_COLUMNS} from ${table} where realm_id = ? and password_profile_id = ? and username_key = ?`;
const GET = `select ${CREDENTIAL_COLUMNS} from ${table} where realm_id = ? and user_id = ? and id = ?`;
const REHASH = `update ${table} set ${HASH} = ?, password_normalised = 1, password_hash_mac = ?
  where realm_id = ? and user_id = ? and id = ?`;

/** SQL for the kind of a hash. */
export const hashKindOf = ({ position }: Pick<Dialect, 'position'>): string =>
  `case when substr(${HASH}, 1, 2) = '$2' then substr(${HASH}, 1, 7) else substr(${HASH}, 1, ${position}(${HASH}, ',p=') + 4) end`;

const hashColumns = (dialect: Pick<Dialect, 'position'>): string =>
  `id, password_profile_id, ${hashKindOf(dialect)} as kind, password_normalised`;
const firstHashes = (dialect: Pick<Dialect, 'position'>): string =>
  `select ${hashColumns(dialect)} from ${table}
   where realm_id = ? and password_profile_id = ? order by realm_id, password_profile_id, username_key limit ?`;
/** In the order of IDs, which is about that of the rows: a walk of the usernames of a profile takes more than twice as long. */
const hashesAfter = (dialect: Pick<Dialect, 'position'>): string =>
  `select ${hashColumns(dialect)} from ${table} where realm_id = ? and id > ? order by realm_id, id limit ?`;

export interface CredentialRow extends CoveredRow {
  readonly realm_id: Uuid;
  readonly user_id: Uuid;
  readonly id: Uuid;
  readonly password_profile_id: Uuid;
  readonly password_hash: string | null;
  readonly password_normalised: number | null;
  readonly credential_version: string | null;
}

interface HashRow extends Pick<CredentialRow, 'id' | 'password_profile_id' | 'password_normalised'> {
  readonly kind: HashKind | null;
}

export function openCredentialStore(
  { read, write }: Pick<Transactions, 'read' | 'write'>,
  dialect: Pick<Dialect, 'position'>,
  rowMacs: RowMacs,
): CredentialStore {
  const [firstPage, nextPage] = [firstHashes(dialect), hashesAfter(dialect)];
  const macs = openRecordMacs(passwordProfileInfo, rowMacs);

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

  const hashes = (text: string, ...key: readonly Uuid[]) =>
    read(function* () {
      const rows = yield* all<HashRow>(text, ...key, LIMITS.listRecordsInlineMax);
      return rows.map(
        ({ id, password_profile_id, kind, password_normalised }): StoredHash => ({
          ...{ infoId: id, profileId: password_profile_id, kind: kind ?? undefined },
          isNormalised: password_normalised === 1,
        }),
      );
    });

  return {
    find: (realmId, profileId, usernameKey) => read(() => credential(FIND, realmId, profileId, usernameKey)),
    get: (realmId, userId, infoId) => read(() => credential(GET, realmId, userId, infoId)),
    rehash: ({ realmId, userId, infoId, hash }, made, auditEntry) =>
      write([realmId], function* () {
        const row = yield* first<CredentialRow>(GET, realmId, userId, infoId);
        const isCurrent = row !== undefined && hash !== undefined && decode(row).hash === hash;
        if (!isCurrent) return { value: false, keep: false };
        const mac = macs.of({ ...row, [HASH]: made.hash });
        yield* execute(REHASH, made.hash, mac, realmId, userId, infoId);
        return { value: true, keep: true, auditEntries: [auditEntry] };
      }),
    firstHashes: (realmId, profileId) => hashes(firstPage, realmId, profileId),
    hashesAfter: (realmId, infoId) => hashes(nextPage, realmId, infoId),
  };
}

/** Every statement about credentials. */
export const credentialTexts = (dialect: Pick<Dialect, 'position'>): readonly string[] => [
  ...[FIND, GET, REHASH],
  ...[firstHashes(dialect), hashesAfter(dialect)],
];
