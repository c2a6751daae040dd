import type { Credential, CredentialStore, HashKindCount } from '../../auth/sign_in/credentials.ts';
import type { Uuid } from '../../domain/id.ts';
import { LIMITS } from '../../domain/limits.ts';
import { decoyHash, type HashKind, isCheckable } from '../../domain/password_hash.ts';
import { passwordProfileInfo } from '../../domain/resources.ts';
import type { Dialect } from '../dialect.ts';
import { macColumn } from '../records/derived_columns.ts';
import { all, execute, first, type Work } from '../transaction_work.ts';
import type { Transactions } from '../transactions.ts';
import type { RowMacs } from './row_macs.ts';

const { table } = passwordProfileInfo;
const HASH = 'password_hash';
const COLUMNS = `realm_id, user_id, id, password_profile_id, ${HASH}, ${macColumn(HASH)} as mac, password_normalised,
  credential_version`;
const FIND = `select ${COLUMNS} from ${table} where realm_id = ? and password_profile_id = ? and username_key = ?`;
const GET = `select ${COLUMNS} from ${table} where realm_id = ? and user_id = ? and id = ?`;
const REHASH = `update ${table} set ${HASH} = ?, password_normalised = 1, ${macColumn(HASH)} = ?
  where realm_id = ? and user_id = ? and id = ? and ${HASH} = ?`;

/** SQL for the kind of a hash. */
export const hashKindOf = ({ position }: Pick<Dialect, 'position'>): string =>
  `case when ${HASH} like '$2%' then substr(${HASH}, 1, 7) else substr(${HASH}, 1, ${position}(${HASH}, ',p=') + 4) end`;

/** Pages in the order of the index of usernames, because one statement over a large profile would delay lookups. */
const kindsPage = (dialect: Pick<Dialect, 'position'>): string =>
  `select username_key, ${hashKindOf(dialect)} as kind, password_normalised from ${table}
   where realm_id = ? and password_profile_id = ? and username_key > ? order by username_key limit ?`;

interface CredentialRow {
  readonly realm_id: Uuid;
  readonly user_id: Uuid;
  readonly id: Uuid;
  readonly password_profile_id: Uuid;
  readonly password_hash: string | null;
  readonly mac: Uint8Array | null;
  readonly password_normalised: number | null;
  readonly credential_version: string | null;
}

interface KindRow {
  readonly username_key: string;
  readonly kind: HashKind | null;
  readonly password_normalised: number | null;
}

export function openCredentialStore(
  { read, write }: Pick<Transactions, 'read' | 'write'>,
  dialect: Pick<Dialect, 'position'>,
  macs: RowMacs,
): CredentialStore {
  const page = kindsPage(dialect);

  function decode(row: CredentialRow): Credential {
    const { password_hash: hash, mac } = row;
    // A hash without a MAC was written by release 0.1.0, or before the master key was lost.
    const isHonoured =
      hash !== null && isCheckable(hash) && (mac === null || macs.isValid(mac, table, row.id, HASH, hash));
    return {
      realmId: row.realm_id,
      profileId: row.password_profile_id,
      userId: row.user_id,
      infoId: row.id,
      hash: isHonoured ? hash : undefined,
      isNormalised: row.password_normalised === 1,
      version: row.credential_version ?? '',
    };
  }

  function* credential(text: string, ...key: readonly string[]): Work<Credential | undefined> {
    const row = yield* first<CredentialRow>(text, ...key);
    return row && decode(row);
  }

  return {
    find: (realmId, profileId, usernameKey) => read(() => credential(FIND, realmId, profileId, usernameKey)),
    get: (realmId, userId, infoId) => read(() => credential(GET, realmId, userId, infoId)),
    rehash: ({ realmId, userId, infoId, hash }, made, auditEntry) =>
      write([realmId], function* () {
        const mac = macs.of(table, infoId, HASH, made.hash);
        const isStored =
          hash !== undefined && (yield* execute(REHASH, made.hash, mac, realmId, userId, infoId, hash)) === 1;
        return { value: isStored, keep: isStored, auditEntries: isStored ? [auditEntry] : [] };
      }),
    async hashKinds(realmId, profileId) {
      const counts = new Map<string, HashKindCount>();
      for (let after = ''; ; ) {
        const position = [realmId, profileId, after, LIMITS.listRecordsInlineMax] as const;
        const rows = await read(() => all<KindRow>(page, ...position));
        for (const row of rows) countKind(counts, row);
        const last = rows.at(-1);
        if (!last) return [...counts.values()];
        after = last.username_key;
        // An embedded engine has answered in this turn.
        await new Promise((resolve) => setImmediate(resolve));
      }
    },
  };
}

function countKind(
  counts: Map<string, HashKindCount>,
  { kind, password_normalised }: Omit<KindRow, 'username_key'>,
): void {
  if (kind === null || !isCheckable(decoyHash(kind))) return;
  const isNormalised = password_normalised === 1;
  const name = `${kind} ${isNormalised}`;
  counts.set(name, { kind, isNormalised, count: (counts.get(name)?.count ?? 0) + 1 });
}

/** Every statement about credentials. */
export const credentialTexts = (dialect: Pick<Dialect, 'position'>): readonly string[] => [
  ...[FIND, GET, REHASH],
  kindsPage(dialect),
];
