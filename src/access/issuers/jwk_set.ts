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

/** Reads the key set of an issuer (RFC 7517); its URL is configured or in the discovery document, which `discover` reads. */
export async function readKeySet(
  { issuer, jwksUri }: Pick<ExternalIssuer, 'issuer' | 'jwksUri'>,
  fetch: GuardedFetch,
  discover = async () => jwksUriIn(await fetch(discoveryUrl(issuer)), issuer),
): Promise<ReadonlyMap<string | undefined, IssuerKey> | KeySetFailure> {
  const found = jwksUri === undefined ? await discover() : { url: jwksUri };
  if (typeof found === 'string') return found;
  const fetched = await fetch(found.url, { namedBy: jwksUri === undefined ? issuer : undefined });
  if (fetched.kind !== 'document') return fetched.kind;
  return verificationKeysOf(fetched.document) ?? 'no_key_set';
}

/** Where the discovery document of an issuer is (OpenID Connect Discovery 1.0, 4). */
export const discoveryUrl = (issuer: string): string =>
  `${issuer.replace(/\/$/, '')}/.well-known/openid-configuration`;

/** The `jwks_uri` of the discovery document, whose `issuer` must match exactly (OpenID Connect Discovery 1.0, 4.3). */
export function jwksUriIn(fetched: FetchResult, issuer: string): { readonly url: string } | KeySetFailure {
  if (fetched.kind !== 'document') return fetched.kind;
  const { issuer: claimed, jwks_uri: url } = fetched.document;
  if (claimed !== issuer) return 'issuer_differs';
  return typeof url === 'string' ? { url } : 'no_key_set';
}

/**
 * The signing keys of a key set by `kid`, and the only one of a set under undefined as well, for tokens without `kid`;
 * undefined if it is no key set, or has too many keys.
 */
function verificationKeysOf({ keys }: JsonObject): ReadonlyMap<string | undefined, IssuerKey> | undefined {
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
