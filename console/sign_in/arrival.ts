import { arriveAt, currentFragment } from '../layout/router.ts';
import { takeVisit } from '../session/keeping.ts';

/** What an address brings that a session can be opened with. */
export type Arrival =
  | { readonly way: 'link'; readonly code: string }
  | { readonly way: 'provider'; readonly body: ProviderGrant }
  | { readonly way: 'refused'; readonly why: string };

interface ProviderGrant {
  readonly grant: 'provider';
  readonly name: string;
  readonly code: string;
  readonly code_verifier: string;
  readonly nonce: string;
  readonly iss: string | undefined;
}

/**
 * Reads the one-time code of a link, or the answer of a provider, off the address of the page, and takes it out of there
 * before anything else happens.
 */
export function readArrival(): Arrival | undefined {
  const fragment = new URLSearchParams(location.hash.slice(1));
  const code = fragment.get('code');
  if (code !== null) {
    arriveAt(currentFragment());
    return { way: 'link', code };
  }
  const query = new URLSearchParams(location.search);
  if (query.has('code') || query.has('error')) return readProvider(query);
  return undefined;
}

function readProvider(query: URLSearchParams): Arrival {
  const visit = takeVisit();
  arriveAt(visit?.fragment ?? '#/');
  if (!visit || query.get('state') !== visit.state) {
    return { way: 'refused', why: 'This answer of a provider was not asked for by this tab. Sign in again.' };
  }
  const iss = query.get('iss') ?? undefined;
  if (iss !== undefined && iss !== visit.issuer) {
    return { way: 'refused', why: 'The answer came from another provider than was asked. Sign in again.' };
  }
  const code = query.get('code');
  if (code === null) {
    return { way: 'refused', why: `The provider did not sign you in (${wordOf(query.get('error'))}).` };
  }
  const { name, verifier, nonce } = visit;
  return { way: 'provider', body: { grant: 'provider', name, code, code_verifier: verifier, nonce, iss } };
}

/** An error code as RFC 6749 has them; what is none is not repeated. */
function wordOf(error: string | null): string {
  return /^[a-z_]{1,40}$/.test(error ?? '') ? String(error) : 'no reason was given';
}
