import { describe, expect, test } from 'bun:test';
import { fetchWithRetry } from '../../support/retry.ts';
import { startService } from '../../support/service.ts';
import { createSettingsRealms } from '../../support/settings_realms.ts';
import {
  ACCOUNT_TOKEN_HEADER,
  type AccountTokensAnswer,
  createPassword,
  createSignInClient,
  END_USER,
  passwordBody,
  RENEWAL,
} from '../../support/sign_in.ts';
import { openJsSdk } from './js_sdk.ts';
import { shopperSdk } from './sdks.ts';

const { createAnAccessToken, postV2AccountMembersTokens, client: shopper } = shopperSdk;

/** Unmodified SDKs of storefronts sign in an account member, and renew its token (docs/clients.md). */

const service = await startService();
const realms = await createSettingsRealms(service.db);
const jane = await createPassword(service.db, realms.accounts);

const dataOf = (body: object) => (body as { readonly data: object }).data;

const key = await createSignInClient(service, {
  implicitScopes: new Set(['sign-in']),
  implicitRealms: new Set([realms.accounts]),
  ratePerAddress: { requests: 1_000, seconds: 60 },
});

/** The clients of a storefront: in a browser, and on a server with and without the address of the end user. */
const CLIENTS = [
  ['the ID alone of a key', async () => ({ clientId: key.clientId }), {}],
  ['the secret of the same key, which reports addresses', async () => key, END_USER],
  ['a client that reports no addresses', () => createSignInClient(service, { endUserAddress: 'none' }), {}],
] as const;

describe.each(CLIENTS)('%s', (_, create, headers) => {
  test('signs in with the JavaScript SDK, renews the token, and gets a wrong password once', async () => {
    const client = await create();
    let requests = 0;
    const custom_fetch = (url: string, init: RequestInit) => {
      requests += 1;
      return fetchWithRetry(url, init);
    };
    const open = (more: object) =>
      openJsSdk(service.url, client, { custom_fetch, headers: { ...headers, ...more } } as never);
    const sdk = open({});
    const signedIn = (await sdk.AccountMembers.GenerateAccountToken(
      dataOf(passwordBody(jane)) as never,
    )) as unknown as AccountTokensAnswer;
    expect(signedIn).toMatchObject({
      data: [{ account_id: jane.user, account_name: 'Jane Doe', expires: expect.any(String) }],
      meta: { account_member_id: jane.user },
    });
    const renewing = open({ [ACCOUNT_TOKEN_HEADER]: signedIn.data[0]?.token });
    const renewed = (await renewing.AccountMembers.GenerateAccountToken(
      dataOf(RENEWAL) as never,
    )) as unknown as AccountTokensAnswer;
    expect(renewed).toMatchObject({ data: [{ account_id: jane.user }] });
    const before = requests;
    const wrong = dataOf(passwordBody(jane, { password: 'wrong horse' }));
    await expect(sdk.AccountMembers.GenerateAccountToken(wrong as never)).rejects.toMatchObject({
      errors: [{ status: '400', detail: 'authentication failed' }],
    });
    expect(requests).toBe(before + 1);
  });

  test('signs in with the shopper SDK, and renews the token', async () => {
    const client = await create();
    const { clientId } = client;
    const secret = 'secret' in client ? client.secret : undefined;
    shopper.setConfig({ baseUrl: service.url, fetch: fetchWithRetry });
    const grant =
      secret === undefined
        ? ({ grant_type: 'implicit', client_id: clientId } as const)
        : ({ grant_type: 'client_credentials', client_id: clientId, client_secret: secret } as const);
    const { data: granted } = await createAnAccessToken({ body: grant as never });
    const authorization = { Authorization: `Bearer ${granted?.access_token}`, ...headers };
    shopper.setConfig({ headers: authorization });
    const { data, response } = await postV2AccountMembersTokens({ body: passwordBody(jane) as never });
    const signedIn = data as unknown as AccountTokensAnswer;
    expect([response.status, signedIn.data[0]?.account_id]).toEqual([201, jane.user]);
    const renewal = await postV2AccountMembersTokens({
      body: RENEWAL as never,
      headers: { [ACCOUNT_TOKEN_HEADER]: signedIn.data[0]?.token ?? '' },
    });
    expect(renewal.response.status).toBe(201);
    const wrong = await postV2AccountMembersTokens({
      body: passwordBody(jane, { password: 'wrong horse' }) as never,
    });
    expect([wrong.response.status, wrong.error as unknown]).toMatchObject([
      400,
      { errors: [{ detail: 'authentication failed' }] },
    ]);
  });
});
