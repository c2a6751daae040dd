import { type StoredId, type Uuid, uuidText } from '../../model/id.ts';
import type { Change, ChangeEntry } from '../../model/log/change.ts';
import { user } from '../../model/resources.ts';
import type { Dialect } from '../../sql/dialect.ts';
import { userSaltTable } from '../../sql/tables/realm_data.ts';
import { all, allUnexpected, type Statement, type Work } from '../../sql/transaction_work.ts';
import type { LogKeys } from '../keys.ts';

/** Every statement about salts. */
export const userKeyTexts = (dialect: Dialect) => ({
  one: `select salt from user_salt where realm_id = ${dialect.realm('?')} and user_id = ${dialect.id('?')}`,
  many: `select user_id, salt from user_salt
    where realm_id = ${dialect.realm('?')} and ${dialect.lists.isAmong('user_id', dialect.id)}`,
  insert: userSaltTable.insert(dialect),
});
/** The event of a created user. */
const CREATED = `${user.name}.created`;

/**
 * Returns the encryption of personal values in entries of a realm, by one key per user, which is derived from a salt: reads the salt of
 * each user, or creates it. The statements store the salts that were created.
 */
export function openUserEncryption(keys: LogKeys, dialect: Dialect) {
  const { insert } = userKeyTexts(dialect);
  const findSalts = openUserSalts(dialect);
  return function* (realm: Uuid, entries: readonly ChangeEntry[]) {
    const users = new Set<Uuid>();
    /** Users of these entries that had no entry before; one that was imported again may have a salt. */
    const created = new Set<Uuid>();
    for (const { change, personal } of entries) {
      if (change.user === undefined || personal === undefined) continue;
      users.add(change.user);
      if (change.event === CREATED) created.add(change.user);
    }
    const salts = new Map([
      ...(yield* findSalts(realm, [...created], allUnexpected)),
      ...(yield* findSalts(realm, [...users.difference(created)])),
    ]);
    const statements: Statement[] = [];
    for (const user of users.difference(salts)) {
      const salt = keys.mintUserKey();
      salts.set(user, salt);
      statements.push({ text: insert, values: [realm, user, salt] });
    }
    return {
      encrypt({ user }: Change, plain: Uint8Array): Uint8Array {
        const salt = user && salts.get(user);
        if (!user || !salt) throw new Error('a personal value belongs to a user');
        return keys.encrypt(salt, { realm, user }, plain);
      },
      statements,
    };
  };
}

/** Returns the salts of users; those without one are missing. */
export function openUserSalts(dialect: Dialect) {
  const { one, many } = userKeyTexts(dialect);
  return function* (realm: Uuid, users: readonly Uuid[], read = all): Work<ReadonlyMap<Uuid, Uint8Array>> {
    const [first, ...others] = users;
    if (!first) return new Map();
    if (others.length === 0)
      return new Map((yield* read<SaltRow>(one, realm, first)).map(({ salt }) => [first, salt]));
    const rows = yield* read<SaltRow>(many, realm, dialect.lists.among(users));
    return new Map(rows.map(({ user_id, salt }) => [uuidText(user_id), salt]));
  };
}

interface SaltRow {
  readonly user_id: StoredId;
  readonly salt: Uint8Array;
}
