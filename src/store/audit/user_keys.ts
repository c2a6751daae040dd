import type { LogKeys } from '../../audit/log_keys.ts';
import type { Change } from '../../domain/change.ts';
import { type StoredId, type Uuid, uuidText } from '../../domain/id.ts';
import { user } from '../../domain/resources.ts';
import { type Dialect, haveIds } from '../dialect.ts';
import { userSaltTable } from '../tables/realm_data.ts';
import { all, allUnexpected, type Statement, type Work } from '../transaction_work.ts';
import type { ChangeEntry } from './entry.ts';

/** The encryption of personal values in the log, by one key per user, which is derived from a salt. */
interface EntryEncryption {
  encrypt(change: Change, plain: Uint8Array): Uint8Array;
  /** Store the salts that were created. */
  readonly statements: readonly Statement[];
}

/** Users in one query; unused placeholders repeat the last user. */
const USERS_PER_QUERY = 100;
/** Every statement about salts. */
export const userKeyTexts = (dialect: Dialect) => ({
  one: `select salt from user_salt where ${haveIds(['realm_id', 'user_id'], dialect)}`,
  many: `select user_id, salt from user_salt
  where ${haveIds(['realm_id'], dialect)} and user_id in (${Array(USERS_PER_QUERY).fill(dialect.id('?')).join(', ')})`,
  insert: userSaltTable.insert(dialect),
});
/** The event of a created user. */
const CREATED = `${user.name}.created`;

/** Returns the encryption of entries of a realm: reads the salt of each user, or creates it. */
export function openUserEncryption(keys: LogKeys, dialect: Dialect) {
  const sql = userKeyTexts(dialect);
  return function* (realm: Uuid, entries: readonly ChangeEntry[]): Work<EntryEncryption> {
    const users = new Set<Uuid>();
    /** Users of these entries that had no entry before; one that was imported again may have a salt. */
    const created = new Set<Uuid>();
    for (const { change, personal } of entries) {
      if (change.user === undefined || personal === undefined) continue;
      users.add(change.user);
      if (change.event === CREATED) created.add(change.user);
    }
    const salts = new Map([
      ...(yield* findUserSalts(realm, [...created], sql, allUnexpected)),
      ...(yield* findUserSalts(realm, [...users.difference(created)], sql)),
    ]);
    const statements: Statement[] = [];
    for (const user of users.difference(salts)) {
      const salt = keys.mintUserKey();
      salts.set(user, salt);
      statements.push({ text: sql.insert, values: [realm, user, salt] });
    }
    return {
      encrypt({ user }, plain) {
        const salt = user && salts.get(user);
        if (!user || !salt) throw new Error('a personal value belongs to a user');
        return keys.encrypt(salt, { realm, user }, plain);
      },
      statements,
    };
  };
}

/** The salts of these users; users without one are missing. */
export function* findUserSalts(
  realm: Uuid,
  users: readonly Uuid[],
  sql: ReturnType<typeof userKeyTexts>,
  read = all,
): Work<ReadonlyMap<Uuid, Uint8Array>> {
  const found = new Map<Uuid, Uint8Array>();
  const [only] = users;
  if (users.length === 1 && only) {
    const [row] = yield* read<{ readonly salt: Uint8Array }>(sql.one, realm, only);
    if (row) found.set(only, row.salt);
    return found;
  }
  for (let start = 0; start < users.length; start += USERS_PER_QUERY) {
    const some = users.slice(start, start + USERS_PER_QUERY);
    const ids = Array.from({ length: USERS_PER_QUERY }, (_, at) => (some[at] ?? some.at(-1)) as Uuid);
    const rows = yield* read<SaltRow>(sql.many, realm, ...ids);
    for (const { user_id, salt } of rows) found.set(uuidText(user_id), salt);
  }
  return found;
}

interface SaltRow {
  readonly user_id: StoredId;
  readonly salt: Uint8Array;
}
