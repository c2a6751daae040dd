import { type CryptoKey, exportJWK, generateKeyPair, importJWK, type JWK } from 'jose';
import {
  type AuditAction,
  type AuditContext,
  type AuditEntry,
  createAuditEntry,
} from '../../domain/audit_entry.ts';
import { Fault, Refusal } from '../../domain/fault.ts';
import { type Clock, NIL_UUID } from '../../domain/id.ts';
import { LIMITS } from '../../domain/limits.ts';
import type { AuthStore, SecretLocation, SigningKey, SigningKeyInsertion } from '../port.ts';
import type { Keyring } from './keyring.ts';

/** The one algorithm of access tokens: Ed25519 by its fully specified name (RFC 9864). */
export const ALGORITHM = 'Ed25519';

const privateKeyLocation = (kid: string): SecretLocation => ({
  table: 'signing_key',
  column: 'private_sealed',
  realm: NIL_UUID,
  id: kid,
});

/** A new key pair, its private half sealed. It signs from `signsFrom` on. */
export async function mintSigningKey(keyring: Keyring, clock: Clock, signsFrom: number): Promise<SigningKey> {
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
    withdrawnAt: undefined,
  };
}

/** Makes sure there is a key that signs. However many processes ask at once, they agree on the same one. */
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
  key: SigningKey | undefined,
  auditContext: AuditContext,
): AuditEntry {
  const detail = key ? { kid: key.kid, signs_from: new Date(key.signsFrom).toISOString() } : {};
  return createAuditEntry(action, { object: kid, detail }, auditContext);
}

/**
 * How long a new key stands in the key set before it signs: every process must have read it, and then every copy of a
 * set without it must have ended, by a clock that may be late.
 */
const ANNOUNCEMENT_MS = LIMITS.accessAgeMsMax + LIMITS.keySetAgeMsMax + LIMITS.clockLeewayMs;

/** How long a key is accepted when another one signs: until the tokens that it signed have ended. */
const ACCEPTED_AFTER_SUCCESSOR_MS = LIMITS.tokenLifetimeSecondsMax * 1000 + LIMITS.clockLeewayMs;

/** What to do where as many signing keys are in use as may be. */
export const SIGNING_KEY_LIMIT_HINT =
  'withdraw one that does not sign, or wait until the tokens of an old one have ended';

/** Why there is no new key. */
export class SigningKeyRefusal extends Refusal {
  readonly reason: Exclude<SigningKeyInsertion, 'added'>;

  constructor(reason: Exclude<SigningKeyInsertion, 'added'>) {
    super(
      reason === 'too many'
        ? `${LIMITS.signingKeysMax} signing keys are in use, which is as many as there may be: ${SIGNING_KEY_LIMIT_HINT}`
        : 'the master key was changed while this ran, and nothing was written: run it again',
    );
    this.reason = reason;
  }
}

/**
 * Adds a key that takes over once every cached key set has seen it; the old one stays until its tokens are gone. Keys
 * that are past that lose their private half. Rejects with KeyRefusal where there are too many, or the master key was changed.
 */
export async function rotateSigningKey(
  store: AuthStore,
  keyring: Keyring,
  clock: AuditContext,
): Promise<SigningKey> {
  const now = clock.now();
  const key = await mintSigningKey(keyring, clock, now + ANNOUNCEMENT_MS);
  const auditEntry = signingKeyEntry('signing-key.created', key.kid, key, clock);
  const inserted = await store.insertSigningKey(
    key,
    { supersededBefore: now - ACCEPTED_AFTER_SUCCESSOR_MS },
    auditEntry,
  );
  if (inserted !== 'added') throw new SigningKeyRefusal(inserted);
  const keys = await store.signingKeysInUse();
  const { accepted } = keySetAt(keys, now);
  const expired = keys.filter(({ kid, privateSealed }) => !accepted.has(kid) && privateSealed.length > 0);
  if (expired.length > 0) await store.deletePrivateKeys(expired.map(({ kid }) => kid));
  return key;
}

/**
 * Takes a key back: every token it signed is refused within a second. Where it was the one that signs, a new key does
 * from now on; else the one that signs goes on. Answers false where there is no such key in use.
 */
export async function withdrawSigningKey(
  kid: string,
  store: AuthStore,
  keyring: Keyring,
  clock: AuditContext,
): Promise<boolean> {
  const now = clock.now();
  const { signer } = keySetAt(await store.signingKeysInUse(), now);
  const replacement = signer?.kid === kid ? await mintSigningKey(keyring, clock, now) : undefined;
  const auditEntry = signingKeyEntry('signing-key.withdrawn', kid, replacement, clock);
  return store.withdrawSigningKey(kid, replacement, { ...auditEntry, at: now });
}

/** The keys as of one moment, the newest that signs first. */
export interface KeySet {
  readonly signer: SigningKey | undefined;
  /** Whose signatures are accepted: not withdrawn, and not yet outlived by a successor. */
  readonly accepted: ReadonlyMap<string, SigningKey>;
}

export function keySetAt(keys: readonly SigningKey[], now: number): KeySet {
  const live = keys
    .filter(({ withdrawnAt }) => withdrawnAt === undefined)
    .sort((left, right) => right.signsFrom - left.signsFrom || (right.kid < left.kid ? -1 : 1));
  // Who made the key that is to sign may be ahead of this clock: then it signs before its time.
  const signer = live.find(({ signsFrom }) => signsFrom <= now) ?? live.at(-1);
  const accepted = live.filter((_, index) => {
    const successor = live[index - 1];
    return successor === undefined || now < successor.signsFrom + ACCEPTED_AFTER_SUCCESSOR_MS;
  });
  return { signer, accepted: new Map(accepted.map((key) => [key.kid, key])) };
}

/** The public halves as RFC 7517 has them. */
export function publicKeySet(keys: Iterable<SigningKey>): { readonly keys: readonly JWK[] } {
  return { keys: [...keys].map(({ publicJwk }) => JSON.parse(publicJwk) as JWK) };
}

export function importPublicKey(key: SigningKey): Promise<CryptoKey> {
  return importJWK(JSON.parse(key.publicJwk) as JWK, ALGORITHM) as Promise<CryptoKey>;
}

/** Rejects with Fault `unavailable` where the master key at hand does not open it. */
export async function importPrivateKey(key: SigningKey, keyring: Keyring): Promise<CryptoKey> {
  try {
    const jwk = JSON.parse(
      keyring.open('signing-key', privateKeyLocation(key.kid), key.privateSealed),
    ) as JWK;
    return (await importJWK(jwk, ALGORITHM)) as CryptoKey;
  } catch (error) {
    throw new Fault('unavailable', [], error);
  }
}
