import { z } from 'zod';
import type { Clock } from '../../model/id.ts';
import { type IpAddress, wideSubnet } from '../../model/ip_address.ts';
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
  type ReceivedIdToken,
  readUserinfo,
  verifyIdToken,
} from './code_flow.ts';
import { openIssuerKeys } from './issuer_keys.ts';
import { ASYMMETRIC } from './issuers_file.ts';
import { openProviderMetadata } from './provider_metadata.ts';

/** A person as an OpenID provider describes them. Every value is valid for the member of a user that has its name. */
export interface OidcIdentity {
  readonly issuer: string;
  readonly subject: string;
  readonly email: string | undefined;
  readonly isEmailVerified: boolean;
  readonly names: Readonly<Partial<Record<(typeof NAMES)[number], string>>>;
  readonly amr: readonly string[] | undefined;
}

/** The person, or why there is none. */
export type IdentityResult = Awaited<ReturnType<ReturnType<typeof openIdentityProviders>['identifyByCode']>>;

/** Results that count against the caller; all others are failures of the provider. */
export const REFUSALS: readonly string[] = ['code_refused', 'id_token_refused', 'userinfo_refused'];

interface CodeRequest extends ReceivedCode {
  readonly issuer: string;
  readonly nonce: string;
  /** The address of the end user, if it is known: its network has `providerCodesPerCallerMax` slots. */
  readonly caller: IpAddress | undefined;
}

interface Outbound {
  readonly fetchDocument: GuardedFetch;
  readonly postForm: GuardedForm;
  readonly clock: Pick<Clock, 'now' | 'monotonic'>;
  readonly offline: boolean;
}

/** The providers of OIDC profiles. They are opened at their first use; of more than `identityProvidersMax` the least recently used leaves. */
export function openIdentityProviders({ fetchDocument, postForm, clock, offline }: Outbound) {
  const providers = new Map<string, ReturnType<typeof openProvider>>();
  const slots = openSlots(LIMITS.providerCodesAtOnceMax, LIMITS.providerCodesPerCallerMax);
  // Outlives the providers: strangers can visit so many that each leaves before it is used again.
  const reads = openTokenBuckets({ requests: 1, seconds: LIMITS.issuerKeysPauseMs / 1000 }, clock.monotonic);

  function openProvider(issuer: string) {
    const readMetadata: GuardedFetch = (url) => {
      reads.take(issuer);
      return fetchDocument(url);
    };
    const { metadata, discover } = openProviderMetadata(issuer, readMetadata, clock);
    const source = { name: issuer, issuer, jwksUri: undefined };
    const keys = openIssuerKeys(source, { fetchDocument, discover, clock, note: () => undefined });
    return { metadata, keys, issuer: { issuer, algorithms: [...ASYMMETRIC] } };
  }

  function providerOf(issuer: string) {
    const known = providers.get(issuer);
    if (offline || (!known && reads.peek(issuer).isExhausted)) return undefined;
    const provider = known ?? openProvider(issuer);
    providers.delete(issuer);
    providers.set(issuer, provider);
    if (providers.size > LIMITS.identityProvidersMax)
      providers.delete(providers.keys().next().value as string);
    return provider;
  }

  async function exchange(request: CodeRequest) {
    const { issuer: namedBy } = request;
    const leftMs = openSignInDeadline(clock);
    const provider = providerOf(namedBy);
    if (!provider) return 'unreachable';
    const read = await provider.metadata();
    if (typeof read === 'string') return read;
    const tokens = await exchangeCode(request, read, { postForm, namedBy, msMax: leftMs() });
    if (typeof tokens === 'string') return tokens;
    const { idToken, accessToken } = tokens;
    const times = { now: clock.now(), msMax: leftMs() };
    const claims = await verifyIdToken(provider, { ...request, idToken }, times);
    if (typeof claims === 'string') return claims;
    if (emailIn(claims)) return identityOf(claims);
    const from = { accessToken, subject: claims.sub };
    const userinfo = await readUserinfo(read, from, { fetchDocument, namedBy, msMax: leftMs() });
    return typeof userinfo === 'string' ? userinfo : identityOf(claims, userinfo);
  }

  return {
    /** What sign-in needs of a provider; undefined if its document is unusable or cannot be read. */
    async metadata(issuer: string) {
      const read = await providerOf(issuer)?.metadata();
      return typeof read === 'object' ? read : undefined;
    },
    /** Exchanges a code for the person who signed in. Rejects only with Fault `overloaded`. */
    async identifyByCode(request: CodeRequest) {
      const release = slots.take(request.caller && wideSubnet(request.caller), request.issuer);
      try {
        return await exchange(request);
      } finally {
        release();
      }
    },
    /** The person in an ID token of at most `idTokenAgeMsMax`, which the caller received with this nonce. Never rejects. */
    async identifyByToken(request: ReceivedIdToken & { readonly issuer: string }) {
      const provider = providerOf(request.issuer);
      if (!provider) return 'unreachable';
      const times = { now: clock.now(), msMax: LIMITS.outboundMsMax };
      const claims = await verifyIdToken(provider, request, times);
      if (typeof claims === 'string') return claims;
      const ageMs = times.now - Number(claims.iat) * 1000;
      return ageMs > LIMITS.idTokenAgeMsMax ? 'id_token_refused' : identityOf(claims);
    },
  };
}

const NAMES = ['name', 'given_name', 'middle_name', 'family_name'] as const;
const [NAME, EMAIL] = [text(255), email()];
const AMR = z.array(z.string().max(32)).max(8);

/** A usable address, with what the same document says of it. */
function emailIn({ email, email_verified: verified }: JsonObject) {
  const { data } = EMAIL.safeParse(email);
  return data && { email: data, isEmailVerified: verified === true || verified === 'true' };
}

/** The person in these claims; what the ID token leaves out is in `userinfo`. */
function identityOf(idToken: JsonObject, userinfo: JsonObject = {}): OidcIdentity {
  const names = NAMES.map((name) => {
    const usable = [idToken, userinfo].map((claims) => NAME.safeParse(claims[name]).data);
    return [name, usable.find(Boolean)] as const;
  });
  return {
    issuer: String(idToken.iss),
    subject: String(idToken.sub),
    ...(emailIn(idToken) || emailIn(userinfo) || { email: undefined, isEmailVerified: false }),
    names: Object.fromEntries(names.filter(([, usable]) => usable !== undefined)),
    amr: AMR.safeParse(idToken.amr).data,
  };
}
