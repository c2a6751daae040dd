import { expect, test } from 'bun:test';
import type { IdentityResult } from '../../src/access/issuers/identity_providers.ts';
import { LIMITS } from '../../src/model/limits.ts';
import { NONCE, OIDC_CLIENT, startIdentityProvider } from '../support/identity_provider.ts';
import { json } from '../support/issuers.ts';
import type { Json } from '../support/token_forge.ts';

/** ID tokens that apps send for a check. */

const acme = await startIdentityProvider();
const { issuer } = acme;
const { clientId } = OIDC_CLIENT;
const JANE = {
  ...{ issuer, subject: 'auth0|jane', email: 'jane@example.com', isEmailVerified: true },
  ...{ names: {}, amr: undefined },
};

async function identify(claims: Json = {}, nonce: string | undefined = NONCE): Promise<IdentityResult> {
  const idToken = await acme.mint(claims);
  return acme.open().identifyByToken({ issuer, clientId, idToken, nonce });
}

test('an ID token identifies the person, and no other request is sent than for metadata and keys', async () => {
  acme.publish();
  const before = ['/token', '/userinfo'].map(acme.requests);
  expect(await identify({ email: undefined })).toEqual({ ...JANE, email: undefined, isEmailVerified: false });
  expect(await identify()).toEqual(JANE);
  expect(['/token', '/userinfo'].map(acme.requests)).toEqual(before);
});

test.each<[string, string | undefined, string | null | undefined, boolean]>([
  ['equal', NONCE, NONCE, true],
  ['in neither', undefined, undefined, true],
  ['another', NONCE, 'm'.repeat(22), false],
  ['in the token alone', undefined, NONCE, false],
  ['in the request alone', NONCE, undefined, false],
  ['null in the token', undefined, null, false],
])('the nonce of an ID token and its check is %s', async (_name, sent, claimed, isAccepted) => {
  acme.publish();
  const idToken = await acme.mint({ nonce: claimed });
  const found = await acme.open().identifyByToken({ issuer, clientId, idToken, nonce: sent });
  expect(found).toEqual(isAccepted ? JANE : 'id_token_refused');
});

test('an ID token is refused ten minutes after it was issued, whatever its lifetime', async () => {
  acme.publish();
  const ageMax = LIMITS.idTokenAgeMsMax / 1000;
  const issuedBefore = (seconds: number) => ({ iat: acme.now() - seconds, exp: acme.now() + 3_600 });
  expect(await identify(issuedBefore(ageMax - 2))).toEqual(JANE);
  expect(await identify(issuedBefore(ageMax + 1))).toBe('id_token_refused');
});

test('an ID token for another client is refused', async () => {
  acme.publish();
  expect(await identify({ aud: 'com.example.app' })).toBe('id_token_refused');
});

test('an ID token can be checked where the provider offers no sign-in by code', async () => {
  acme.publish({ token_endpoint: undefined, code_challenge_methods_supported: ['plain'] });
  expect(await acme.open().metadata(issuer)).toBeUndefined();
  expect(await identify()).toEqual(JANE);
});

test.each<[string, () => void]>([
  ['are not there', () => acme.routes.delete('/keys')],
  ['are no key set', () => acme.routes.set('/keys', json({ keys: 'none' }))],
  ['are of an issuer that changed', () => acme.publish({ issuer: `${issuer}/other` })],
  ['are at no URL', () => acme.publish({ jwks_uri: 7 })],
  [
    'are at a private address elsewhere',
    () => acme.publish({ jwks_uri: issuer.replace('127.0.0.1', 'localhost') }),
  ],
])('a provider is unavailable whose keys %s', async (_name, prepare) => {
  acme.publish();
  prepare();
  expect(await identify()).toBe('keys_unreadable');
});
