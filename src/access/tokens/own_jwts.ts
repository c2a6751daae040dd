import { decodeProtectedHeader, type JWTPayload, jwtVerify, SignJWT } from 'jose';
import { attempt } from '../../model/attempt.ts';
import { Fault } from '../../model/fault.ts';
import type { Clock } from '../../model/id.ts';
import { LIMITS } from '../../model/limits.ts';
import { openImportedKeys } from '../keys/imported_keys.ts';
import type { Keyring } from '../keys/keyring.ts';
import { ALGORITHM, importPrivateKey, importPublicKey, type KeySet } from '../keys/signing.ts';
import type { SigningKey } from '../store/access.ts';
import { REFUSED_HEADERS } from './verified_tokens.ts';

/** A kind of JWT that this service issues. Its `typ` keeps it from being taken for another kind (RFC 8725, 3.11). */
export interface JwtKind {
  readonly type: string;
  readonly issuer: string;
  readonly audience: string;
  readonly requiredClaims: readonly string[];
}

/**
 * Three segments, the last an Ed25519 signature in canonical base64url: decoders ignore the unused bits of
 * the last character, and one token would have several spellings.
 */
const COMPACT = /^[\w-]+\.[\w-]+\.[\w-]{85}[AQgw]$/;

export type OwnJwts = ReturnType<typeof openOwnJwts>;

/** Signs and verifies JWTs by the signing keys of the service. */
export function openOwnJwts(keyring: Keyring, clock: Pick<Clock, 'now'>) {
  const privateKeys = openImportedKeys((key) => importPrivateKey(key, keyring));
  const publicKeys = openImportedKeys(importPublicKey);
  return {
    /** Rejects with Fault `unavailable` if no key can sign. */
    async sign({ type }: Pick<JwtKind, 'type'>, claims: JWTPayload, { signer }: KeySet): Promise<string> {
      if (!signer) throw new Fault('unavailable', [], new Error('no signing key'));
      return new SignJWT(claims)
        .setProtectedHeader({ alg: ALGORITHM, typ: type, kid: signer.kid })
        .sign(await privateKeys.get(signer));
    },
    /**
     * The claims of a JWT of this kind that has not expired, and the key that signed it; undefined for anything else. The cheap
     * checks come first.
     */
    async verify(kind: JwtKind, token: string, keys: KeySet) {
      const key = claimedKey(token, kind.type, keys);
      if (!key) return undefined;
      try {
        const { payload } = await jwtVerify(token, await publicKeys.get(key), {
          issuer: kind.issuer,
          audience: kind.audience,
          algorithms: [ALGORITHM],
          clockTolerance: LIMITS.clockLeewayMs / 1000,
          currentDate: new Date(clock.now()),
          requiredClaims: [...kind.requiredClaims],
        });
        return { payload, kid: key.kid };
      } catch {
        return undefined;
      }
    },
    /**
     * Loads the private keys in use ahead, so that this process can sign after the master key was changed.
     * Drops all other keys from memory.
     */
    loadSigningKeys(keys: readonly SigningKey[]): void {
      const inUse = keys.filter(({ withdrawnAt }) => withdrawnAt === undefined);
      const usable = inUse.filter(({ privateSealed }) => privateSealed.length > 0);
      publicKeys.retainOnly(inUse);
      privateKeys.retainOnly(usable);
      // A key that does not decrypt is reported when it is used.
      for (const key of usable) privateKeys.get(key).catch(() => undefined);
    },
  };
}

/** The key named by a token of this type. Cheap checks come first, before a signature is verified. */
function claimedKey(token: string, type: string, keys: KeySet): SigningKey | undefined {
  if (token.length > LIMITS.tokenBytesMax || !COMPACT.test(token)) return undefined;
  const header = attempt(() => decodeProtectedHeader(token));
  if (header?.alg !== ALGORITHM || header.typ !== type || typeof header.kid !== 'string') return undefined;
  if (REFUSED_HEADERS.some((name) => name in header)) return undefined;
  return keys.accepted.get(header.kid);
}
