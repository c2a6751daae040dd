import { LIMITS } from '../../src/model/limits.ts';
import {
  oidcProfile,
  oidcProfileInfo,
  passwordProfile,
  passwordProfileInfo,
  realm,
  user,
} from '../../src/model/resources.ts';
import { type Data, type Kind, kindOf, type ParentIds } from '../support/resource_cases.ts';
import type { ModelRecord } from './random_client.ts';

/** The expected records of a realm after the acknowledged writes: an independent implementation of the contract. */
export interface RealmModel {
  readonly records: ReadonlyMap<string, ModelRecord>;
  /** The documented statuses of each write. */
  createStatuses(kind: Kind, home: ParentIds, data: Data): readonly (201 | 404 | 422)[];
  updateStatus(record: ModelRecord, changes: Data): 200 | 422;
  deleteStatus(record: ModelRecord): 204 | 422;
  put(record: ModelRecord): void;
  /** Removes a record and those it cascades to. */
  remove(record: ModelRecord): void;
}

export const REALMS = kindOf(realm);
export const USERS = kindOf(user);
export const OIDC_PROFILES = kindOf(oidcProfile);
export const PASSWORD_PROFILES = kindOf(passwordProfile);
export const IDENTITIES = kindOf(oidcProfileInfo);
export const USERNAMES = kindOf(passwordProfileInfo);

/** The member by which each link refers to its profile. */
const REFERENCES: ReadonlyMap<Kind, string> = new Map([
  [IDENTITIES, 'oidc_profile_id'],
  [USERNAMES, 'password_profile_id'],
]);

/** Members whose combination is unique in a realm. */
const UNIQUE: ReadonlyMap<Kind, readonly string[]> = new Map([
  [IDENTITIES, ['issuer', 'subject']],
  [USERNAMES, ['password_profile_id', 'username']],
]);

export function openRealmModel(): RealmModel {
  const records = new Map<string, ModelRecord>();

  function isDuplicate(kind: Kind, data: Data, own: string | undefined): boolean {
    const members = UNIQUE.get(kind);
    if (!members) return false;
    return [...records.values()].some(
      (other) =>
        other.kind === kind && other.id !== own && members.every((name) => other.data[name] === data[name]),
    );
  }

  /** The profile accepts only e-mail addresses, and this is not one. */
  function isInvalidUsername(kind: Kind, { username, password_profile_id }: Data): boolean {
    const profile = kind === USERNAMES ? records.get(String(password_profile_id)) : undefined;
    return profile?.data.username_format === 'email' && !String(username).includes('@');
  }

  /** The records that are deleted with a record. */
  function cascadeOf({ kind, id }: ModelRecord): readonly ModelRecord[] {
    return [...records.values()].filter((other) => {
      if (other.id === id) return false;
      if (kind === REALMS) return true;
      const reference = REFERENCES.get(other.kind);
      return reference !== undefined && (other.home.user === id || other.data[reference] === id);
    });
  }

  return {
    records,
    createStatuses(kind, home, data) {
      const reference = REFERENCES.get(kind);
      if (reference === undefined) return [201];
      const isBroken =
        !records.has(String(data[reference])) ||
        isDuplicate(kind, data, undefined) ||
        isInvalidUsername(kind, data);
      if (!records.has(home.user)) return [404];
      return [isBroken ? 422 : 201];
    },
    updateStatus({ kind, id, data }, changes) {
      const after = { ...data, ...changes };
      return isDuplicate(kind, after, id) || ('username' in changes && isInvalidUsername(kind, after))
        ? 422
        : 200;
    },
    deleteStatus: (record) => (cascadeOf(record).length > LIMITS.cascadeRecordsMax ? 422 : 204),
    put(record) {
      records.set(record.id, record);
    },
    remove(record) {
      for (const { id } of cascadeOf(record)) records.delete(id);
      records.delete(record.id);
    },
  };
}
