import type { Clock } from '../../model/id.ts';
import { LIMITS } from '../../model/limits.ts';
import type { JsonObject } from '../../model/text/json_object.ts';
import { isSafeUrl } from '../../model/text/text.ts';
import type { GuardedFetch } from '../outbound/guarded_fetch.ts';
import { discoveryUrl, type FetchFailure, jwksUriIn } from './jwk_set.ts';
import { openSharedRead } from './shared_read.ts';

/** The metadata of an OpenID provider that sign-in needs (OpenID Connect Discovery 1.0, 3). */
export interface ProviderMetadata {
  readonly authorizationEndpoint: string;
  readonly tokenEndpoint: string;
  /** The client authentication method of the token endpoint. */
  readonly authMethod: 'client_secret_basic' | 'client_secret_post';
  /** Authorization responses contain `iss` (RFC 9207, 3). */
  readonly sendsIssuer: boolean;
  readonly userinfoEndpoint: string | undefined;
  /** What the request for a code asks for: `openid`, and of e-mail address and names what the provider offers. */
  readonly scope: string;
}

type MetadataResult = ProviderMetadata | FetchFailure | 'metadata_unusable';

/**
 * Reads the discovery document on first use, and again when it is older than `issuerKeysFreshMs`; after a
 * failure at the earliest `issuerKeysPauseMs` later. While too many requests wait, or one for too
 * long, a document of up to `issuerKeysAgeMsMax` is used; without one it is `unreachable`.
 */
export function openProviderMetadata(
  issuer: string,
  fetchDocument: GuardedFetch,
  clock: Pick<Clock, 'monotonic'>,
) {
  let read: MetadataResult = 'unreachable';
  let keySet: ReturnType<typeof jwksUriIn> = 'unreachable';
  let readAt = Number.NEGATIVE_INFINITY;
  const reads = openSharedRead(async () => {
    const fetched = await fetchDocument(discoveryUrl(issuer));
    keySet = jwksUriIn(fetched, issuer);
    read = fetched.kind === 'document' ? metadataIn(fetched.document, issuer) : fetched.kind;
    readAt = clock.monotonic();
  });
  const isDue = () =>
    clock.monotonic() - readAt >=
    (typeof read === 'object' ? LIMITS.issuerKeysFreshMs : LIMITS.issuerKeysPauseMs);

  return {
    async metadata(): Promise<MetadataResult> {
      if (isDue()) await reads.wait();
      const isRecent = typeof read === 'object' && clock.monotonic() - readAt < LIMITS.issuerKeysAgeMsMax;
      return isRecent || !isDue() ? read : 'unreachable';
    },
    /** The URL of the key set, even in a document without what sign-in needs. */
    async discover() {
      if (isDue()) await reads.start();
      return keySet;
    },
  };
}

/** `issuer` must match exactly (OpenID Connect Discovery 1.0, 4.3). */
function metadataIn(document: JsonObject, issuer: string): MetadataResult {
  const {
    issuer: claimed,
    authorization_endpoint: authorizationEndpoint,
    token_endpoint: tokenEndpoint,
    userinfo_endpoint: userinfoEndpoint,
    scopes_supported: scopes = ['email', 'profile'],
    token_endpoint_auth_methods_supported: methods = ['client_secret_basic'],
    code_challenge_methods_supported: challenges = ['S256'],
    authorization_response_iss_parameter_supported: sendsIssuer,
  } = document;
  if (claimed !== issuer || !isEndpoint(authorizationEndpoint) || !isEndpoint(tokenEndpoint))
    return 'metadata_unusable';
  const authMethod = (['client_secret_basic', 'client_secret_post'] as const).find(
    (method) => Array.isArray(methods) && methods.includes(method),
  );
  const supportsPkce = Array.isArray(challenges) && challenges.includes('S256');
  if (!authMethod || !supportsPkce) return 'metadata_unusable';
  if (userinfoEndpoint !== undefined && !isEndpoint(userinfoEndpoint)) return 'metadata_unusable';
  const isOffered = (word: string) => Array.isArray(scopes) && scopes.includes(word);
  const scope = ['openid', ...['email', 'profile', 'name'].filter(isOffered)].join(' ');
  const endpoints = { authorizationEndpoint, tokenEndpoint, userinfoEndpoint };
  return { ...endpoints, authMethod, sendsIssuer: sendsIssuer === true, scope };
}

function isEndpoint(url: unknown): url is string {
  return typeof url === 'string' && isSafeUrl(url) && !url.includes('#');
}
