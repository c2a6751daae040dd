import { expect, test } from 'bun:test';
import { CODE_VERIFIER, loginUrl, REDIRECT_URI, visit } from '../support/oidc_sign_in.ts';
import { claimsIn, signedInOf } from '../support/oidc_token_calls.ts';
import { startProviderService } from '../support/provider_service.ts';
import { requestTokens, signInTokenOf } from '../support/sign_in.ts';

test.each([
  ['client_secret_basic', true],
  ['client_secret_basic', false],
  ['client_secret_post', true],
  ['client_secret_post', false],
])(
  'a person signs in at oidc-provider by %s, and gets an account token once for a code; claims only in userinfo: %p',
  async (method, conformIdTokenClaims) => {
    const configuration = {
      conformIdTokenClaims,
      clientAuthMethods: [method],
      clientDefaults: { token_endpoint_auth_method: method },
    };
    const started = await startProviderService([REDIRECT_URI], configuration);
    const { service, accounts, place, writer, path } = started;
    const token = await signInTokenOf(service, { scope: 'sign-in sign-up' });
    const send = (code: string) =>
      requestTokens(service, token, {
        data: {
          ...{ type: 'account_management_authentication_token', authentication_mechanism: 'oidc' },
          ...{ oauth_authorization_code: code, oauth_redirect_uri: REDIRECT_URI },
          oauth_code_verifier: CODE_VERIFIER,
        },
      });

    const code = await browse(loginUrl(service.url, place), 'anna');
    const { user, token: accountToken } = await signedInOf(await send(code));
    expect(claimsIn(accountToken)).toMatchObject({ sub: user, realm_id: accounts, mechanism: 'oidc' });
    const read = await service.get(`${path}/user-authentication-info/${user}`, writer);
    const { data } = (await read.json()) as { data: object };
    expect(data).toMatchObject({ name: 'Anna Holm', email: 'anna@example.com' });
    expect((await send(code)).status).toBe(400);
    const again = await browse(loginUrl(service.url, place), 'anna');
    expect((await signedInOf(await send(again))).user).toBe(user);
  },
  30_000,
);

/** The cookies of a browser. They are of an origin, because both servers have the same host. */
function openJar() {
  const cookies = new Map<string, Map<string, string>>();
  const of = ({ origin }: URL) => {
    const own = cookies.get(origin) ?? new Map<string, string>();
    cookies.set(origin, own);
    return own;
  };
  return {
    header: (url: URL) => [...of(url)].map(([name, value]) => `${name}=${value}`).join('; '),
    keep(url: URL, { headers }: Response): void {
      for (const each of headers.getSetCookie()) {
        const [, name = '', value = ''] = /^([^=]+)=([^;]*)/.exec(each) ?? [];
        of(url).set(name, value);
      }
    },
  };
}

/** Follows redirects and the pages of the provider like a browser until it is sent to the redirect URI. Returns the code. */
async function browse(first: string, login: string): Promise<string> {
  const jar = openJar();
  let url = new URL(first);
  let body: URLSearchParams | undefined;
  for (let step = 0; step < 16; step += 1) {
    if (url.href.startsWith(REDIRECT_URI)) return url.searchParams.get('code') ?? '';
    const answer = await visit(url.href, jar.header(url), body ? { method: 'POST', body } : {});
    jar.keep(url, answer);
    const text = await answer.text();
    const [, action = '', prompt = ''] =
      /action="([^"]+)"[\s\S]*name="prompt" value="([^"]+)"/.exec(text) ?? [];
    const location = answer.headers.get('location');
    if (!location && prompt === '') throw new Error(`${answer.status} ${text.slice(0, 400)}`);
    url = new URL(location ?? action, url);
    body = location ? undefined : new URLSearchParams({ prompt, login, password: 'any' });
  }
  throw new Error('the browser did not get to the redirect URI');
}
