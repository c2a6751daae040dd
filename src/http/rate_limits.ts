import type { Ambient } from '../domain/id.ts';
import { siteOf } from '../domain/ip_address.ts';
import { type Buckets, openBuckets, type Rate, type Standing, shareOf } from '../domain/token_buckets.ts';
import type { Call, RateHeaders } from './call.ts';
import { openPrepaid } from './prepaid.ts';
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
export type Count = (call: Call) => Reply | undefined;

export interface RateLimits {
  /** Counts a request of its address. Undefined where that is not limited. */
  readonly address: Count | undefined;
  /** Counts a request of a client, whose identifier is given. Undefined where that is not limited. */
  readonly client: ((call: Call, clientId: string) => Reply | undefined) | undefined;
  /** Undefined where that is not limited. */
  readonly guesses: Guesses | undefined;
}

/** Refused tokens and credentials, by address (decision 0030). */
export interface Guesses {
  /** Asked before a token or secret is looked at. */
  readonly admit: Count;
  /** Must be called where it was refused. */
  note(call: Call): void;
}

export const UNLIMITED: RateLimits = { address: undefined, client: undefined, guesses: undefined };

export function openRateLimits(settings: RateSettings, { monotonic, randomBytes }: Ambient): RateLimits {
  const { perAddress, perClient, badTokens, processes } = settings;
  const policies: string[] = [];
  let policy = '';

  function counting(
    name: string,
    rate: Rate | undefined,
    takerOf: (buckets: Buckets) => (call: Call, clientId: string) => Standing,
  ): ((call: Call, clientId?: string) => Reply | undefined) | undefined {
    if (!rate) return undefined;
    const share = shareOf(rate, processes);
    const take = takerOf(openBuckets(share, monotonic));
    policies.push(`"${name}";q=${share.requests};w=${share.seconds}`);
    policy = policies.join(', ');
    const words = telling(name);
    const headersOf = joining(() => policy);
    return (call, clientId = '') => {
      const standing = take(call, clientId);
      call.rateHeaders = headersOf(call.rateHeaders, words(standing));
      return standing.isSpent ? refusal(standing) : undefined;
    };
  }

  /** To ask a socket for its address costs more than all else here. */
  function bySite(buckets: Buckets): (call: Call) => Standing {
    const seed = new DataView(randomBytes(4).buffer).getUint32(0);
    const markOf = (shown: string) => Bun.hash.xxHash32(shown, seed);
    const prepaid = openPrepaid({ buckets, markOf, now: monotonic });
    return (call) => {
      const shown = call.authorization();
      return shown === null ? buckets.take(siteOfCall(call)) : prepaid.take(shown, () => siteOfCall(call));
    };
  }

  function byClient(buckets: Buckets): (call: Call, clientId: string) => Standing {
    const prepaid = openPrepaid({ buckets, markOf: (clientId) => clientId, now: monotonic });
    return (_, clientId) => prepaid.take(clientId, () => clientId);
  }

  return {
    address: counting('address', perAddress, bySite),
    client: counting('client', perClient, byClient),
    guesses: badTokens && guessing(openBuckets(shareOf(badTokens, processes), monotonic)),
  };
}

function guessing(buckets: Buckets): Guesses {
  return {
    admit(call) {
      const standing = buckets.look(siteOfCall(call));
      return standing.isSpent ? refusal(standing) : undefined;
    },
    note(call) {
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
function telling(name: string): (standing: Standing) => string {
  let [left, seconds, words] = [-1, -1, ''];
  return ({ remaining, msToNext }) => {
    const toldLeft = inSteps(remaining);
    const toldSeconds = Math.ceil(msToNext / 1000);
    if (toldLeft !== left || toldSeconds !== seconds) {
      [left, seconds] = [toldLeft, toldSeconds];
      words = `"${name}";r=${left};t=${seconds}`;
    }
    return words;
  };
}

/** At most a 64th less, and exact below 128: where there is plenty, text that changes costs more than to count. */
function inSteps(count: number): number {
  const step = 2 ** Math.max(0, 25 - Math.clz32(count));
  return count - (count % step);
}

/** The headers that tell these words behind what was told before; the last ones are kept. */
function joining(policyOf: () => string) {
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

function refusal({ msToNext }: Standing): Reply {
  return faultReply('rate_limited', { 'Retry-After': String(Math.max(1, Math.ceil(msToNext / 1000))) });
}
