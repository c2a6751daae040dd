import { type CryptoKey, exportJWK, generateKeyPair, importJWK, type JWK } from 'jose';
import { type Ambient, NIL_UUID } from '../domain/id.ts';
import { LIMITS } from '../domain/limits.ts';
import type { Keyring, Place } from './keyring.ts';
import type { AccessStore, SigningKey } from './port.ts';

/** The one algorithm of access tokens: Ed25519 by its fully specified name (RFC 9864). */
export const ALGORITHM = 'Ed25519';

const placeOf = (kid: string): Place => ({
  table: 'signing_key',
  column: 'private_sealed',
  realm: NIL_UUID,
  id: kid,
});

/** A new key pair, its private half sealed. It signs from `signsFrom` on. */
export async function mintSigningKey(
  keyring: Keyring,
  ambient: Ambient,
  signsFrom: number,
): Promise<SigningKey> {
  const kid: string = ambient.mintId();
  const { publicKey, privateKey } = await generateKeyPair(ALGORITHM, { extractable: true });
  const publicJwk = { ...(await exportJWK(publicKey)), kid, alg: ALGORITHM, use: 'sig' };
  const sealed = keyring.seal('signing-key', placeOf(kid), JSON.stringify(await exportJWK(privateKey)));
  return {
    kid,
    publicJwk: JSON.stringify(publicJwk),
    privateSealed: sealed,
    createdAt: ambient.now(),
    signsFrom,
    withdrawnAt: undefined,
  };
}

/** Makes sure there is a key that signs. However many processes ask at once, they agree on the same one. */
export async function ensureSigningKey(
  store: AccessStore,
  keyring: Keyring,
  ambient: Ambient,
): Promise<void> {
  const table = await store.table(undefined);
  if (table?.signingKeys.some(({ withdrawnAt }) => withdrawnAt === undefined)) return;
  await store.insertSigningKey(await mintSigningKey(keyring, ambient, ambient.now()), true);
}

/** Adds a key that takes over once every cached key set has seen it; the old one stays until its tokens are gone. */
export async function rotateSigningKey(
  store: AccessStore,
  keyring: Keyring,
  ambient: Ambient,
): Promise<SigningKey> {
  const key = await mintSigningKey(keyring, ambient, ambient.now() + LIMITS.keySetAgeMsMax);
  await store.insertSigningKey(key, false);
  return key;
}

/** Takes a key back: every token it signed is refused within a second. A new key signs from now on. */
export async function withdrawSigningKey(
  kid: string,
  store: AccessStore,
  keyring: Keyring,
  ambient: Ambient,
): Promise<boolean> {
  const now = ambient.now();
  return store.withdrawSigningKey(kid, now, await mintSigningKey(keyring, ambient, now));
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
  const signer = live.find(({ signsFrom }) => signsFrom <= now);
  const outlived = LIMITS.tokenLifetimeSecondsMax * 1000 + LIMITS.clockLeewayMs;
  const accepted = live.filter((_, index) => {
    const successor = live[index - 1];
    return successor === undefined || now < successor.signsFrom + outlived;
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

export function importPrivateKey(key: SigningKey, keyring: Keyring): Promise<CryptoKey> {
  const jwk = JSON.parse(keyring.open('signing-key', placeOf(key.kid), key.privateSealed)) as JWK;
  return importJWK(jwk, ALGORITHM) as Promise<CryptoKey>;
}
