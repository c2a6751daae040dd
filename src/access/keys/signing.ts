import { type CryptoKey, exportJWK, generateKeyPair, importJWK, type JWK } from 'jose';
import { Fault, Refusal } from '../../model/fault.ts';
import { type Clock, NIL_UUID } from '../../model/id.ts';
import { LIMITS } from '../../model/limits.ts';
import {
  type AuditAction,
  type AuditContext,
  type AuditEntry,
  createAuditEntry,
} from '../../model/log/audit_entry.ts';
import type { AuthStore, NewSigningKey, SigningKey } from '../store/access.ts';
import type { SecretLocation } from '../store/sealed.ts';
import type { Keyring } from './keyring.ts';

/** The one algorithm of access tokens: Ed25519 by its fully specified name (RFC 9864). */
export const ALGORITHM = 'Ed25519';

const privateKeyLocation = (kid: string): SecretLocation => ({
  table: 'signing_key',
  column: 'private_sealed',
  realm: NIL_UUID,
  id: kid,
});

/** Generates a key pair that signs from `signsFrom` on, with its private key sealed. */
export async function mintSigningKey(
  keyring: Keyring,
  clock: Clock,
  signsFrom: number,
): Promise<NewSigningKey> {
  const kid: string = clock.mintId();
  const { publicKey, privateKey } = await generateKeyPair(ALGORITHM, { extractable: true });
  const publicJwk = { ...(await exportJWK(publicKey)), kid, alg: ALGORITHM, use: 'sig' };
  const sealed = keyring.seal(
    'signing-key',
    privateKeyLocation(kid),
    JSON.stringify(await exportJWK(privateKey)),
  );
  return {
    kid,
    publicJwk: JSON.stringify(publicJwk),
    privateSealed: sealed,
    createdAt: clock.now(),
    signsFrom,
  };
}

/** Creates the first signing key if there is none. Concurrent processes agree on one key. */
export async function ensureSigningKey(
  store: AuthStore,
  keyring: Keyring,
  clock: AuditContext,
): Promise<void> {
  if ((await store.signingKeysInUse()).length > 0) return;
  const key = await mintSigningKey(keyring, clock, clock.now());
  await store.insertSigningKey(key, 'first', signingKeyEntry('signing-key.created', key.kid, key, clock));
}

function signingKeyEntry(
  action: AuditAction,
  kid: string,
  key: NewSigningKey | undefined,
  auditContext: AuditContext,
): AuditEntry {
  const detail = key ? { kid: key.kid, signs_from: new Date(key.signsFrom).toISOString() } : {};
  return createAuditEntry(action, { object: kid, detail }, auditContext);
}

/**
 * How long a new key is published before it signs: every process must have read it, and every cached key set
 * without it must have expired, with allowance for clock skew.
 */
const ANNOUNCEMENT_MS = LIMITS.accessTableAgeMsMax + LIMITS.keySetAgeMsMax + LIMITS.clockLeewayMs;

/** How long a key is accepted after its successor signs: until the tokens it signed have expired. */
const ACCEPTED_AFTER_SUCCESSOR_MS = LIMITS.tokenLifetimeSecondsMax * 1000 + LIMITS.clockLeewayMs;

const TOO_MANY = {
  field: 'signing_keys',
  rule: `at most ${LIMITS.signingKeysMax} are in use: withdraw one that does not sign, or wait until the tokens of an old one have ended`,
};

/** The cause of a fault: another process has completed a change of the master key, so that this process must not seal a key. */
export const MASTER_KEY_CHANGED = new Refusal(
  'the master key was changed, and nothing was written: run this again with the present master key',
);

/**
 * Adds a key that signs once every cached key set contains it; the old key stays accepted until its tokens
 * have expired. Deletes the private keys of those past that. Throws Fault `conflict` at the limit, and `unavailable`
 * after a master key change.
 */
