import { expect, test } from 'bun:test';
import { IMPLICIT_SCOPES } from '../../../src/model/principal.ts';
import { newPerson, startTokenCalls } from '../../support/oidc_token_calls.ts';
import { fetchWithRetry } from '../../support/retry.ts';
import {
  ACCOUNT_TOKEN_HEADER,
  type AccountTokensAnswer,
  createSignInClient,
  END_USER,
  RENEWAL,
} from '../../support/sign_in.ts';
import { openJsSdk } from './js_sdk.ts';

/** The unmodified SDK of storefronts signs in an account member through a provider (docs/clients.md). */

const calls = await startTokenCalls();
const key = await createSignInClient(calls.service, {
  scope: 'sign-in sign-up',
  implicitScopes: IMPLICIT_SCOPES,
  implicitRealms: new Set([calls.realm]),
  ratePerAddress: { requests: 1_000, seconds: 60 },
});

test.each([
  ['by the ID alone', { clientId: key.clientId }, {}],
  ['by the secret, with the address of the end user', key, END_USER],
])(
  'the JavaScript SDK signs in a new person through a provider %s, finds the same user again, and renews',
  async (_, client, headers) => {
    const sdkWith = (more: object) =>
      openJsSdk(calls.service.url, client, {
        custom_fetch: fetchWithRetry,
        headers: { ...headers, ...more },
      } as never).AccountMembers;
    const sdk = sdkWith({});
    const send = async (code: string) =>
      (await sdk.GenerateAccountToken(calls.bodyOf(code).data as never)) as unknown as AccountTokensAnswer;
    const anna = newPerson({ name: 'Anna Holm' });
    const code = await calls.authorize(anna);
    const first = await send(code);
    const user = first.meta.account_member_id;
    expect(first).toMatchObject({
      data: [{ account_id: user, account_name: 'Anna Holm', expires: expect.any(String) }],
    });
    await expect(send(code)).rejects.toMatchObject({
      errors: [{ status: '400', detail: 'authentication failed' }],
    });
    const second = await send(await calls.authorize(anna));
    expect(second.meta.account_member_id).toBe(user);
    const renewing = sdkWith({ [ACCOUNT_TOKEN_HEADER]: second.data[0]?.token });
    expect(await renewing.GenerateAccountToken(RENEWAL.data as never)).toMatchObject({
      data: [{ account_id: user, account_name: 'Anna Holm' }],
    });
  },
);
