import type { MaybePromise } from '../../directory/store.ts';
import { type AuditEntry, createAuditEntry } from '../../domain/audit_entry.ts';
import type { Clock, Uuid } from '../../domain/id.ts';
import type { PasswordCost } from '../../domain/password.ts';
import { type HashKind, isWeaker, type MadeHash, type PasswordCheck } from '../../domain/password_hash.ts';

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

/** What a decoy imitates of a credential. */
export interface StoredHash extends Pick<Credential, 'isNormalised'> {
  /** Undefined without a hash. */
  readonly kind: HashKind | undefined;
}

/** Stores credentials. */
export interface CredentialStore {
  /** The credential of a username in a profile, by its folded key. */
  find(realmId: Uuid, profileId: Uuid, usernameKey: string): MaybePromise<Credential | undefined>;
  get(realmId: Uuid, userId: Uuid, infoId: Uuid): MaybePromise<Credential | undefined>;
  /**
   * Replaces the hash of a credential, with an audit entry, if it is still the stored one. Returns whether it was. Nobody sees
   * a change: the record keeps its time, revision and version.
   */
  rehash(credential: Credential, made: MadeHash, auditEntry: AuditEntry): Promise<boolean>;
  /** The hashes of the first usernames of a profile, at most `LIMITS.listRecordsInlineMax`. */
  firstHashes(realmId: Uuid, profileId: Uuid): MaybePromise<readonly StoredHash[]>;
}

/** Whether a new hash of a checked password would be better. What is behind the cut may be a typing error, and is not hashed. */
export function needsRehash(
  { hash, isNormalised }: Pick<Credential, 'hash' | 'isNormalised'>,
  { isRight, isCut }: PasswordCheck,
  cost: PasswordCost,
): boolean {
  return hash !== undefined && isRight && !isCut && (!isNormalised || isWeaker(hash, cost));
}

export interface RehashDeps {
  readonly credentials: Pick<CredentialStore, 'rehash'>;
  readonly hashPassword: (password: string) => Promise<MadeHash>;
  /** The cost of new hashes. */
  readonly cost: PasswordCost;
  readonly clock: Pick<Clock, 'now'>;
}

/** A password that was checked. */
export interface CheckedPassword {
  readonly credential: Credential;
  readonly password: string;
  readonly check: PasswordCheck;
}

/**
 * Creates the function that replaces the hash of a checked password by a better one, to be called after the response. Returns
 * whether it did; rejects where the hasher or the store is overloaded: the next sign-in tries again. So it does after one that was
 * skipped while another password was hashed: more than one at a time would take the hasher from writes of passwords.
 */
export function openRehash({ credentials, hashPassword, cost, clock }: RehashDeps) {
  let isHashing = false;

  async function hashAlone(password: string): Promise<MadeHash> {
    isHashing = true;
    try {
      return await hashPassword(password);
    } finally {
      isHashing = false;
    }
  }

  return async ({ credential, password, check }: CheckedPassword): Promise<boolean> => {
    if (isHashing || !needsRehash(credential, check, cost)) return false;
    const made = await hashAlone(password);
    const { realmId: realm, userId: user, infoId: object } = credential;
    const caller = { actor: 'authrealm', address: undefined, requestId: undefined };
    const fields = { object, realm, user, detail: {} };
    const auditEntry = createAuditEntry('password.rehashed', fields, { now: clock.now, caller });
    return credentials.rehash(credential, made, auditEntry);
  };
}
