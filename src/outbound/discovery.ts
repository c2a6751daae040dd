import { overloaded } from '../domain/fault.ts';
import type { Clock, Uuid } from '../domain/id.ts';
import { LIMITS } from '../domain/limits.ts';
import { type ProviderAnswer, parseProviderDocument } from '../domain/provider_document.ts';
import { issuerUrl } from '../domain/text/text.ts';
import { startTrace, type TraceContext, traceHeaders } from '../domain/trace_context.ts';
import { type FetchResult, type GuardedFetch, openGuardedFetch } from './guarded_fetch.ts';

/** Where a provider keeps its document, after its issuer (OpenID Connect Discovery 1.0, 4). */
const DISCOVERY_SUFFIX = '/.well-known/openid-configuration';

/** All that a caller learns of a discovery that failed: no address, no port, no status, no word of the answer. */
export const DISCOVERY_FAILURES = {
  unreachable: 'unreachable',
  not_a_provider: 'not an OpenID provider',
  issuer_differs: 'issuer differs',
} as const;

export type DiscoveryFailure = keyof typeof DISCOVERY_FAILURES;

export type Discovery =
  | { readonly kind: 'found'; readonly issuer: string }
  | { readonly kind: DiscoveryFailure };

/** Tells the issuer behind a discovery URL. `asker` is whoever may not have all the places at once; `headers` are sent along. */
export type Discover = (
  discoveryUrl: string,
  caller: string,
  headers?: Readonly<Record<string, string>>,
) => Promise<Discovery>;

const ISSUER = issuerUrl();

/**
 * Tells the issuer by the URL alone. Whether the provider writes a final `/` only its document could say: here it has
 * none.
 */
export const deriveIssuer = async (discoveryUrl: string): Promise<Discovery> => {
  const issuer = issuerBefore(discoveryUrl);
  return issuer === undefined ? { kind: 'issuer_differs' } : { kind: 'found', issuer };
};

/** What stands before the suffix, or undefined where that is no issuer. */
function issuerBefore(discoveryUrl: string): string | undefined {
  if (!discoveryUrl.endsWith(DISCOVERY_SUFFIX)) return undefined;
  const issuer = discoveryUrl.slice(0, -DISCOVERY_SUFFIX.length);
  return ISSUER.safeParse(issuer).success ? issuer : undefined;
}

/** Makes what asks the provider itself, in one of the places. */
export function openDiscovery(
  fetchDocument: GuardedFetch,
  places: DiscoverySlots = openDiscoverySlots(),
): Discover {
  const ask = openLimitedFetch(fetchDocument, places);
  return async (discoveryUrl, caller, headers) => {
    const expected = issuerBefore(discoveryUrl);
    // Whatever the document said, its issuer would be another: nobody is asked.
    if (expected === undefined) return { kind: 'issuer_differs' };
    const fetched = await ask(discoveryUrl, caller, headers);
    if (fetched.kind === 'document') return checkIssuer(fetched.document.issuer, expected);
    return { kind: fetched.kind === 'not_json' ? 'not_a_provider' : 'unreachable' };
  };
}

/** Tells what the document at a discovery URL says now; parameters and places as of Discover. */
export type Inspect = (...asked: Parameters<Discover>) => Promise<ProviderAnswer>;

/** Makes what tells the document of a provider, in the same places. */
export function openInspection(
  fetchDocument: GuardedFetch,
  places: DiscoverySlots,
  { monotonic }: Pick<Clock, 'monotonic'>,
): Inspect {
  const ask = openLimitedFetch(fetchDocument, places);
  return async (discoveryUrl, caller, headers) => {
    if (issuerBefore(discoveryUrl) === undefined) return { kind: 'unasked' };
    const began = monotonic();
    const fetched = await ask(discoveryUrl, caller, headers);
    if (fetched.kind !== 'document') return { kind: 'silent' };
    const tookMs = Math.round(monotonic() - began);
    return { kind: 'document', document: parseProviderDocument(fetched.document), tookMs };
  };
}

/**
 * Asks in a place. Rejects with Fault `overloaded` while `discoveriesAtOnceMax` others are asked, or
 * `discoveriesPerRealmMax` for the same asker.
 */
function openLimitedFetch(fetchDocument: GuardedFetch, places: DiscoverySlots) {
  return async (...[discoveryUrl, caller, headers]: Parameters<Discover>): Promise<FetchResult> => {
    const leave = places.take(caller);
    let resolved: Promise<unknown> = Promise.resolve();
    try {
      const hear = (resolving: Promise<unknown>) => {
        resolved = resolving;
      };
      return await fetchDocument(discoveryUrl, hear, headers);
    } finally {
      // A slow name server holds its place for as long as it is asked, also after our answer.
      resolved.then(leave, leave);
    }
  };
}

/** Who asks at once. */
export interface DiscoverySlots {
  /** Takes one, and answers what gives it back. Throws Fault `overloaded` where there is none. */
  take(caller: string): () => void;
  taken(): number;
}

export function openDiscoverySlots(): DiscoverySlots {
  const takers: string[] = [];
  return {
    taken: () => takers.length,
    take(caller) {
      const own = takers.filter((taker) => taker === caller).length;
      if (takers.length >= LIMITS.discoveriesAtOnceMax || own >= LIMITS.discoveriesPerRealmMax) {
        throw overloaded('CONCURRENCY_LIMIT');
      }
      takers.push(caller);
      return () => takers.splice(takers.indexOf(caller), 1);
    },
  };
}

/** Letter for letter, less one final `/` (OpenID Connect Discovery 1.0, 4.3 and 4.1). */
function checkIssuer(claimed: unknown, expected: string): Discovery {
  const issuer = ISSUER.safeParse(claimed);
  if (!issuer.success) return { kind: 'not_a_provider' };
  if (issuer.data.replace(/\/$/, '') !== expected) return { kind: 'issuer_differs' };
  return { kind: 'found', issuer: issuer.data };
}

interface LearnerSettings {
  readonly offline: boolean;
  readonly allowLoopbackDiscovery: boolean;
}

const inspectNothing = async (): Promise<ProviderAnswer> => ({ kind: 'unasked' });

/** Who is asked about the provider of an OIDC profile: the provider, or nobody but its URL. */
export function openProviderDiscovery({ offline, allowLoopbackDiscovery }: LearnerSettings, clock: Clock) {
  const places = openDiscoverySlots();
  const fetchDocument = openGuardedFetch({ allowLoopback: allowLoopbackDiscovery });
  const discover = offline ? deriveIssuer : openDiscovery(fetchDocument, places);
  const inspect = offline ? inspectNothing : openInspection(fetchDocument, places, clock);
  return {
    async learn(url: string, realm: Uuid, trace: TraceContext = startTrace(clock)) {
      const found = await discover(url, realm, traceHeaders(trace, clock));
      if (found.kind === 'found') return found;
      return { refusal: DISCOVERY_FAILURES[found.kind], isPassing: found.kind === 'unreachable' };
    },
    inspect: (url: string, realm: Uuid, trace: TraceContext = startTrace(clock)) =>
      inspect(url, realm, traceHeaders(trace, clock)),
    discoveries: places.taken,
  };
}
