import { openIdentityProviders } from '../../src/access/issuers/identity_providers.ts';
import { openGuardedFetch } from '../../src/access/outbound/guarded_fetch.ts';
import { openGuardedForm } from '../../src/access/outbound/guarded_post.ts';
import { parseIpAddress } from '../../src/model/ip_address.ts';
import { createKeyPair, DISCOVERY, issue, json, startIssuer } from './issuers.ts';
import { movableClock } from './movable_clock.ts';
import { LOOPBACK_RULES } from './outbound_servers.ts';
import type { Json } from './token_forge.ts';

/** The client of an OIDC profile, with characters that basic credentials encode. */
export const OIDC_CLIENT = { clientId: 'the shop: of us', clientSecret: 'a+b c&d' };
export const NONCE = 'n'.repeat(22);

type ProvidersDeps = Parameters<typeof openIdentityProviders>[0];

/** The providers of a process that may send requests to this machine. */
export function openLocalProviders(clock: ProvidersDeps['clock'], more: Partial<ProvidersDeps> = {}) {
  return openIdentityProviders({
    fetchDocument: openGuardedFetch(LOOPBACK_RULES),
    postForm: openGuardedForm(LOOPBACK_RULES),
    ...{ clock, offline: false, ...more },
  });
}

/** An OpenID provider whose every answer a test can change. */
export async function startIdentityProvider() {
  const { issuer, routes, requestCounts } = await startIssuer();
  const pair = await createKeyPair('one');
  const clock = movableClock();
  const now = () => Math.floor(clock.now() / 1000);
  const claims = (more: Json = {}): Json => ({
    ...{ iss: issuer, aud: OIDC_CLIENT.clientId, sub: 'auth0|jane', iat: now(), exp: now() + 300 },
    ...{ nonce: NONCE, email: 'jane@example.com', email_verified: true, ...more },
  });
  return {
    ...{ issuer, routes, clock, pair, now, claims },
    open: (more: Partial<ProvidersDeps> = {}) => openLocalProviders(clock, more),
    requests: (path: string) => requestCounts.get(path) ?? 0,
    /** Publishes the discovery document with these changes, and these keys. */
    publish(changes: Json = {}, keys: readonly Json[] = [pair.publicJwk]): void {
      const endpoints = ['authorization', 'token', 'userinfo'].map((name) => [
        `${name}_endpoint`,
        `${issuer}/${name}`,
      ]);
      const document = { issuer, jwks_uri: `${issuer}/keys`, ...Object.fromEntries(endpoints), ...changes };
      routes.set(DISCOVERY, json(document));
      routes.set('/keys', json({ keys }));
    },
    /** An ID token with these changes of its claims and header. */
    mint: (more: Json = {}, header: Json = {}) => issue(pair, claims(more), { typ: 'JWT', ...header }),
    /** Makes the token endpoint answer with this ID token, and the userinfo endpoint with this document. */
    answer(idToken: unknown, userinfo?: unknown): void {
      routes.set('/token', json({ access_token: 'of-userinfo', token_type: 'Bearer', id_token: idToken }));
      if (userinfo === undefined) routes.delete('/userinfo');
      else routes.set('/userinfo', json(userinfo));
    },
    codeRequest: ({ caller = '192.0.2.1', ...more }: Json & { readonly caller?: string } = {}) => ({
      ...{ issuer, ...OIDC_CLIENT, redirectUri: 'https://directory.example/callback', code: 'c' },
      ...{ codeVerifier: 'v'.repeat(43), nonce: NONCE, caller: parseIpAddress(caller), ...more },
    }),
  };
}
