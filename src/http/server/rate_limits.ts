import type { Settings } from '../../app/config/parse.ts';
import type { Clock } from '../../model/id.ts';
import { clientSubnet, isInAny } from '../../model/ip_address.ts';
import type { ImplicitLimits, Principal } from '../../model/principal.ts';
import {
  type BucketState,
  openTokenBuckets,
  type Rate,
  ratePerProcess,
  rateText,
  type TokenBuckets,
} from '../../model/token_buckets.ts';
import type { Call, RateHeaders } from '../pipeline/call.ts';
import { faultReply, type Reply } from './reply.ts';

type RateSettings = Pick<Settings, 'addressRate' | 'clientRate' | 'badTokenRate' | 'grantRate' | 'processes'>;

/** Counts a call. Returns 429 if the limit is exceeded. */
export type CountCall = (call: Call) => Reply | undefined;

export type RateLimits = ReturnType<typeof openRateLimits>;

export const UNLIMITED: RateLimits = {
  address: undefined,
  caller: () => undefined,
  badCredentials: undefined,
  grants: undefined,
};

/** Every limit is undefined if it is off. Each process enforces its share of every rate. */
export function openRateLimits(settings: RateSettings, { monotonic }: Clock) {
  const { addressRate, clientRate, badTokenRate, grantRate, processes } = settings;
  const policies: string[] = [];
  let policy = '';
  const open = (rate: Rate) => openTokenBuckets(ratePerProcess(rate, processes), monotonic);

  function limiter(
    name: string,
    rate: Rate | undefined,
    takeOf: (buckets: TokenBuckets) => (call: Call, clientId: string) => BucketState,
  ): ((call: Call, clientId?: string) => Reply | undefined) | undefined {
    if (!rate) return undefined;
    const share = ratePerProcess(rate, processes);
    const take = takeOf(open(rate));
    policies.push(`"${name}";q=${share.requests};w=${share.seconds}`);
    policy = policies.join(', ');
    return (call, clientId = '') => {
      const state = take(call, clientId);
      call.rateHeaders = withItem(call.rateHeaders, policy, name, state);
      return refusalOf(state);
    };
  }

  const address: CountCall | undefined = limiter('address', addressRate, byAddress);
  const client = limiter(
    'client',
    clientRate,
    ({ take }) =>
      (_, clientId) =>
        take(clientId),
  );
  const grantBuckets = grantRate === 'off' ? undefined : open(grantRate);
  const idAlone = idAloneLimit(open);
  return {
    /** Counts a request by its address. */
    address,
    /** Counts a request by its caller: by the ID of a client alone at the rate of each address, others by their ID. */
    caller: (call: Call, { clientId, implicit }: Pick<Principal, 'clientId' | 'implicit'>) =>
      implicit ? idAlone(call, clientId, implicit) : client?.(call, clientId),
    badCredentials: badTokenRate === 'off' ? undefined : badCredentialLimit(open(badTokenRate)),
    /**
     * Counts a token request of an authenticated client, or a renewal of a console session. Other answers do not report this limit
     * in headers, because it does not concern them.
     */
    grants: grantBuckets && ((clientOrSessionId: string) => refusalOf(grantBuckets.take(clientOrSessionId))),
  };
}

/** Consecutive requests with the same credentials that are counted by one read of the address. */
const ADDRESS_USES_MAX = 64;
/** The batch is at most this part of the remaining requests: near the limit, every address is read. */
const ADDRESS_USES_PART = 64;

/**
 * Reads the address less often: that costs more than the rest
 * (docs/decisions/0017-overload-and-rates.md).
 */
function byAddress({ take }: TokenBuckets): (call: Call) => BucketState {
  let [lastCredentials, site, usesLeft] = ['', '', 0];
  return (call) => {
    const credentials = call.authorization;
    if (credentials === null) return take(siteOfCall(call));
    const isKnown = usesLeft > 0 && credentials === lastCredentials;
    if (!isKnown) [lastCredentials, site] = [credentials, siteOfCall(call)];
    const state = take(site);
    usesLeft = isKnown
      ? usesLeft - 1
      : Math.min(ADDRESS_USES_MAX, Math.floor(state.remaining / ADDRESS_USES_PART)) - 1;
    return state;
  };
}

/** Limits failed authentication attempts by address (docs/decisions/0017-overload-and-rates.md). */
function badCredentialLimit({ peek, take }: TokenBuckets) {
  return {
    /** Called before a token or secret is checked. Returns 429 if the limit is exceeded. */
    admit: (call: Call): Reply | undefined => refusalOf(peek(siteOfCall(call))),
    /** Must be called if it was rejected. */
    countFailure(call: Call): void {
      take(siteOfCall(call));
    },
  };
}

/** Buckets by client and address, for each rate that clients have. */
function idAloneLimit(open: (rate: Rate) => TokenBuckets) {
  const known = new Map<string, TokenBuckets>();
  return (call: Call, clientId: string, limits: ImplicitLimits): Reply | undefined => {
    const { ratePerAddress, storefronts } = limits;
    if (isInAny(call.address(), storefronts)) return undefined;
    const buckets = known.getOrInsertComputed(rateText(ratePerAddress), () => open(ratePerAddress));
    return refusalOf(buckets.take(`${clientId} ${siteOfCall(call)}`));
  };
}

/** Callers without an address share one bucket. */
function siteOfCall(call: Call): string {
  const address = call.address();
  return address === undefined ? '' : clientSubnet(address);
}

/**
 * Appends a `RateLimit` item (draft-ietf-httpapi-ratelimit-headers) to those of earlier limits: the remaining requests, and the
 * seconds until there is one more.
 */
function withItem(
  before: RateHeaders | undefined,
  policy: string,
  name: string,
  { remaining, msToNext }: BucketState,
): RateHeaders {
  const item = `"${name}";r=${remaining};t=${Math.ceil(msToNext / 1000)}`;
  return {
    'RateLimit-Policy': policy,
    RateLimit: before === undefined ? item : `${before.RateLimit}, ${item}`,
  };
}

function refusalOf({ isExhausted, msToNext }: BucketState): Reply | undefined {
  if (!isExhausted) return undefined;
  return faultReply('rate_limited', { 'Retry-After': String(Math.max(1, Math.ceil(msToNext / 1000))) });
}
