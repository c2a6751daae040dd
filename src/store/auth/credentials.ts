import type { Credential, CredentialStore, HashKindCount } from '../../auth/sign_in/credentials.ts';
import { NIL_UUID, type Uuid } from '../../domain/id.ts';
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
  `case when substr(${HASH}, 1, 2) = '$2' then substr(${HASH}, 1, 7) else substr(${HASH}, 1, ${position}(${HASH}, ',p=') + 4) end`;

/**
 * A page of a realm, because one statement over all its rows would delay lookups. In the order of IDs, which is that of the rows:
 * a walk of the usernames of a profile takes more than twice as long.
 */
const kindsPage = (dialect: Pick<Dialect, 'position'>): string =>
  `select id, password_profile_id, ${hashKindOf(dialect)} as kind, password_normalised from ${table}
   where realm_id = ? and id > ? order by realm_id, id limit ?`;

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
  readonly id: Uuid;
  readonly password_profile_id: Uuid;
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
    const isHonoured = (text: string) =>
      isCheckable(text) && (mac === null || macs.isValid(mac, table, row.id, HASH, text));
    return {
      realmId: row.realm_id,
      profileId: row.password_profile_id,
      userId: row.user_id,
      infoId: row.id,
      get hash() {
        return hash !== null && isHonoured(hash) ? hash : undefined;
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
    find: (realmId, profileId, usernameKey) => read(() => credential(FIND, realmId, profileId, usernameKey)),
    get: (realmId, userId, infoId) => read(() => credential(GET, realmId, userId, infoId)),
    rehash: ({ realmId, userId, infoId, hash }, made, auditEntry) =>
      write([realmId], function* () {
        const mac = macs.of(table, infoId, HASH, made.hash);
        const isStored =
          hash !== undefined && (yield* execute(REHASH, made.hash, mac, realmId, userId, infoId, hash)) === 1;
        return { value: isStored, keep: isStored, auditEntries: [auditEntry] };
      }),
    async hashKinds(realmId, profileId) {
      const counts: KindCounts = { normalised: new Map(), imported: new Map() };
      for (let after = NIL_UUID; ; ) {
        const position = [realmId, after, LIMITS.listRecordsInlineMax] as const;
        const rows = await read(() => all<KindRow>(page, ...position));
        for (const row of rows) if (row.password_profile_id === profileId) countKind(counts, row);
        const last = rows.at(-1);
        if (!last)
          return [...checkableKinds(counts.normalised, true), ...checkableKinds(counts.imported, false)];
        after = last.id;
        // An embedded engine has answered in this turn.
        await new Promise((resolve) => setImmediate(resolve));
      }
    },
  };
}

/** Counts of kinds, of hashes that were made here and of imported ones. */
interface KindCounts {
  readonly normalised: Map<HashKind, number>;
  readonly imported: Map<HashKind, number>;
}

function countKind({ normalised, imported }: KindCounts, { kind, password_normalised }: KindRow): void {
  if (kind === null) return;
  const counts = password_normalised === 1 ? normalised : imported;
  counts.set(kind, (counts.get(kind) ?? 0) + 1);
}

function checkableKinds(counts: Map<HashKind, number>, isNormalised: boolean): readonly HashKindCount[] {
  return [...counts].flatMap(([kind, count]) =>
    isCheckable(decoyHash(kind)) ? [{ kind, isNormalised, count }] : [],
  );
}

/** Every statement about credentials. */
export const credentialTexts = (dialect: Pick<Dialect, 'position'>): readonly string[] => [
  ...[FIND, GET, REHASH],
  kindsPage(dialect),
];
