import { overloaded } from '../domain/fault.ts';
import type { Clock, Uuid } from '../domain/id.ts';
import { LIMITS } from '../domain/limits.ts';
import { issuerUrl } from '../domain/text/text.ts';
import { startTrace, type TraceContext, traceHeaders } from '../domain/trace_context.ts';
import { type GuardedFetch, openGuardedFetch } from './guarded_fetch.ts';

/** The path of the discovery document after the issuer (OpenID Connect Discovery 1.0, 4). */
const DISCOVERY_SUFFIX = '/.well-known/openid-configuration';

/** The reasons that callers see for a failed discovery: without address, port, status or text of the response but an issuer. */
export const DISCOVERY_FAILURES = {
  unreachable: 'unreachable',
  not_a_provider: 'not an OpenID provider',
  issuer_differs: 'issuer differs',
} as const;

export type DiscoveryFailure = keyof typeof DISCOVERY_FAILURES;

export type Discovery =
  | { readonly kind: 'found'; readonly issuer: string }
  /** `claimed` is the issuer in the document, of any length. */
  | { readonly kind: DiscoveryFailure; readonly claimed?: string };

/** Reads the issuer at a discovery URL. `caller` is limited to its share of slots; `headers` are sent as well. */
export type Discover = (
  discoveryUrl: string,
  caller: string,
  headers?: Readonly<Record<string, string>>,
) => Promise<Discovery>;

const ISSUER = issuerUrl();

/** The part of a discovery URL before the suffix; undefined if that is no issuer. */
function issuerOfUrl(discoveryUrl: string): string | undefined {
  if (!discoveryUrl.endsWith(DISCOVERY_SUFFIX)) return undefined;
  const issuer = discoveryUrl.slice(0, -DISCOVERY_SUFFIX.length);
  return ISSUER.safeParse(issuer).success ? issuer : undefined;
}

/**
 * Creates the discovery that requests the provider's document, in a slot. It rejects with Fault `overloaded` while
 * `discoveriesAtOnceMax` discoveries are running, or `discoveriesPerRealmMax` of the same caller.
 */
export function openDiscovery(
  fetchDocument: GuardedFetch,
  slots: DiscoverySlots = openDiscoverySlots(),
): Discover {
  return async (discoveryUrl, caller, headers) => {
    const expected = issuerOfUrl(discoveryUrl);
    // No document at this URL could have a matching issuer.
    if (expected === undefined) return { kind: 'issuer_differs' };
    const release = slots.take(caller);
    let resolved: Promise<unknown> = Promise.resolve();
    try {
      const onResolve = (resolving: Promise<unknown>) => {
        resolved = resolving;
      };
      const fetched = await fetchDocument(discoveryUrl, onResolve, headers);
      if (fetched.kind === 'document') return checkIssuer(fetched.document.issuer, expected);
      return { kind: fetched.kind === 'not_json' ? 'not_a_provider' : 'unreachable' };
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
  if (issuer.data.replace(/\/$/, '') !== expected) return { kind: 'issuer_differs', claimed: issuer.data };
  return { kind: 'found', issuer: issuer.data };
}

/** The failure as a rule for the caller, who may have written the URL of all tenants of a provider. */
function failureRule({ kind, claimed }: Exclude<Discovery, { kind: 'found' }>, url: string): string {
  if (claimed === undefined) return DISCOVERY_FAILURES[kind];
  const [named, own] = [claimed, issuerOfUrl(url) ?? ''].map((each) =>
    each.slice(0, LIMITS.issuerCharactersShownMax),
  );
  const remedy = /[{}]/.test(claimed) ? '; use the URL of one tenant, whose issuer has no placeholder' : '';
  return `${DISCOVERY_FAILURES[kind]}: the document names ${named}, this URL belongs to ${own}${remedy}`;
}

interface ProviderDiscoverySettings {
  readonly offline: boolean;
  readonly allowLoopbackDiscovery: boolean;
}

/** Discovers the issuers of OIDC profiles; `offline` sends no requests. */
export function openProviderDiscovery(
  { offline, allowLoopbackDiscovery }: ProviderDiscoverySettings,
  clock: Clock,
) {
  const slots = openDiscoverySlots();
  const discover = openDiscovery(openGuardedFetch({ allowLoopback: allowLoopbackDiscovery }), slots);
  async function discoverIssuer(url: string, realm: Uuid, trace: TraceContext = startTrace(clock)) {
    const found = await discover(url, realm, traceHeaders(trace, clock));
    if (found.kind === 'found') return found;
    return { refusal: failureRule(found, url), isPassing: found.kind === 'unreachable' };
  }
  return {
    discoverIssuer: offline ? undefined : discoverIssuer,
    discoveries: slots.taken,
  };
}
