import { afterAll, expect, setDefaultTimeout, test } from 'bun:test';
import { createHash } from 'node:crypto';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { Provider } from 'oidc-provider';
import { OIDC_CLIENT, openLocalProviders } from '../support/identity_provider.ts';
import { movableClock } from '../support/movable_clock.ts';
import { signInAtProvider } from '../support/provider_pages.ts';

/** Codes and ID tokens of a real provider: oidc-provider from npm, on loopback. */

setDefaultTimeout(60_000);

const { clientId, clientSecret } = OIDC_CLIENT;
const CALLBACK = 'https://directory.example/callback';
const ANNA = {
  ...{ email: 'anna@example.com', isEmailVerified: true, amr: undefined },
  names: { name: 'Anna Holm', family_name: 'Holm' },
};

/** Starts a provider, and returns its issuer. */
async function startProvider(more: object): Promise<string> {
  const server = createServer();
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  afterAll(() => {
    server.closeAllConnections();
    server.close();
  });
  const issuer = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  const provider = new Provider(issuer, {
    clients: [{ client_id: clientId, client_secret: clientSecret, redirect_uris: [CALLBACK] }],
    claims: { email: ['email', 'email_verified'], profile: ['name', 'family_name'] },
    findAccount: (_: unknown, id: string) => ({
      accountId: id,
      claims: () => ({
        ...{ sub: id, email: 'anna@example.com', email_verified: true },
        ...{ name: 'Anna Holm', family_name: 'Holm' },
      }),
    }),
    ...more,
  });
  server.on('request', provider.callback());
  return issuer;
}

const inUserinfo = await startProvider({});
const inIdToken = await startProvider({ conformIdTokenClaims: false });
const byPost = await startProvider({
  clientAuthMethods: ['client_secret_post'],
  clientDefaults: { token_endpoint_auth_method: 'client_secret_post' },
});
const providers = openLocalProviders(movableClock());

/** Signs in at the provider as `anna`, and returns what a service then has. */
async function authorize(issuer: string) {
  const [codeVerifier, nonce] = ['v'.repeat(43), crypto.randomUUID()];
  const metadata = await providers.metadata(issuer);
  if (!metadata) throw new Error('no metadata');
  const url = new URL(metadata.authorizationEndpoint);
  const parameters = {
    ...{ client_id: clientId, redirect_uri: CALLBACK, response_type: 'code', scope: metadata.scope, nonce },
    code_challenge: createHash('sha256').update(codeVerifier).digest('base64url'),
    code_challenge_method: 'S256',
  };
  for (const [name, value] of Object.entries(parameters)) url.searchParams.set(name, value);
  const back = await signInAtProvider(url.href, 'anna', (each) => each.startsWith(CALLBACK));
  const code = back.searchParams.get('code') ?? '';
  return { issuer, ...OIDC_CLIENT, redirectUri: CALLBACK, code, codeVerifier, nonce, caller: undefined };
}

test.each([
  ['in userinfo', inUserinfo],
  ['in the ID token', inIdToken],
  ['for a secret in the body', byPost],
])('a code of a provider with claims %s identifies the person once', async (_name, issuer) => {
  const request = await authorize(issuer);
  expect(await providers.identifyByCode(request)).toEqual({ issuer, subject: 'anna', ...ANNA });
  expect(await providers.identifyByCode(request)).toBe('code_refused');
});

test.each([
  ['another verifier', { codeVerifier: 'w'.repeat(43) }, 'code_refused'],
  ['another redirect URI', { redirectUri: `${CALLBACK}/other` }, 'code_refused'],
  ['another nonce', { nonce: 'another' }, 'id_token_refused'],
  ['another secret', { clientSecret: 'wrong' }, 'token_endpoint_failed'],
] as const)('a code with %s identifies nobody', async (_name, more, result) => {
  expect(await providers.identifyByCode({ ...(await authorize(inIdToken)), ...more })).toBe(result);
});
