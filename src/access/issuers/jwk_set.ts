import type { JWK } from 'jose';
import { LIMITS } from '../../model/limits.ts';
import type { JsonObject } from '../../model/text/json_object.ts';
import type { FetchResult, GuardedFetch } from '../outbound/guarded_fetch.ts';
import type { ExternalIssuer } from './issuers_file.ts';

export type FetchFailure = Exclude<FetchResult['kind'], 'document'>;

export interface IssuerKey {
  readonly kid: string | undefined;
  /** Its public members. jose imports them once for each object and algorithm. */
  readonly jwk: JWK;
}

export type KeySetFailure = FetchFailure | 'issuer_differs' | 'no_key_set';

/** The keys by `kid`. The only key of a set is under `undefined` as well, for tokens that name none. */
export type IssuerKeySet = ReadonlyMap<string | undefined, IssuerKey>;

/** Reads the URL of a key set from the discovery document. */
export type LocateKeySet = () => Promise<{ readonly url: string } | KeySetFailure>;

/** Reads the key set of an issuer (RFC 7517); its URL is configured or in the discovery document. */
export async function readKeySet(
  { issuer, jwksUri }: Pick<ExternalIssuer, 'issuer' | 'jwksUri'>,
  fetch: GuardedFetch,
  locate: LocateKeySet = () => discover(issuer, fetch),
): Promise<IssuerKeySet | KeySetFailure> {
  const found = jwksUri === undefined ? await locate() : { url: jwksUri };
  if (typeof found === 'string') return found;
  const fetched = await fetch(found.url, { namedBy: jwksUri === undefined ? issuer : undefined });
  if (fetched.kind !== 'document') return fetched.kind;
  return verificationKeysOf(fetched.document) ?? 'no_key_set';
}

async function discover(issuer: string, fetch: GuardedFetch): ReturnType<LocateKeySet> {
  const fetched = await fetch(`${issuer.replace(/\/$/, '')}/.well-known/openid-configuration`);
  return fetched.kind === 'document' ? keySetUrlIn(fetched.document, issuer) : fetched.kind;
}

/**
 * The `jwks_uri` of the discovery document, whose `issuer` must match exactly (OpenID Connect Discovery 1.0,
 * 4.3).
 */
export function keySetUrlIn({ issuer: claimed, jwks_uri: url }: JsonObject, issuer: string) {
  if (claimed !== issuer) return 'issuer_differs';
  return typeof url === 'string' ? { url } : 'no_key_set';
}

/** The signing keys of a key set; undefined if it is no key set, or has too many keys. */
function verificationKeysOf({ keys }: JsonObject): IssuerKeySet | undefined {
  if (!Array.isArray(keys) || keys.length > LIMITS.issuerKeysMax) return undefined;
  const found = keys.map(verificationKeyOf).filter((key) => key !== undefined);
  // Of two keys with one `kid` the first is used.
  const named = new Map(found.toReversed().map((key) => [key.kid, key]));
  const [only] = found;
  if (only && found.length === 1) named.set(undefined, only);
  else named.delete(undefined);
  return named;
}

/** Reads the public members of a signing key; rejects `oct` keys, which are published secrets. */
function verificationKeyOf(value: unknown): IssuerKey | undefined {
  const { kid, kty, use, alg, key_ops: operations, n, e, crv, x, y } = (value ?? {}) as JsonObject;
  const mayVerify = operations === undefined || (Array.isArray(operations) && operations.includes('verify'));
  if (kid !== undefined && typeof kid !== 'string') return undefined;
  if (!['RSA', 'EC', 'OKP'].includes(kty as string)) return undefined;
  if ((use !== undefined && use !== 'sig') || !mayVerify) return undefined;
  return { kid, jwk: { kty, alg, n, e, crv, x, y } as JWK };
}
