import { expect, test } from 'bun:test';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { Provider } from 'oidc-provider';
import { realm } from '../../src/model/resources.ts';
import { systemClock } from '../../src/ops/process/clock.ts';
import { openOidcFlow } from '../../src/sign_in/oidc_flow.ts';
import { findPort } from '../support/daemons.ts';
import { atEnd } from '../support/ending.ts';
import { callbackUrl, createOidcProfile, loginUrl, REDIRECT_URI, visit } from '../support/oidc_sign_in.ts';
import { startService } from '../support/service.ts';
import { startServiceProcess } from '../support/service_process.ts';
import { createSettingsRealms } from '../support/settings_realms.ts';

test('a person signs in at oidc-provider, and its code, verifier and nonce are accepted there once', async () => {
  const server = createServer();
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  atEnd(() => {
    server.closeAllConnections();
    server.close();
  });
  const issuer = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  const fixtures = await startService();
  const { accounts } = await createSettingsRealms(fixtures.db);
  const place = {
    ...{ store: await fixtures.db.engine.access.storeId(), realm: accounts },
    profile: await createOidcProfile(fixtures.db, accounts, issuer),
  };
  const token = await fixtures.token('realms:write');
  const change = { data: { type: realm.type, redirect_uris: [REDIRECT_URI] } };
  expect((await fixtures.put(`/v2/authentication-realms/${accounts}`, token, change)).status).toBe(200);
  const port = String(findPort());
  const url = `http://127.0.0.1:${port}`;
  const redirect_uri = callbackUrl(url, place, {}).slice(0, -1);
  const oidc = new Provider(issuer, {
    clients: [{ client_id: 'shop', client_secret: 'a secret of the shop', redirect_uris: [redirect_uri] }],
    claims: { openid: ['sub'], email: ['email'], profile: ['name'] },
    findAccount: (_: unknown, id: string) => ({ accountId: id, claims: () => ({ sub: id }) }),
  });
  server.on('request', oidc.callback());
  const flags = ['--port', port, '--allow-private', '127.0.0.0/8'];
  await startServiceProcess({ database: fixtures.database, scope: 'users:read', flags });

  const code = await browse(loginUrl(url, place), 'anna');
  const opened = openOidcFlow(fixtures.db.keyring, systemClock).openCode(code, accounts);
  expect(opened?.profileId).toBe(place.profile);
  const exchange = () =>
    fetch(`${issuer}/token`, {
      method: 'POST',
      headers: { Authorization: `Basic ${btoa('shop:a+secret+of+the+shop')}` },
      body: new URLSearchParams({
        ...{ grant_type: 'authorization_code', code: opened?.providerCode ?? '', redirect_uri },
        code_verifier: opened?.codeVerifier ?? '',
      }),
    });
  const answer = await exchange();
  const { id_token = '' } = (await answer.json()) as { id_token?: string };
  const claims = JSON.parse(Buffer.from(id_token.split('.')[1] ?? '', 'base64url').toString() || '{}');
  expect([answer.status, claims]).toMatchObject([200, { sub: 'anna', nonce: opened?.nonce }]);
  expect((await exchange()).status).toBe(400);
});

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
