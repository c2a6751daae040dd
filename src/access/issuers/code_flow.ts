import { LIMITS } from '../../model/limits.ts';
import type { JsonObject } from '../../model/text/json_object.ts';
import type { openGuardedForm } from '../outbound/guarded_post.ts';
import { verifyExternalJwt } from '../tokens/external_jwt.ts';
import type { ConfiguredIssuer } from './issuer_keys.ts';
import { type ConsoleClient, normalizeTyp } from './issuers_file.ts';
import type { ProviderMetadata } from './provider_metadata.ts';

/** The code of an authorization response, and what the provider compares with the request for it. */
interface ReceivedCode {
  readonly code: string;
  readonly codeVerifier: string;
  readonly redirectUri: string;
}

interface ExchangeDeps {
  readonly postForm: ReturnType<typeof openGuardedForm>;
  /** The issuer whose metadata contains the token endpoint. */
  readonly namedBy: string;
}

/** OpenID Connect Core 1.0, 3.1.3.1, with the verifier of RFC 7636, 4.5. */
export async function exchangeCode(
  { code, codeVerifier, redirectUri }: ReceivedCode,
  read: ProviderMetadata,
  { clientId, clientSecret }: Pick<ConsoleClient, 'clientId' | 'clientSecret'>,
  { postForm, namedBy }: ExchangeDeps,
): Promise<{ readonly token: string } | 'refused' | 'token_endpoint_failed' | 'no_id_token'> {
  const form = {
    grant_type: 'authorization_code',
    code,
    redirect_uri: redirectUri,
    code_verifier: codeVerifier,
  };
  const [headers, members] =
    read.authMethod === 'client_secret_basic'
      ? [{ Authorization: basicCredentials(clientId, clientSecret) }, form]
      : [{}, { ...form, client_id: clientId, client_secret: clientSecret }];
  const answer = await postForm(read.tokenEndpoint, members, { headers, namedBy });
  if (answer.kind !== 'answered') return 'token_endpoint_failed';
  const { status, document = {} } = answer;
  if (status === 400 && document.error === 'invalid_grant') return 'refused';
  if (status !== 200) return 'token_endpoint_failed';
  return typeof document.id_token === 'string' ? { token: document.id_token } : 'no_id_token';
}

/** RFC 6749, 2.3.1: both halves are form-encoded before they are joined. */
function basicCredentials(clientId: string, clientSecret: string): string {
  const encoded = (part: string) => new URLSearchParams({ '': part }).toString().slice(1);
  return `Basic ${Buffer.from(`${encoded(clientId)}:${encoded(clientSecret)}`).toString('base64')}`;
}

/**
 * The claims of a valid ID token (OpenID Connect Core 1.0, 3.1.3.7): of this issuer, for this client alone,
 * with the nonce of the request.
 */
export async function verifyIdToken(
  known: ConfiguredIssuer,
  { clientId }: Pick<ConsoleClient, 'clientId'>,
  { token, nonce }: { readonly token: string; readonly nonce: string },
  now: number,
): Promise<JsonObject | 'refused' | 'unavailable'> {
  if (token.length > LIMITS.idTokenBytesMax) return 'refused';
  const isFor = (audience: unknown) => audience === clientId;
  const kind = {
    audience: clientId,
    // An access token has another `typ`.
    isType: (typ: unknown) => typ === undefined || (typeof typ === 'string' && normalizeTyp(typ) === 'jwt'),
    // No other audience; jose checks that there is one.
    isMeant: ({ aud, azp, nonce: sent }: JsonObject) =>
      [aud].flat().every(isFor) && (azp === undefined || isFor(azp)) && sent === nonce,
  };
  try {
    const verified = await verifyExternalJwt(known, token, kind, now);
    return verified === 'unread' ? 'unavailable' : (verified?.claims ?? 'refused');
  } catch {
    return 'refused';
  }
}
