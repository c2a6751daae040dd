import type { Clock, Uuid } from '../model/id.ts';
import { createAuditEntry } from '../model/log/audit_entry.ts';
import type { PasswordCost } from '../model/password.ts';
import { isWeaker, type MadeHash, type PasswordCheck } from '../model/password_hash.ts';
import type { Credential, CredentialStore } from './store/credentials.ts';

/** A username in a password profile, whether or not a user has it. */
export interface SignInName {
  readonly realmId: Uuid;
  readonly profileId: Uuid;
  /** The folded username (`foldedKey`). */
  readonly usernameKey: string;
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
  readonly cost: PasswordCost;
  readonly clock: Pick<Clock, 'now'>;
}

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

  return async ({ credential, password, check }: CheckedPassword): Promise<boolean> => {
    if (isHashing || !needsRehash(credential, check, cost)) return false;
    isHashing = true;
    const made = await hashPassword(password).finally(() => {
      isHashing = false;
    });
    const { realmId: realm, userId: user, infoId: object } = credential;
    const caller = { actor: 'authrealm', address: undefined, requestId: undefined };
    const fields = { object, realm, user, detail: {} };
    const auditEntry = createAuditEntry('password.rehashed', fields, { now: clock.now, caller });
    return credentials.rehash(credential, made, auditEntry);
  };
}