export async function rotateSigningKey(
  store: AuthStore,
  keyring: Keyring,
  clock: AuditContext,
): Promise<NewSigningKey> {
  const now = clock.now();
  const key = await mintSigningKey(keyring, clock, now + ANNOUNCEMENT_MS);
  const auditEntry = signingKeyEntry('signing-key.created', key.kid, key, clock);
  const inserted = await store.insertSigningKey(
    key,
    { supersededBefore: now - ACCEPTED_AFTER_SUCCESSOR_MS },
    auditEntry,
  );
  if (inserted === 'too many') throw new Fault('conflict', [TOO_MANY]);
  if (inserted !== 'added') throw new Fault('unavailable', [], MASTER_KEY_CHANGED);
  const keys = await store.signingKeysInUse();
  const { accepted } = keySetAt(keys, now);
  const expired = keys.filter(({ kid, privateSealed }) => !accepted.has(kid) && privateSealed.length > 0);
  if (expired.length > 0) await store.deletePrivateKeys(expired.map(({ kid }) => kid));
  return key;
}

/**
 * Withdraws a key: every token it signed is rejected within a second. If it was the signing key, a new key
 * replaces it at once. Returns false if no such key is in use.
 */
export async function withdrawSigningKey(
  kid: string,
  store: AuthStore,
  keyring: Keyring,
  clock: AuditContext,
): Promise<boolean> {
  const now = clock.now();
  const keys = await store.signingKeysInUse();
  if (!keys.some((key) => key.kid === kid)) return false;
  const { signer } = keySetAt(keys, now);
  const replacement = signer?.kid === kid ? await mintSigningKey(keyring, clock, now) : undefined;
  const auditEntry = signingKeyEntry('signing-key.withdrawn', kid, replacement, clock);
  return store.withdrawSigningKey(kid, replacement, { ...auditEntry, at: now });
}

export interface KeySet {
  readonly signer: SigningKey | undefined;
  /** Keys whose signatures are accepted: not withdrawn, and not yet expired after a successor. */
  readonly accepted: ReadonlyMap<string, SigningKey>;
}

export function keySetAt(keys: readonly SigningKey[], now: number): KeySet {
  const live = keys
    .filter(({ withdrawnAt, isForged }) => withdrawnAt === undefined && !isForged)
    .sort((left, right) => right.signsFrom - left.signsFrom || (right.kid < left.kid ? -1 : 1));
  // The clock of the process that created the only key may be ahead of this one: then that key signs early.
  const signer = live.find(({ signsFrom }) => signsFrom <= now) ?? live.at(-1);
  const accepted = live.filter((_, index) => {
    const successor = live[index - 1];
    return successor === undefined || now < successor.signsFrom + ACCEPTED_AFTER_SUCCESSOR_MS;
  });
  return { signer, accepted: new Map(accepted.map((key) => [key.kid, key])) };
}

/** The states of a signing key; `next`: published, will sign. */
export const SIGNING_KEY_STATES = ['signs', 'next', 'accepted', 'retired', 'withdrawn'] as const;

export function signingKeyState(
  { kid, signsFrom, withdrawnAt }: SigningKey,
  { signer, accepted }: KeySet,
): (typeof SIGNING_KEY_STATES)[number] {
  if (withdrawnAt !== undefined) return 'withdrawn';
  if (kid === signer?.kid) return 'signs';
  if (!accepted.has(kid)) return 'retired';
  return signsFrom > (signer?.signsFrom ?? 0) ? 'next' : 'accepted';
}

/** The public keys as a JWK Set (RFC 7517). */
export function publicKeySet(keys: Iterable<SigningKey>): { readonly keys: readonly JWK[] } {
  return { keys: [...keys].map(({ publicJwk }) => JSON.parse(publicJwk) as JWK) };
}

export function importPublicKey(key: SigningKey): Promise<CryptoKey> {
  return importJWK(JSON.parse(key.publicJwk) as JWK, ALGORITHM) as Promise<CryptoKey>;
}

/** Rejects with Fault `unavailable` if the loaded master key does not decrypt it. */
export async function importPrivateKey(
  key: Pick<SigningKey, 'kid' | 'privateSealed'>,
  keyring: Keyring,
): Promise<CryptoKey> {
  try {
    const jwk = JSON.parse(
      keyring.open('signing-key', privateKeyLocation(key.kid), key.privateSealed),
    ) as JWK;
    return (await importJWK(jwk, ALGORITHM)) as CryptoKey;
  } catch (error) {
    throw new Fault('unavailable', [], error);
  }
}
