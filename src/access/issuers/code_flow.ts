import type { Clock } from '../../model/id.ts';
import { LIMITS } from '../../model/limits.ts';
import type { JsonObject } from '../../model/text/json_object.ts';
import { withTimeout } from '../../model/timeout.ts';
import type { GuardedFetch } from '../outbound/guarded_fetch.ts';
import type { GuardedForm } from '../outbound/guarded_post.ts';
import { type JwtIssuer, verifyExternalJwt } from '../tokens/external_jwt.ts';
import { normalizeTyp } from './issuers_file.ts';
import type { ProviderMetadata } from './provider_metadata.ts';

/** The code of an authorization response, and what the provider compares with the request for it. */
export interface ReceivedCode {
  readonly clientId: string;
  readonly clientSecret: string;
  readonly redirectUri: string;
  readonly code: string;
  readonly codeVerifier: string;
}

export interface ReceivedIdToken {
  readonly clientId: string;
  readonly idToken: string;
  /** That of the request; undefined if it had none. */
  readonly nonce: string | undefined;
}

/** `namedBy`: the issuer whose metadata contains the URL. */
type ProviderRequest = { readonly namedBy: string; readonly msMax: number };

/** Returns the milliseconds that are left to a sign-in: all its requests together have as long as one. */
export function openSignInDeadline({ monotonic }: Pick<Clock, 'monotonic'>): () => number {
  const endsAt = monotonic() + LIMITS.outboundMsMax;
  return () => Math.max(0, endsAt - monotonic());
}

/** OpenID Connect Core 1.0, 3.1.3.1, with the verifier of RFC 7636, 4.5. */
export async function exchangeCode(
  { clientId, clientSecret, redirectUri, code, codeVerifier }: ReceivedCode,
  { authMethod, tokenEndpoint }: ProviderMetadata,
  { postForm, ...request }: ProviderRequest & { readonly postForm: GuardedForm },
) {
  const grant = { grant_type: 'authorization_code', code, code_verifier: codeVerifier };
  const form = { ...grant, redirect_uri: redirectUri };
  const [headers, members] =
    authMethod === 'client_secret_basic'
      ? [{ Authorization: basicCredentials(clientId, clientSecret) }, form]
      : [{}, { ...form, client_id: clientId, client_secret: clientSecret }];
  const answer = await postForm(tokenEndpoint, members, { headers, ...request });
  if (!answer) return 'token_endpoint_failed';
  const { status, document = {} } = answer;
  // RFC 6749, 5.2 says 400; Auth0 answers 403.
  if ([400, 403].includes(status) && document.error === 'invalid_grant') return 'code_refused';
  if (status !== 200) return 'token_endpoint_failed';
  const { id_token: idToken, access_token: accessToken } = document;
  return typeof idToken === 'string' ? { idToken, accessToken } : 'no_id_token';
}

/** RFC 6749, 2.3.1: both halves are form-encoded before they are joined. */
function basicCredentials(clientId: string, clientSecret: string): string {
  const encoded = (part: string) => new URLSearchParams({ '': part }).toString().slice(1);
  return `Basic ${Buffer.from(`${encoded(clientId)}:${encoded(clientSecret)}`).toString('base64')}`;
}

/**
 * The claims of a valid ID token (OpenID Connect Core 1.0, 3.1.3.7): of this issuer, for this client alone,
 * with the nonce of the request. The keys may be read for `msMax`.
 */
export async function verifyIdToken(
  known: JwtIssuer,
  { clientId, idToken, nonce }: ReceivedIdToken,
  { now, msMax }: { readonly now: number; readonly msMax: number },
): Promise<JsonObject | 'id_token_refused' | 'keys_unreadable'> {
  if (idToken.length > LIMITS.idTokenBytesMax) return 'id_token_refused';
  const isFor = (audience: unknown) => audience === clientId;
  const kind = {
    audience: clientId,
    // An access token has another `typ`.
    isType: (typ: unknown) => typ === undefined || (typeof typ === 'string' && normalizeTyp(typ) === 'jwt'),
    // No other audience; jose checks that there is one.
    isMeant: ({ aud, azp, nonce: sent }: JsonObject) =>
      [aud].flat().every(isFor) && (azp === undefined || isFor(azp)) && sent === nonce,
    isIdToken: true,
  };
  try {
    const verifying = verifyExternalJwt(known, idToken, kind, now);
    const verified = await withTimeout(verifying, msMax, () => 'unread' as const);
    return verified === 'unread' ? 'keys_unreadable' : (verified?.claims ?? 'id_token_refused');
  } catch {
    return 'id_token_refused';
  }
}

/** What a header can hold; others are no tokens either (RFC 6750, 2.1). */
const BEARER_TOKEN = /^[\x21-\x7e]+$/;

/** The claims that a provider keeps out of its ID tokens (OpenID Connect Core 1.0, 5.3), as JSON; none without an endpoint. */
export async function readUserinfo(
  { userinfoEndpoint }: ProviderMetadata,
  { accessToken, subject }: { readonly accessToken: unknown; readonly subject: unknown },
  { fetchDocument, ...request }: ProviderRequest & { readonly fetchDocument: GuardedFetch },
): Promise<JsonObject | 'userinfo_failed' | 'userinfo_refused'> {
  if (userinfoEndpoint === undefined) return {};
  if (typeof accessToken !== 'string' || !BEARER_TOKEN.test(accessToken)) return {};
  const headers = { Authorization: `Bearer ${accessToken}` };
  const fetched = await fetchDocument(userinfoEndpoint, { headers, ...request });
  if (fetched.kind === 'not_json') return 'userinfo_refused';
  if (fetched.kind !== 'document') return 'userinfo_failed';
  return fetched.document.sub === subject ? fetched.document : 'userinfo_refused';
}
