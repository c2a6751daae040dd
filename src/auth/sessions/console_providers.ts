import { jwtVerify } from 'jose';
import { overloaded } from '../../domain/fault.ts';
import type { Clock } from '../../domain/id.ts';
import { LIMITS } from '../../domain/limits.ts';
import type { Realms, Scopes } from '../../domain/principal.ts';
import { text } from '../../domain/text/text.ts';
import type { FetchDocument } from '../issuers/issuer_keys.ts';
import { type ConsoleClient, typeOf } from '../issuers/issuers_file.ts';
import { openProviderMetadata, type ProviderMetadata } from '../issuers/provider_metadata.ts';
import type { Keyring } from '../keys/keyring.ts';
import { rightsOf } from '../tokens/claim_rights.ts';
import { actorOf, type KnownIssuer } from '../tokens/external_tokens.ts';
import { readHeader, readParts, readSubject } from '../tokens/issued_token.ts';
import type { JsonObject } from '../tokens/sole_members.ts';

/** Sends a form to another server, in bounded time and size, and never rejects. */
export type PostForm = (
  url: string,
  form: Readonly<Record<string, string>>,
  headers: Readonly<Record<string, string>>,
) => Promise<
  | { readonly kind: 'answered'; readonly status: number; readonly document: JsonObject | undefined }
  | { readonly kind: 'unreachable' }
>;

/** What a page needs to send somebody to a provider (OpenID Connect Core 1.0, 3.1.2.1). */
export interface Departure {
  readonly authorizationEndpoint: string;
  readonly clientId: string;
  readonly issuer: string;
  readonly scope: string;
  readonly redirectUri: string;
}

/** What a page brings back from there. */
export interface Return {
  readonly code: string;
  readonly codeVerifier: string;
  readonly nonce: string;
  /** The parameter `iss` (RFC 9207), where there was one. */
  readonly iss: string | undefined;
}

/** Somebody whom a provider vouches for. */
export interface Person {
  readonly actor: string;
  readonly label: string;
  readonly subject: string;
  readonly scopes: Scopes;
  readonly realms: Realms;
}

/** `refused`: what was brought does not hold. `unavailable`: the provider does not answer as it should. */
export type Arrival = Person | 'refused' | 'unavailable';

/** An OpenID provider by which one signs in to the console. */
export interface ConsoleProvider {
  readonly name: string;
  depart(): Promise<Departure | undefined>;
  /** Exchanges the code, and checks whom it is about. Rejects with Fault `overloaded` and no other. */
  arrive(back: Return): Promise<Arrival>;
}

interface Means {
  readonly fetchDocument: FetchDocument;
  readonly postForm: PostForm;
  readonly keyring: Pick<Keyring, 'digest'>;
  readonly clock: Pick<Clock, 'now' | 'monotonic'>;
  /** The address of the console. */
  readonly redirectUri: string;
  /** Told how a provider answered, where that differs from the time before: the operator can mend it, the page cannot. */
  readonly note: (name: string, outcome: Outcome) => void;
}

export type ProviderTrouble =
  | 'metadata_unusable'
  | 'token_endpoint_failed'
  | 'no_id_token'
  | 'id_token_refused';

type Outcome = ProviderTrouble | 'answered';

/** The providers among these issuers. */
export function openConsoleProviders(
  known: Iterable<KnownIssuer>,
  means: Means,
): ReadonlyMap<string, ConsoleProvider> {
  const providers = [...known].flatMap(({ issuer, keys }) =>
    issuer.console ? [openProvider({ issuer, keys }, issuer.console, means)] : [],
  );
  return new Map(providers.map((provider) => [provider.name, provider]));
}

function openProvider(known: KnownIssuer, client: ConsoleClient, means: Means): ConsoleProvider {
  const { issuer } = known;
  const { redirectUri } = means;
  const metadata = openProviderMetadata(issuer.issuer, means);
  let last: Outcome = 'answered';
  let underWay = 0;

  function note(outcome: Outcome): void {
    if (outcome !== last) means.note(issuer.name, outcome);
    last = outcome;
  }

  async function arrive({ iss, nonce, ...back }: Return): Promise<Arrival> {
    const read = await metadata();
    if (!read) {
      note('metadata_unusable');
      return 'unavailable';
    }
    // Of whom the answer is (RFC 9207, 2.4): asked before the code is sent anywhere.
    if (iss === undefined ? read.saysIssuer : iss !== issuer.issuer) return 'refused';
    const idToken = await exchange({ read, client, redirectUri, ...back }, means.postForm);
    if (idToken === 'refused') return 'refused';
    if (idToken === 'token_endpoint_failed' || idToken === 'no_id_token') {
      note(idToken);
      return 'unavailable';
    }
    return identify({ token: idToken.token, nonce });
  }

  /** Whom an ID token is about. */
  async function identify(brought: { readonly token: string; readonly nonce: string }): Promise<Arrival> {
    const claims = await holding(known, client, brought, means.clock.now());
    note(claims === 'refused' ? 'id_token_refused' : 'answered');
    if (typeof claims === 'string') return claims;
    const subject = String(claims.sub);
    return {
      actor: actorOf(issuer, subject, means.keyring),
      label: labelOf(claims, client) ?? subject,
      subject,
      ...rightsOf(claims, issuer.rights),
    };
  }

  return {
    name: issuer.name,
    async depart() {
      const read = await metadata();
      if (!read) note('metadata_unusable');
      return (
        read && {
          authorizationEndpoint: read.authorizationEndpoint,
          clientId: client.clientId,
          issuer: issuer.issuer,
          scope: client.scope,
          redirectUri,
        }
      );
    },
    async arrive(back) {
      // Who sends a code may be anybody, and each holds a connection for as long as the provider takes.
      if (underWay >= LIMITS.providerCodesAtOnceMax) throw overloaded('PLACES_TAKEN');
      underWay += 1;
      try {
        return await arrive(back);
      } finally {
        underWay -= 1;
      }
    },
  };
}

