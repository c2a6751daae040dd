import { expect, test } from 'bun:test';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { Provider } from 'oidc-provider';
import { realm } from '../../src/model/resources.ts';
import { atEnd } from '../support/ending.ts';
import {
  CLIENT_SECRET,
  CODE_VERIFIER,
  callbackUrl,
  createOidcProfile,
  loginUrl,
  REDIRECT_URI,
  visit,
} from '../support/oidc_sign_in.ts';
import { claimsIn, signedInOf } from '../support/oidc_token_calls.ts';
import { startService } from '../support/service.ts';
import { createSettingsRealms } from '../support/settings_realms.ts';
import { requestTokens, signInTokenOf } from '../support/sign_in.ts';

test.each([
  ['client_secret_basic', true],
  ['client_secret_basic', false],
  ['client_secret_post', true],
  ['client_secret_post', false],
])(
  'a person signs in at oidc-provider by %s, and gets an account token once for a code; claims only in userinfo: %p',
  async (method, conformIdTokenClaims) => {
    const server = createServer();
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    atEnd(() => {
      server.closeAllConnections();
      server.close();
    });
    const issuer = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
    const service = await startService({ allowPrivate: '127.0.0.0/8' });
    const { accounts } = await createSettingsRealms(service.db);
    const place = {
      ...{ store: await service.db.engine.access.storeId(), realm: accounts },
      profile: await createOidcProfile(service.db, accounts, issuer),
    };
    const writer = await service.token('realms:write users:read');
    const change = { data: { type: realm.type, redirect_uris: [REDIRECT_URI] } };
    expect((await service.put(`/v2/authentication-realms/${accounts}`, writer, change)).status).toBe(200);
    const redirect_uri = callbackUrl(service.url, place, {}).slice(0, -1);
    const oidc = new Provider(issuer, {
      clients: [{ client_id: 'shop', client_secret: CLIENT_SECRET, redirect_uris: [redirect_uri] }],
      claims: { openid: ['sub'], email: ['email', 'email_verified'], profile: ['name'] },
      conformIdTokenClaims,
      clientAuthMethods: [method],
      clientDefaults: { token_endpoint_auth_method: method },
      findAccount: (_: unknown, id: string) => ({
        accountId: id,
        claims: () => ({ sub: id, email: 'anna@example.com', email_verified: true, name: 'Anna Holm' }),
      }),
    });
    server.on('request', oidc.callback());
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
    const path = `/v2/authentication-realms/${accounts}/user-authentication-info/${user}`;
    const { data } = (await (await service.get(path, writer)).json()) as { data: object };
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
