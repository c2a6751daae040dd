import { LIMITS } from '../../src/domain/limits.ts';
import {
  oidcProfile,
  oidcProfileInfo,
  passwordProfile,
  passwordProfileInfo,
  realm,
  user,
} from '../../src/domain/resources.ts';
import { type Data, type Kind, kindOf, type ParentIds } from '../support/resource_cases.ts';
import type { Kept } from './random_client.ts';

/** What a realm should hold, by what was acknowledged: the rules of the contract, said a second time. */
export interface RealmModel {
  readonly records: ReadonlyMap<string, Kept>;
  /** The status that the contract gives each write. One that breaks two rules may be told either. */
  ofCreate(kind: Kind, home: ParentIds, data: Data): readonly (201 | 404 | 422)[];
  ofUpdate(record: Kept, changes: Data): 200 | 422;
  ofRemoval(record: Kept): readonly (204 | 422)[];
  put(record: Kept): void;
  /** An answer is remembered in the realm: too many of them are as much in the way of its removal as records. */
  remember(): void;
  /** Takes along what the contract says. */
  remove(record: Kept): void;
}

export const REALMS = kindOf(realm);
export const USERS = kindOf(user);
export const OIDC_PROFILES = kindOf(oidcProfile);
export const PASSWORD_PROFILES = kindOf(passwordProfile);
export const IDENTITIES = kindOf(oidcProfileInfo);
export const USERNAMES = kindOf(passwordProfileInfo);

/** What each link refers to by which member. */
const REFERENCES: ReadonlyMap<Kind, string> = new Map([
  [IDENTITIES, 'oidc_profile_id'],
  [USERNAMES, 'password_profile_id'],
]);

/** What two records of a realm may not share. */
const UNIQUE: ReadonlyMap<Kind, readonly string[]> = new Map([
  [IDENTITIES, ['issuer', 'subject']],
  [USERNAMES, ['password_profile_id', 'username']],
]);

export function openRealmModel(): RealmModel {
  const records = new Map<string, Kept>();
  let answers = 0;

  function isTaken(kind: Kind, data: Data, own: string | undefined): boolean {
    const members = UNIQUE.get(kind);
    if (!members) return false;
    return [...records.values()].some(
      (other) =>
        other.kind === kind && other.id !== own && members.every((name) => other.data[name] === data[name]),
    );
  }

  /** Where a profile takes e-mail addresses only, and this is none. */
  function isUnfit(kind: Kind, { username, password_profile_id }: Data): boolean {
    const profile = kind === USERNAMES ? records.get(String(password_profile_id)) : undefined;
    return profile?.data.username_format === 'email' && !String(username).includes('@');
  }

  /** What goes along with a record. */
  function below({ kind, id }: Kept): readonly Kept[] {
    return [...records.values()].filter((other) => {
      if (other.id === id) return false;
      if (kind === REALMS) return true;
      const reference = REFERENCES.get(other.kind);
      return reference !== undefined && (other.home.user === id || other.data[reference] === id);
    });
  }

  return {
    records,
    ofCreate(kind, home, data) {
      const reference = REFERENCES.get(kind);
      if (reference === undefined) return [201];
      const isBroken =
        !records.has(String(data[reference])) || isTaken(kind, data, undefined) || isUnfit(kind, data);
      if (!records.has(home.user)) return [404];
      return [isBroken ? 422 : 201];
    },
    ofUpdate({ kind, id, data }, changes) {
      const after = { ...data, ...changes };
      return isTaken(kind, after, id) || ('username' in changes && isUnfit(kind, after)) ? 422 : 200;
    },
    ofRemoval(record) {
      const most = LIMITS.cascadeRecordsMax;
      if (below(record).length > most) return [422];
      // Answers go with the users they tell about and when they expire: there are so many at most.
      return record.kind === REALMS && answers > most ? [204, 422] : [204];
    },
    put(record) {
      records.set(record.id, record);
    },
    remember() {
      answers += 1;
    },
    remove(record) {
      for (const { id } of below(record)) records.delete(id);
      records.delete(record.id);
    },
  };
}
