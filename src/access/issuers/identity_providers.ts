import { z } from 'zod';
import type { Clock } from '../../model/id.ts';
import { parseIpAddress, wideSubnet } from '../../model/ip_address.ts';
import { LIMITS } from '../../model/limits.ts';
import { email } from '../../model/text/folding.ts';
import type { JsonObject } from '../../model/text/json_object.ts';
import { text } from '../../model/text/text.ts';
import { openTokenBuckets } from '../../model/token_buckets.ts';
import type { GuardedFetch } from '../outbound/guarded_fetch.ts';
import type { GuardedForm } from '../outbound/guarded_post.ts';
import { openSlots } from '../outbound/slots.ts';
import {
  exchangeCode,
  openSignInDeadline,
  type ReceivedCode,
  readUserinfo,
  verifyIdToken,
} from './code_flow.ts';
import { openIssuerKeys } from './issuer_keys.ts';
import { ASYMMETRIC } from './issuers_file.ts';
import { openProviderMetadata, type ProviderMetadata } from './provider_metadata.ts';

/** A person as an OpenID provider describes them. Every value is valid for the member of a user that has its name. */
export interface OidcIdentity {
  readonly issuer: string;
  readonly subject: string;
  readonly email: string | undefined;
  readonly isEmailVerified: boolean;
  readonly names: Readonly<Partial<Record<(typeof NAMES)[number], string>>>;
  /** RFC 8176. */
  readonly amr: readonly string[] | undefined;
}

/** `code_refused`: used, expired or unknown. `id_token_refused`: or its userinfo. `unavailable`: the provider fails. */
export type IdentityResult = OidcIdentity | 'code_refused' | 'id_token_refused' | 'unavailable';

type Failure<T extends (...parameters: never) => unknown> = Extract<Awaited<ReturnType<T>>, string>;
type IdentityFailure = Failure<
  Provider['metadata'] | typeof exchangeCode | typeof verifyIdToken | typeof readUserinfo
>;

/** What the operator learns. */
type IdentityOutcome = Exclude<IdentityFailure, 'code_refused'> | 'answered';

/** A client of a provider, and what the operator is told of the provider. */
interface IdentityRequest {
  readonly issuer: string;
  readonly clientId: string;
  /** Called with the outcome for this client, `answered` or a failure, when it differs from the previous one. */
  readonly note?: (outcome: IdentityOutcome) => void;
}

interface CodeRequest extends IdentityRequest, ReceivedCode {
  readonly clientSecret: string;
  readonly nonce: string;
  /** The address of the end user, or the client that sent the request: has `providerCodesPerCallerMax` slots. */
  readonly caller: string;
}

interface IdTokenRequest extends IdentityRequest {
  readonly idToken: string;
  readonly nonce: string | undefined;
}

interface Outbound {
  readonly fetchDocument: GuardedFetch;
  readonly postForm: GuardedForm;
  readonly clock: Pick<Clock, 'now' | 'monotonic'>;
  /** Sends no requests: every provider is unavailable. */
  readonly offline: boolean;
}

type Provider = ReturnType<typeof openProvider>;

