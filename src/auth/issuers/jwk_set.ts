import { type CryptoKey, importJWK, type JWK } from 'jose';
import { LIMITS } from '../../domain/limits.ts';
import type { JsonObject } from '../tokens/unique_key_json.ts';
import type { ExternalIssuer } from './issuers_file.ts';

/** What fetching a document came to. */
export type FetchedDocument =
  | { readonly kind: 'document'; readonly document: JsonObject }
  | { readonly kind: 'unreachable' | 'not_json' };

/** A public key of an issuer. */
export interface IssuerKey {
  readonly kid: string;
  /** What it was read from: the same key of a later set is the same. */
  readonly text: string;
  /** Rejects where the key is none of this algorithm. */
  forAlgorithm(algorithm: string): Promise<CryptoKey>;
}

export type KeySetFailure = 'unreachable' | 'issuer_differs' | 'no_key_set';

/** Reads the key set of an issuer (RFC 7517), by its discovery document where nobody says where it is. */
export async function readKeySet(
  issuer: Pick<ExternalIssuer, 'issuer' | 'jwksUri'>,
  fetch: (url: string) => Promise<FetchedDocument>,
): Promise<ReadonlyMap<string, IssuerKey> | KeySetFailure> {
  const found = issuer.jwksUri === undefined ? await discover(issuer.issuer, fetch) : { url: issuer.jwksUri };
  if (typeof found === 'string') return found;
  const fetched = await fetch(found.url);
  if (fetched.kind === 'unreachable') return 'unreachable';
  return (fetched.kind === 'document' ? verificationKeysOf(fetched.document) : undefined) ?? 'no_key_set';
}

/** Where the discovery document says the keys are; its issuer must be the one that was asked, letter for letter. */
async function discover(
  issuer: string,
  fetch: (url: string) => Promise<FetchedDocument>,
): Promise<{ readonly url: string } | KeySetFailure> {
  const fetched = await fetch(`${issuer.replace(/\/$/, '')}/.well-known/openid-configuration`);
  if (fetched.kind !== 'document') return fetched.kind === 'unreachable' ? 'unreachable' : 'no_key_set';
  const { issuer: claimed, jwks_uri: url } = fetched.document;
  if (claimed !== issuer) return 'issuer_differs';
  return typeof url === 'string' ? { url } : 'no_key_set';
}

/** Its keys that may sign, by their names; undefined where this is no set, or one of too many keys. */
function verificationKeysOf({ keys }: JsonObject): ReadonlyMap<string, IssuerKey> | undefined {
  if (!Array.isArray(keys) || keys.length > LIMITS.issuerKeysMax) return undefined;
  const found = new Map<string, IssuerKey>();
  for (const each of keys) {
    const key = verificationKeyOf(each);
    // Of two keys of one name the first counts, as it stands there.
    if (key && !found.has(key.kid)) found.set(key.kid, key);
  }
  return found;
}

/** The public members of a key that may sign, and no others: `oct` keys are secrets that somebody published. */
function verificationKeyOf(value: unknown): IssuerKey | undefined {
  const { kid, kty, use, alg, key_ops: operations, n, e, crv, x, y } = (value ?? {}) as JsonObject;
  const mayVerify = operations === undefined || (Array.isArray(operations) && operations.includes('verify'));
  if (typeof kid !== 'string' || !['RSA', 'EC', 'OKP'].includes(kty as string)) return undefined;
  if ((use !== undefined && use !== 'sig') || !mayVerify) return undefined;
  const text = JSON.stringify({ kty, alg, n, e, crv, x, y });
  const imported = new Map<string, Promise<CryptoKey>>();
  return {
    kid,
    text,
    async forAlgorithm(algorithm) {
      if (alg !== undefined && alg !== algorithm) throw new Error('the key is for another algorithm');
      const key =
        imported.get(algorithm) ?? (importJWK(JSON.parse(text) as JWK, algorithm) as Promise<CryptoKey>);
      imported.set(algorithm, key);
      return key;
    },
  };
}
