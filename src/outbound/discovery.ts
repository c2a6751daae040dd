import { overloaded } from '../domain/fault.ts';
import type { Clock, Uuid } from '../domain/id.ts';
import { LIMITS } from '../domain/limits.ts';
import { type ProviderAnswer, parseProviderDocument } from '../domain/provider_document.ts';
import { issuerUrl } from '../domain/text/text.ts';
import { startTrace, type TraceContext, traceHeaders } from '../domain/trace_context.ts';
import { type FetchResult, type GuardedFetch, openGuardedFetch } from './guarded_fetch.ts';

/** The path of the discovery document after the issuer (OpenID Connect Discovery 1.0, 4). */
const DISCOVERY_SUFFIX = '/.well-known/openid-configuration';

/** The reasons that callers see for a failed discovery: without address, port, status or text of the response. */
export const DISCOVERY_FAILURES = {
  unreachable: 'unreachable',
  not_a_provider: 'not an OpenID provider',
  issuer_differs: 'issuer differs',
} as const;

export type DiscoveryFailure = keyof typeof DISCOVERY_FAILURES;

export type Discovery =
  | { readonly kind: 'found'; readonly issuer: string }
  | { readonly kind: DiscoveryFailure };

/** Reads the issuer at a discovery URL. `caller` is limited to its share of slots; `headers` are sent as well. */
export type Discover = (
  discoveryUrl: string,
  caller: string,
  headers?: Readonly<Record<string, string>>,
) => Promise<Discovery>;

const ISSUER = issuerUrl();

/**
 * Derives the issuer from the URL alone, without a final `/`: only the document could show whether the provider writes
 * one.
 */
export const deriveIssuer = async (discoveryUrl: string): Promise<Discovery> => {
  const issuer = issuerOfUrl(discoveryUrl);
  return issuer === undefined ? { kind: 'issuer_differs' } : { kind: 'found', issuer };
};

/** The part of a discovery URL before the suffix; undefined if that is no issuer. */
function issuerOfUrl(discoveryUrl: string): string | undefined {
  if (!discoveryUrl.endsWith(DISCOVERY_SUFFIX)) return undefined;
  const issuer = discoveryUrl.slice(0, -DISCOVERY_SUFFIX.length);
  return ISSUER.safeParse(issuer).success ? issuer : undefined;
}

/** Creates the discovery that requests the provider's document, in one of the slots. */
export function openDiscovery(
  fetchDocument: GuardedFetch,
  slots: DiscoverySlots = openDiscoverySlots(),
): Discover {
  const fetchLimited = openLimitedFetch(fetchDocument, slots);
  return async (discoveryUrl, caller, headers) => {
    const expected = issuerOfUrl(discoveryUrl);
    // No document at this URL could have a matching issuer.
    if (expected === undefined) return { kind: 'issuer_differs' };
    const fetched = await fetchLimited(discoveryUrl, caller, headers);
    if (fetched.kind === 'document') return checkIssuer(fetched.document.issuer, expected);
    return { kind: fetched.kind === 'not_json' ? 'not_a_provider' : 'unreachable' };
  };
}

/** Reads the document at a discovery URL; parameters and slots as of Discover. */
export type Inspect = (...parameters: Parameters<Discover>) => Promise<ProviderAnswer>;

/** Creates the inspection of provider documents, in the same slots. */
export function openInspection(
  fetchDocument: GuardedFetch,
  slots: DiscoverySlots,
  { monotonic }: Pick<Clock, 'monotonic'>,
): Inspect {
  const fetchLimited = openLimitedFetch(fetchDocument, slots);
  return async (discoveryUrl, caller, headers) => {
    if (issuerOfUrl(discoveryUrl) === undefined) return { kind: 'not_requested' };
    const startedAt = monotonic();
    const fetched = await fetchLimited(discoveryUrl, caller, headers);
    if (fetched.kind !== 'document') return { kind: 'no_document' };
    const tookMs = Math.round(monotonic() - startedAt);
    return { kind: 'document', document: parseProviderDocument(fetched.document), tookMs };
  };
}

/**
 * Fetches in a slot. Rejects with Fault `overloaded` while `discoveriesAtOnceMax` fetches are running, or
 * `discoveriesPerRealmMax` of the same caller.
 */
function openLimitedFetch(fetchDocument: GuardedFetch, slots: DiscoverySlots) {
  return async (...[discoveryUrl, caller, headers]: Parameters<Discover>): Promise<FetchResult> => {
    const release = slots.take(caller);
    let resolved: Promise<unknown> = Promise.resolve();
    try {
      const onResolve = (resolving: Promise<unknown>) => {
        resolved = resolving;
      };
      return await fetchDocument(discoveryUrl, onResolve, headers);
    } finally {
      // A slow name server keeps the slot until it answers, even after the fetch has ended.
      resolved.then(release, release);
    }
  };
}

/** Limits concurrent discoveries. */
export interface DiscoverySlots {
  /** Takes a slot, and returns the function that releases it. Throws Fault `overloaded` if there is none. */
  take(caller: string): () => void;
  taken(): number;
}

export function openDiscoverySlots(): DiscoverySlots {
  const callers: string[] = [];
  return {
    taken: () => callers.length,
    take(caller) {
      const own = callers.filter((other) => other === caller).length;
      if (callers.length >= LIMITS.discoveriesAtOnceMax || own >= LIMITS.discoveriesPerRealmMax) {
        throw overloaded('CONCURRENCY_LIMIT');
      }
      callers.push(caller);
      return () => callers.splice(callers.indexOf(caller), 1);
    },
  };
}

/** Compares exactly, except for one final `/` (OpenID Connect Discovery 1.0, 4.3 and 4.1). */
function checkIssuer(claimed: unknown, expected: string): Discovery {
  const issuer = ISSUER.safeParse(claimed);
  if (!issuer.success) return { kind: 'not_a_provider' };
  if (issuer.data.replace(/\/$/, '') !== expected) return { kind: 'issuer_differs' };
  return { kind: 'found', issuer: issuer.data };
}

interface ProviderDiscoverySettings {
  readonly offline: boolean;
  readonly allowLoopbackDiscovery: boolean;
}

const inspectNothing = async (): Promise<ProviderAnswer> => ({ kind: 'not_requested' });

/** Discovers and inspects the providers of OIDC profiles; `offline` derives issuers from URLs and sends no requests. */
export function openProviderDiscovery(
  { offline, allowLoopbackDiscovery }: ProviderDiscoverySettings,
  clock: Clock,
) {
  const slots = openDiscoverySlots();
  const fetchDocument = openGuardedFetch({ allowLoopback: allowLoopbackDiscovery });
  const discover = offline ? deriveIssuer : openDiscovery(fetchDocument, slots);
  const inspect = offline ? inspectNothing : openInspection(fetchDocument, slots, clock);
  return {
    async discoverIssuer(url: string, realm: Uuid, trace: TraceContext = startTrace(clock)) {
      const found = await discover(url, realm, traceHeaders(trace, clock));
      if (found.kind === 'found') return found;
      return { refusal: DISCOVERY_FAILURES[found.kind], isPassing: found.kind === 'unreachable' };
    },
    inspect: (url: string, realm: Uuid, trace: TraceContext = startTrace(clock)) =>
      inspect(url, realm, traceHeaders(trace, clock)),
    discoveries: slots.taken,
  };
}