/** The providers of OIDC profiles. They are opened at their first use; of more than `identityProvidersMax` the least recently used leaves. */
export function openIdentityProviders({ fetchDocument, postForm, clock, offline }: Outbound) {
  const providers = new Map<string, Provider>();
  const outcomes = new Map<string, IdentityOutcome>();
  const slots = openSlots(LIMITS.providerCodesAtOnceMax, LIMITS.providerCodesPerCallerMax);
  // Outlives the providers: strangers can visit so many that each leaves before it is used again.
  const reads = openTokenBuckets({ requests: 1, seconds: LIMITS.issuerKeysPauseMs / 1000 }, clock.monotonic);

  function providerOf(issuer: string): Provider | undefined {
    const known = providers.get(issuer);
    if (offline || (!known && reads.peek(issuer).isExhausted)) return undefined;
    const onRead = () => reads.take(issuer);
    const provider = known ?? openProvider(issuer, { fetchDocument, clock, onRead });
    providers.delete(issuer);
    keep(providers, issuer, provider);
    return provider;
  }

  /** Reports an outcome if it is another than before. */
  function report({ issuer, clientId, note }: IdentityRequest, outcome: IdentityOutcome): void {
    const client = JSON.stringify([issuer, clientId]);
    if (!note || outcome === (outcomes.get(client) ?? 'answered')) return;
    outcomes.delete(client);
    keep(outcomes, client, outcome);
    note(outcome);
  }

  /** Returns the result for the caller. */
  function resultOf(request: IdentityRequest, found: OidcIdentity | IdentityFailure): IdentityResult {
    if (found === 'code_refused') return found;
    report(request, typeof found === 'string' ? found : 'answered');
    if (typeof found === 'object' || found === 'id_token_refused') return found;
    return found === 'userinfo_refused' ? 'id_token_refused' : 'unavailable';
  }

  async function exchange(provider: Provider, request: CodeRequest): Promise<OidcIdentity | IdentityFailure> {
    const { issuer: namedBy, clientId, nonce } = request;
    const leftMs = openSignInDeadline(clock);
    const read = await provider.metadata();
    if (typeof read === 'string') return read;
    const tokens = await exchangeCode(request, read, request, { postForm, namedBy, msMax: leftMs() });
    if (typeof tokens === 'string') return tokens;
    const { idToken: token, accessToken } = tokens;
    const times = { now: clock.now(), msMax: leftMs() };
    const claims = await verifyIdToken(provider, { token, clientId, nonce }, times);
    if (typeof claims === 'string') return claims;
    if (emailIn(claims)) return identityOf(namedBy, claims);
    const from = { accessToken, subject: claims.sub };
    const userinfo = await readUserinfo(read, from, { fetchDocument, namedBy, msMax: leftMs() });
    return typeof userinfo === 'string' ? userinfo : identityOf(namedBy, claims, userinfo);
  }

  return {
    /** What sign-in needs of a provider; undefined if its document is unusable or cannot be read. */
    async metadata(
      issuer: string,
      client: Omit<IdentityRequest, 'issuer'> = { clientId: '' },
    ): Promise<ProviderMetadata | undefined> {
      const read = await providerOf(issuer)?.metadata();
      if (typeof read === 'object') return read;
      if (read) report({ issuer, ...client }, read);
      return undefined;
    },
    /** Exchanges a code for the person who signed in. Rejects only with Fault `overloaded`. */
    async identifyByCode(request: CodeRequest): Promise<IdentityResult> {
      const address = parseIpAddress(request.caller);
      const release = slots.take(address ? wideSubnet(address) : request.caller, request.issuer);
      try {
        const provider = providerOf(request.issuer);
        return provider ? resultOf(request, await exchange(provider, request)) : 'unavailable';
      } finally {
        release();
      }
    },
    /** The person in an ID token of at most `idTokenAgeMsMax`, which the caller received with this nonce. Never rejects. */
    async identifyByToken(request: IdTokenRequest): Promise<IdentityResult> {
      const { issuer, clientId, idToken: token, nonce } = request;
      const provider = providerOf(issuer);
      if (!provider) return 'unavailable';
      const times = { now: clock.now(), msMax: LIMITS.outboundMsMax };
      const claims = await verifyIdToken(provider, { token, clientId, nonce }, times);
      // Apps of strangers send tokens, so a refused one is no failure of the provider.
      if (claims === 'id_token_refused') return claims;
      if (claims === 'keys_unreadable') return resultOf(request, claims);
      const ageMs = times.now - Number(claims.iat) * 1000;
      return ageMs > LIMITS.idTokenAgeMsMax
        ? 'id_token_refused'
        : resultOf(request, identityOf(issuer, claims));
    },
  };
}

/** Adds to a map of at most `identityProvidersMax`; the first entry leaves for another. */
function keep<T>(map: Map<string, T>, key: string, value: T): void {
  map.set(key, value);
  if (map.size > LIMITS.identityProvidersMax) map.delete(map.keys().next().value as string);
}

/** `onRead` is called before the document is read, from which both sign-in and keys take their URLs. */
function openProvider(
  issuer: string,
  { fetchDocument, clock, onRead }: Pick<Outbound, 'fetchDocument' | 'clock'> & { onRead: () => void },
) {
  const readDocument: GuardedFetch = (url) => {
    onRead();
    return fetchDocument(url);
  };
  const { metadata, locateKeySet: locate } = openProviderMetadata(issuer, readDocument, clock);
  const source = { name: issuer, issuer, jwksUri: undefined };
  const keys = openIssuerKeys(source, { fetchDocument, clock, locate, note: () => undefined });
  return { metadata, keys, issuer: { issuer, algorithms: [...ASYMMETRIC] } };
}

const NAMES = ['name', 'given_name', 'middle_name', 'family_name'] as const;
const NAME = text(255);
const EMAIL = email();
const AMR = z.array(z.string().max(32)).max(8);

/** A usable address, with what the same document says of it. */
function emailIn(claims: JsonObject): Pick<OidcIdentity, 'email' | 'isEmailVerified'> | undefined {
  const { email_verified: verified } = claims;
  const { data } = EMAIL.safeParse(claims.email);
  return data === undefined
    ? undefined
    : { email: data, isEmailVerified: verified === true || verified === 'true' };
}

/** The person in these claims; what the ID token leaves out is in `userinfo`. */
function identityOf(issuer: string, idToken: JsonObject, userinfo: JsonObject = {}): OidcIdentity {
  const names = NAMES.flatMap((name) => {
    const usable = [idToken, userinfo].map((claims) => NAME.safeParse(claims[name]).data).find(Boolean);
    return usable === undefined ? [] : [[name, usable]];
  });
  return {
    issuer,
    subject: String(idToken.sub),
    ...(emailIn(idToken) ?? emailIn(userinfo) ?? { email: undefined, isEmailVerified: false }),
    names: Object.fromEntries(names),
    amr: AMR.safeParse(idToken.amr).data,
  };
}
