import { expect, test } from 'bun:test';
import { connect } from '../../src/client/client.ts';
import type { Uuid } from '../../src/model/id.ts';
import { errorOf } from '../support/client_library.ts';
import { NONCE, OIDC_CLIENT, startIdentityProvider } from '../support/identity_provider.ts';
import { createOidcProfile } from '../support/oidc_sign_in.ts';
import { startService } from '../support/service.ts';
import { createSettingsRealms } from '../support/settings_realms.ts';
import { createPassword, createSignInClient, enableSelfSignup } from '../support/sign_in.ts';

/** `checkIdToken` and `signUp` of the client library: docs/client.md. */

const service = await startService({ allowPrivate: '127.0.0.0/8' });
const { accounts } = await createSettingsRealms(service.db);
const { profile: passwords } = await createPassword(service.db, accounts);
const provider = await startIdentityProvider();
provider.publish();
const { clientId: client_id } = OIDC_CLIENT;
const profile = await createOidcProfile(service.db, accounts, provider.issuer, { client_id });
const place: readonly [Uuid, Uuid] = [accounts, profile];
const writer = await service.token('settings:write');
const scope = 'sign-in sign-up oidc-profile-infos:write';
const { clientId, secret: clientSecret } = await createSignInClient(service, { scope });
const END_USER = { endUserAddress: '192.0.2.7' };

function openClient() {
  const requests: string[] = [];
  const send = (url: string, init: RequestInit) => {
    requests.push(new URL(url).pathname);
    return fetch(url, init);
  };
  return { directory: connect({ url: service.url, clientId, clientSecret, fetch: send }), requests };
}

const { directory } = openClient();
const tokenOf = (sub: string) => provider.mint({ sub, email: `${sub}@example.com` });

test('checkIdToken creates the user of an ID token, and finds it at the next one', async () => {
  const check = async () =>
    directory.checkIdToken(place, { idToken: await tokenOf('anna'), nonce: NONCE }, END_USER);
  const { userId, infoId, ...created } = (await check()) as Record<string, unknown>;
  expect(created).toEqual({ verified: true, outcome: 'created' });
  expect([userId, infoId]).toEqual([expect.any(String), expect.any(String)]);
  expect<object>(await check()).toEqual({ verified: true, outcome: 'known', userId, infoId });
});

const jill = { username: `jill-${process.pid}`, password: 'correct horse battery' };
const members = {
  ...jill,
  ...{ password_profile_id: passwords, name: 'Jill Hill', email: 'jill@example.com', family_name: null },
};

test('signUp registers a user who signs in by password, and throws if the name is taken or it is switched off', async () => {
  await enableSelfSignup(service, writer, false);
  expect(await errorOf(directory.signUp(members, END_USER))).toMatchObject({ status: 403 });
  await enableSelfSignup(service, writer);
  const { userId, device } = await directory.signUp(members, END_USER);
  const checked = await directory.checkPassword([accounts, passwords], jill, { ...END_USER, device });
  expect(checked).toMatchObject({ verified: true, userId });
  const { directory: own, requests } = openClient();
  expect(await errorOf(own.signUp(members, END_USER))).toMatchObject({ status: 422 });
  expect(requests).toEqual(['/oauth/access_token', '/v2/account-members/tokens']);
});

test('checkIdToken links the identity to a user who is signed in, and names nobody by another nonce', async () => {
  await enableSelfSignup(service, writer);
  const { userId } = await directory.signUp({ ...members, username: 'jack' }, END_USER);
  const idToken = await tokenOf('jack');
  const forged = { idToken, nonce: 'another nonce', userId };
  expect(await directory.checkIdToken(place, forged, END_USER)).toEqual({ verified: false });
  const linked = await directory.checkIdToken(place, { idToken, nonce: NONCE, userId }, END_USER);
  expect(linked).toMatchObject({ verified: true, outcome: 'linked', userId });
});