interface Exchanging {
  readonly read: ProviderMetadata;
  readonly client: ConsoleClient;
  readonly redirectUri: string;
  readonly code: string;
  readonly codeVerifier: string;
}

type Exchanged = { readonly token: string } | 'refused' | 'token_endpoint_failed' | 'no_id_token';

/** OpenID Connect Core 1.0, 3.1.3.1, with the verifier of RFC 7636, 4.5. */
async function exchange(
  { read, client, redirectUri, code, codeVerifier }: Exchanging,
  postForm: PostForm,
): Promise<Exchanged> {
  const { clientId, clientSecret } = client;
  const form = {
    grant_type: 'authorization_code',
    code,
    redirect_uri: redirectUri,
    code_verifier: codeVerifier,
  };
  const answer =
    read.takes === 'client_secret_basic'
      ? await postForm(read.tokenEndpoint, form, { Authorization: basic(clientId, clientSecret) })
      : await postForm(read.tokenEndpoint, { ...form, client_id: clientId, client_secret: clientSecret }, {});
  if (answer.kind !== 'answered') return 'token_endpoint_failed';
  const { status, document = {} } = answer;
  if (status === 400 && document.error === 'invalid_grant') return 'refused';
  if (status !== 200) return 'token_endpoint_failed';
  return typeof document.id_token === 'string' ? { token: document.id_token } : 'no_id_token';
}

/** RFC 6749, 2.3.1: both halves are form-encoded before they are joined. */
function basic(clientId: string, clientSecret: string): string {
  const encoded = (part: string) => new URLSearchParams({ '': part }).toString().slice(1);
  return `Basic ${Buffer.from(`${encoded(clientId)}:${encoded(clientSecret)}`).toString('base64')}`;
}

/** The same as `verified`; jose says by what it throws why a token is none, and nobody is told. */
async function holding(...asked: Parameters<typeof verified>): ReturnType<typeof verified> {
  try {
    return await verified(...asked);
  } catch {
    return 'refused';
  }
}

/**
 * What an ID token says, where it holds (OpenID Connect Core 1.0, 3.1.3.7): of this issuer, for this client and nobody else,
 * with the nonce of the page that asked. Throws as jose does.
 */
async function verified(
  { issuer, keys }: KnownIssuer,
  { clientId }: ConsoleClient,
  { token, nonce }: { readonly token: string; readonly nonce: string },
  now: number,
): Promise<JsonObject | 'refused' | 'unavailable'> {
  const parts = token.length > LIMITS.idTokenBytesMax ? undefined : readParts(token);
  if (!parts) return 'refused';
  const { claims } = parts;
  // An access token says that it is one.
  const header = readHeader(parts.header, issuer.algorithms, (typ) => typ === undefined || isJwt(typ));
  const isFor = (audience: unknown) => audience === clientId;
  const { aud, azp } = claims;
  // Nobody else; that there is somebody, jose sees to.
  const isOurs = [aud].flat().every(isFor);
  if (!header || readSubject(claims, now) === undefined) return 'refused';
  if (!isOurs || (azp !== undefined && !isFor(azp)) || claims.nonce !== nonce) return 'refused';
  const key = await keys.find(header.kid);
  if (!key) return 'refused';
  if (key === 'unread') return 'unavailable';
  await jwtVerify(token, await key.forAlgorithm(header.algorithm), {
    issuer: issuer.issuer,
    audience: clientId,
    algorithms: [header.algorithm],
    clockTolerance: LIMITS.clockLeewayMs / 1000,
    currentDate: new Date(now),
  });
  return claims;
}

function isJwt(typ: unknown): boolean {
  return typeof typ === 'string' && typeOf(typ) === 'jwt';
}

const LABEL = text(255);

/** The first of the claims that name a person; an address that was not verified names nobody. */
function labelOf(claims: JsonObject, { person }: ConsoleClient): string | undefined {
  const names = person.filter((name) => name !== 'email' || claims.email_verified !== false);
  return names.map((name) => LABEL.safeParse(claims[name]).data).find((label) => label !== undefined);
}
