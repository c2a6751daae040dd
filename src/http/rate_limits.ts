import type { Ambient } from '../domain/id.ts';
import { siteOf } from '../domain/ip_address.ts';
import { type Buckets, openBuckets, type Rate, type Standing, shareOf } from '../domain/token_buckets.ts';
import type { Call, RateHeaders } from './call.ts';
import { openPrepaid, type Till } from './prepaid.ts';
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
    takerOf: (till: Till<Told>) => (call: Call, clientId: string) => Told,
  ): ((call: Call, clientId?: string) => Reply | undefined) | undefined {
    if (!rate) return undefined;
    const share = shareOf(rate, processes);
    policies.push(`"${name}";q=${share.requests};w=${share.seconds}`);
    policy = policies.join(', ');
    const take = takerOf({
      buckets: openBuckets(share, monotonic),
      seed: new DataView(randomBytes(4).buffer).getUint32(0),
      now: monotonic,
      tell: (standing) => openTold(name, () => policy, standing),
    });
    return (call, clientId = '') => {
      const { standing, behind } = take(call, clientId);
      call.rateHeaders = behind(call.rateHeaders);
      return standing.isSpent ? refusal(standing) : undefined;
    };
  }

  return {
    address: counting('address', perAddress, bySite),
    client: counting('client', perClient, byClient),
    guesses: badTokens && guessing(openBuckets(shareOf(badTokens, processes), monotonic)),
  };
}

/** To ask a socket for its address costs more than all else here. */
function bySite(till: Till<Told>): (call: Call) => Told {
  const { buckets, tell } = till;
  const prepaid = openPrepaid(till);
  return (call) => {
    const shown = call.authorization();
    return shown === null
      ? tell(buckets.take(siteOfCall(call)))
      : prepaid.take(shown, () => siteOfCall(call));
  };
}

/** To say what is left costs more than to count. */
function byClient(till: Till<Told>): (call: Call, clientId: string) => Told {
  const prepaid = openPrepaid(till);
  return (_, clientId) => prepaid.take(clientId, () => clientId);
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

/** What a bucket says, and how that is told behind what was told of another one. */
interface Told {
  readonly standing: Standing;
  behind(before: RateHeaders | undefined): RateHeaders;
}

/** As draft-ietf-httpapi-ratelimit-headers has it: what is left, and in how many seconds there is more. */
function openTold(name: string, policyOf: () => string, standing: Standing): Told {
  const { remaining, msToNext } = standing;
  const words = `"${name}";r=${remaining};t=${Math.ceil(msToNext / 1000)}`;
  let last: { readonly before: RateHeaders | undefined; readonly headers: RateHeaders } | undefined;
  return {
    standing,
    behind(before) {
      if (last === undefined || last.before !== before) {
        const RateLimit = before === undefined ? words : `${before.RateLimit}, ${words}`;
        last = { before, headers: { 'RateLimit-Policy': policyOf(), RateLimit } };
      }
      return last.headers;
    },
  };
}

function refusal({ msToNext }: Standing): Reply {
  return faultReply('rate_limited', { 'Retry-After': String(Math.max(1, Math.ceil(msToNext / 1000))) });
}
