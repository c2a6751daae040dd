import { expect, setDefaultTimeout, test } from 'bun:test';
import { EPCC_LOGIN, type RecordedSignIn, STOREFRONT_LOGIN } from '../clients/recorded/provider_sign_in.ts';
import { replay } from '../clients/recorded/recording.ts';
import { PROFILE_PARAMETER } from '../support/oidc_sign_in.ts';
import { signInOnPages } from '../support/provider_pages.ts';
import { startProviderService } from '../support/provider_service.ts';
import { createSignInClient } from '../support/sign_in.ts';
import { BROWSER_TEST_MS } from './console_window.ts';
import { openUserPage, serveShop } from './shop_pages.ts';

/** Account members sign in through a provider, in a browser, by clients whose requests are recorded (docs/clients.md). */

setDefaultTimeout(BROWSER_TEST_MS);

const origin = serveShop();
const SIGN_INS = [EPCC_LOGIN, STOREFRONT_LOGIN];
const redirectUris = SIGN_INS.map(({ redirectPath }) => origin + redirectPath);
const { service, issuer, accounts, place } = await startProviderService(redirectUris);
const { clientId, secret } = await createSignInClient(service, {
  scope: 'settings:read profiles:read sign-in sign-up',
  endUserAddress: 'none',
  implicitScopes: new Set(['settings:read', 'profiles:read', 'sign-in', 'sign-up']),
  implicitRealms: new Set([accounts]),
  ratePerAddress: { requests: 1_000, seconds: 60 },
});

/** A script of a page: stores a state and a verifier, and adds the parameters to the login URL. */
const addParameters = (loginUrl: string, parameters: Readonly<Record<string, string>>) => `(async () => {
  const random = () => crypto.randomUUID() + crypto.randomUUID();
  Object.assign(localStorage, { state: random(), verifier: random() });
  const { state, verifier } = localStorage;
  const hash = new Uint8Array(await crypto.subtle.digest('SHA-256', new TextEncoder().encode(verifier)));
  const code_challenge = hash.toBase64({ alphabet: 'base64url', omitPadding: true });
  const target = new URL(${JSON.stringify(loginUrl)});
  const own = { response_type: 'code', state, code_challenge_method: 'S256', code_challenge };
  for (const [name, value] of Object.entries({ ...${JSON.stringify(parameters)}, ...own }))
    target.searchParams.append(name, value);
  return target.href;
})()`;

/** Signs in as the client does. Returns the account. */
async function signIn({ client, before, scope, redirectPath, after }: RecordedSignIn): Promise<unknown> {
  const redirectUri = origin + redirectPath;
  const values: Record<string, string> = { origin: service.url, clientId, secret, issuer, redirectUri };
  await replay(client, before, values);
  const { loginUrl = '', accountClient = '' } = values;
  expect(new URL(loginUrl).searchParams.get(PROFILE_PARAMETER)).toBe(place.profile);
  const page = await openUserPage();
  await page.goto(origin);
  const parameters = { client_id: accountClient, redirect_uri: redirectUri, scope };
  await page.goto((await page.evaluate(addParameters(loginUrl, parameters))) as string);
  await signInOnPages(page, client.name);
  await page.waitForURL((url) => url.href.startsWith(redirectUri));
  const { state, code } = Object.fromEntries(new URL(page.url()).searchParams);
  const stored = (await page.evaluate('({ ...localStorage })')) as Record<string, string>;
  expect(state).toBe(stored.state as string);
  Object.assign(values, { code, verifier: stored.verifier });
  await replay(client, after, values);
  return values.account;
}

test.each(SIGN_INS.map((each) => [each.client.name, each] as const))(
  'a person signs in through a provider in Chromium with the requests of %s, twice as the same user',
  async (_, recorded) => {
    const account = await signIn(recorded);
    expect(account).toEqual(expect.any(String));
    expect(await signIn(recorded)).toBe(account);
  },
);
