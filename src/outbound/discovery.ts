import { Fault } from '../domain/fault.ts';
import { LIMITS } from '../domain/limits.ts';
import { issuerUrl } from '../domain/text.ts';
import type { GuardedFetch } from './guarded_fetch.ts';

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

/** Tells the issuer behind a discovery URL. */
export type Discover = (discoveryUrl: string) => Promise<Discovery>;

const ISSUER = issuerUrl();

/**
 * Tells the issuer by the URL alone. Whether the provider writes a final `/` only its document could say: here it has
 * none.
 */
export const deriveIssuer: Discover = async (discoveryUrl) => {
  const issuer = issuerBefore(discoveryUrl);
  return issuer === undefined ? { kind: 'issuer_differs' } : { kind: 'found', issuer };
};

/** What stands before the suffix, or undefined where that is no issuer. */
function issuerBefore(discoveryUrl: string): string | undefined {
  if (!discoveryUrl.endsWith(DISCOVERY_SUFFIX)) return undefined;
  const issuer = discoveryUrl.slice(0, -DISCOVERY_SUFFIX.length);
  return ISSUER.safeParse(issuer).success ? issuer : undefined;
}

/**
 * Makes what asks the provider itself. It rejects with Fault `overloaded` while `discoveriesAtOnceMax` others are asked.
 */
export function openDiscovery(fetchDocument: GuardedFetch): Discover {
  let underWay = 0;
  return async (discoveryUrl) => {
    const expected = issuerBefore(discoveryUrl);
    // Whatever the document said, its issuer would be another: nobody is asked.
    if (expected === undefined) return { kind: 'issuer_differs' };
    if (underWay >= LIMITS.discoveriesAtOnceMax) throw new Fault('overloaded');
    underWay += 1;
    try {
      const fetched = await fetchDocument(discoveryUrl);
      if (fetched.kind === 'document') return judge(fetched.document.issuer, expected);
      return { kind: fetched.kind === 'not_json' ? 'not_a_provider' : 'unreachable' };
    } finally {
      underWay -= 1;
    }
  };
}

/** Letter for letter, less one final `/` (OpenID Connect Discovery 1.0, 4.3 and 4.1). */
function judge(claimed: unknown, expected: string): Discovery {
  const issuer = ISSUER.safeParse(claimed);
  if (!issuer.success) return { kind: 'not_a_provider' };
  if (issuer.data.replace(/\/$/, '') !== expected) return { kind: 'issuer_differs' };
  return { kind: 'found', issuer: issuer.data };
}
