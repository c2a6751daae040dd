import type { Clock } from '../../domain/id.ts';
import { siteOf } from '../../domain/ip_address.ts';
import { type Buckets, openBuckets, type Rate, type Standing, shareOf } from '../../domain/token_buckets.ts';
import type { Call, RateHeaders } from '../pipeline/call.ts';
import { faultReply, type Reply } from './reply.ts';

/** How much a caller may ask for; what is undefined is not limited. */
export interface RateSettings {
  readonly perAddress: Rate | undefined;
  readonly perClient: Rate | undefined;
  /** Refused tokens and client credentials of an address. */
  readonly badTokens: Rate | undefined;
  /** Each holds its part of every rate. */
  readonly processes: number;
}

/** Counts a call by something of it. Answers 429 where there were too many. */
export type CountCall = (call: Call) => Reply | undefined;

export interface RateLimits {
  /** Counts a request of its address. Undefined where that is not limited. */
  readonly address: CountCall | undefined;
  /** Counts a request of a client, whose identifier is given. Undefined where that is not limited. */
  readonly client: ((call: Call, clientId: string) => Reply | undefined) | undefined;
  /** Undefined where that is not limited. */
  readonly badCredentials: BadCredentialLimit | undefined;
}

/** Refused tokens and credentials, by address (decision 0030). */
export interface BadCredentialLimit {
  /** Asked before a token or secret is looked at. */
  readonly admit: CountCall;
  /** Must be called where it was refused. */
  countFailure(call: Call): void;
}

export const UNLIMITED: RateLimits = { address: undefined, client: undefined, badCredentials: undefined };

export function openRateLimits(settings: RateSettings, { monotonic }: Clock): RateLimits {
  const { perAddress, perClient, badTokens, processes } = settings;
  const policies: string[] = [];
  let policy = '';

  function limiter(
    name: string,
    rate: Rate | undefined,
    takeOf: (buckets: Buckets) => (call: Call, clientId: string) => Standing,
  ): ((call: Call, clientId?: string) => Reply | undefined) | undefined {
    if (!rate) return undefined;
    const share = shareOf(rate, processes);
    const take = takeOf(openBuckets(share, monotonic));
    policies.push(`"${name}";q=${share.requests};w=${share.seconds}`);
    policy = policies.join(', ');
    const words = rateLimitWriter(name);
    const headersOf = headerJoiner(() => policy);
    return (call, clientId = '') => {
      const standing = take(call, clientId);
      call.rateHeaders = headersOf(call.rateHeaders, words(standing));
      return standing.isSpent ? rateLimited(standing) : undefined;
    };
  }

  return {
    address: limiter('address', perAddress, byAddress),
    client: limiter('client', perClient, byClient),
    badCredentials: badTokens && badCredentialLimit(openBuckets(shareOf(badTokens, processes), monotonic)),
  };
}

const byClient =
  ({ take }: Buckets) =>
  (_: Call, clientId: string) =>
    take(clientId);

/** Requests with the same credentials in a row that are counted for one address, before it is read again. */
const ADDRESS_USES_MAX = 64;
/** At most one in so many of the requests that are left: where there is little, every address is read. */
const ADDRESS_USES_PART = 64;

/** Reading the address of a socket costs more than everything else here (decision 0040). */
function byAddress({ take }: Buckets): (call: Call) => Standing {
  let [lastCredentials, site, usesLeft] = ['', '', 0];
  return (call) => {
    const credentials = call.authorization();
    if (credentials === null) return take(siteOfCall(call));
    const isKnown = usesLeft > 0 && credentials === lastCredentials;
    if (!isKnown) [lastCredentials, site] = [credentials, siteOfCall(call)];
    const standing = take(site);
    usesLeft = isKnown
      ? usesLeft - 1
      : Math.min(ADDRESS_USES_MAX, Math.floor(standing.remaining / ADDRESS_USES_PART)) - 1;
    return standing;
  };
}

function badCredentialLimit(buckets: Buckets): BadCredentialLimit {
  return {
    admit(call) {
      const standing = buckets.look(siteOfCall(call));
      return standing.isSpent ? rateLimited(standing) : undefined;
    },
    countFailure(call) {
      buckets.take(siteOfCall(call));
    },
  };
}

/** Those whose connection tells no address are one caller together. */
function siteOfCall(call: Call): string {
  const address = call.address();
  return address === undefined ? '' : siteOf(address);
}

/** As draft-ietf-httpapi-ratelimit-headers has it: what is left, and in how many seconds there is more. */
function rateLimitWriter(name: string): (standing: Standing) => string {
  let [left, seconds, words] = [-1, -1, ''];
  return ({ remaining, msToNext }) => {
    const toldLeft = roundedDown(remaining);
    const toldSeconds = Math.ceil(msToNext / 1000);
    if (toldLeft !== left || toldSeconds !== seconds) {
      [left, seconds] = [toldLeft, toldSeconds];
      words = `"${name}";r=${left};t=${seconds}`;
    }
    return words;
  };
}

/** At most a 64th less, and exact below 128: where there is plenty, text that changes costs more than to count. */
function roundedDown(count: number): number {
  const step = 2 ** Math.max(0, 25 - Math.clz32(count));
  return count - (count % step);
}

/** The headers that tell these words behind what was told before; the last ones are kept. */
function headerJoiner(policyOf: () => string) {
  let last:
    | { readonly before: RateHeaders | undefined; readonly words: string; readonly headers: RateHeaders }
    | undefined;
  return (before: RateHeaders | undefined, words: string): RateHeaders => {
    if (last === undefined || last.before !== before || last.words !== words) {
      const RateLimit = before === undefined ? words : `${before.RateLimit}, ${words}`;
      last = { before, words, headers: { 'RateLimit-Policy': policyOf(), RateLimit } };
    }
    return last.headers;
  };
}

function rateLimited({ msToNext }: Standing): Reply {
  return faultReply('rate_limited', { 'Retry-After': String(Math.max(1, Math.ceil(msToNext / 1000))) });
}
