import type { Clock, Uuid } from '../../model/id.ts';
import { LIMITS } from '../../model/limits.ts';
import { issuerUrl } from '../../model/text/text.ts';
import { type TraceContext, traceHeaders } from '../../model/trace_context.ts';
import { isNeverAllowed } from './addresses.ts';
import { type GuardedFetch, type GuardedFetchOptions, openGuardedFetch } from './guarded_fetch.ts';
import { openSlots } from './slots.ts';
import { TARGET_RULE } from './target.ts';

/** What callers see of a failed discovery: no address, port, status or text of the response except an issuer. */
export const DISCOVERY_FAILURES = {
  forbidden: TARGET_RULE,
  unreachable: 'unreachable: check the URL, and that the service may connect to its host',
  redirect: 'the provider answered with a redirect, which is not followed',
  not_a_provider: 'not an OpenID provider',
  issuer_differs: 'issuer differs',
} as const;

type DiscoveryFailure = keyof typeof DISCOVERY_FAILURES;

export type Discovery =
  | { readonly kind: 'found'; readonly issuer: string }
  /** `claimed` is the issuer in the document, of any length; `refusedAddress` as of FetchResult. */
  | { readonly kind: DiscoveryFailure; readonly claimed?: string; readonly refusedAddress?: string };

const ISSUER = issuerUrl();

/** Opens the discovery of issuers, which occupies a slot for each request. */
export function openDiscovery(fetchDocument: GuardedFetch) {
  const slots = openSlots(LIMITS.discoveriesAtOnceMax, LIMITS.discoveriesPerRealmMax);
  return {
    discoveries: slots.count,
    /**
     * Reads the issuer in the document at a URL: `expected`, except for one final slash. Rejects with Fault `overloaded`
     * while `discoveriesAtOnceMax` discoveries are running, or `discoveriesPerRealmMax` of the same caller.
     */
    async discover(
      url: string,
      expected: string,
      caller: string,
      headers?: Readonly<Record<string, string>>,
    ): Promise<Discovery> {
      const release = slots.take(caller);
      let resolved: Promise<unknown> = Promise.resolve();
      try {
        const onResolve = (resolving: Promise<unknown>) => {
          resolved = resolving;
        };
        const fetched = await fetchDocument(url, { onResolve, headers });
        if (fetched.kind === 'document') return checkIssuer(fetched.document.issuer, expected);
        return fetched.kind === 'not_json' ? { kind: 'not_a_provider' } : fetched;
      } finally {
        // A slow name server keeps the slot until it answers, even after the fetch has ended.
        resolved.then(release, release);
      }
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

interface DiscoveryContext {
  readonly trace?: TraceContext | undefined;
  /** Administrators see the address of a name that is not allowed. */
  readonly isAdmin?: boolean;
}

/** The failure as a rule for the caller, who may have written the URL of all tenants of a provider. */
function failureRule(
  { kind, claimed, refusedAddress }: Exclude<Discovery, { kind: 'found' }>,
  expected: string,
  { isAdmin }: DiscoveryContext,
): string {
  const failure = DISCOVERY_FAILURES[kind];
  if (isAdmin && refusedAddress !== undefined)
    return `unreachable: its name resolves to ${refusedAddress}${isNeverAllowed(refusedAddress) ? '' : ', see --allow-private'}`;
  if (claimed === undefined) return failure;
  const [named, own] = [claimed, expected].map((each) => each.slice(0, LIMITS.issuerCharactersShownMax));
  const remedy = /[{}]/.test(claimed) ? '; use the URL of one tenant, whose issuer has no placeholder' : '';
  return `${failure}: the document names ${named}, this URL belongs to ${own}${remedy}`;
}

/** Discovers the issuers of OIDC profiles; `offline` sends no requests. */
export function openProviderDiscovery(
  { offline, ...outbound }: GuardedFetchOptions & { readonly offline: boolean },
  clock: Pick<Clock, 'randomBytes'>,
) {
  const { discover, discoveries } = openDiscovery(openGuardedFetch(outbound));
  async function discoverIssuer(url: string, expected: string, realm: Uuid, by: DiscoveryContext) {
    const found = await discover(url, expected, realm, by.trace && traceHeaders(by.trace, clock));
    if (found.kind === 'found') return found;
    // A provider recovers, and the operator allows a private one.
    const isPassing = ['unreachable', 'redirect', 'forbidden'].includes(found.kind);
    return { refusal: failureRule(found, expected, by), isPassing };
  }
  return { discoverIssuer: offline ? undefined : discoverIssuer, discoveries };
}
