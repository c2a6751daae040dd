import { expect, setDefaultTimeout, test } from 'bun:test';
import { oidcProfile } from '../../src/model/resources.ts';
import { systemClock } from '../../src/ops/process/clock.ts';
import { secretLocation } from '../../src/records/format.ts';
import { DISCOVERY, startIssuer } from '../support/issuers.ts';
import { CLIENT_SECRET, createOidcProfile, outcomeOf, redirectOf } from '../support/oidc_sign_in.ts';
import { newPerson, startTokenCalls } from '../support/oidc_token_calls.ts';
import { errorsOf } from '../support/service.ts';

setDefaultTimeout(60_000);

/** Profiles whose provider or client secret is another one when a sign-in ends. */

const calls = await startTokenCalls();
const { service, provider, realm } = calls;
const { db } = service;
const writer = await service.token('profiles:write');

/** A profile of the provider, and a function that points it at another one. */
async function createMovable() {
  const profile = await createOidcProfile(db, realm, provider.issuer);
  const other = await startIssuer();
  other.publish();
  const path = `/v2/authentication-realms/${realm}/${oidcProfile.collection}/${profile}`;
  const move = (more: object = { client_secret: 'its own' }) => {
    const data = { type: oidcProfile.type, discovery_url: other.issuer + DISCOVERY, ...more };
    return service.put(path, writer, { data });
  };
  return { profile, other, move };
}

test('a state of the issuer that the profile had before is 400 at the callback', async () => {
  const { profile, move } = await createMovable();
  const { query, cookie } = redirectOf(await calls.login({ elasticpath_commerce_cloud_profile_id: profile }));
  expect((await move()).status).toBe(200);
  const answer = await calls.callback({ state: query.state, code: 'c' }, cookie, { profile });
  expect(await outcomeOf(answer)).toMatchObject({
    status: 400,
    text: 'redirect_uri or issuer of the sign-in has changed: sign in again',
  });
});

test('a code of the issuer that the profile had before is refused, and neither provider is asked', async () => {
  const { profile, other, move } = await createMovable();
  const code = await calls.authorize(newPerson(), { at: { profile } });
  const refused = await move({});
  expect([refused.status, (await errorsOf(refused))[0]?.source]).toEqual([
    422,
    { pointer: '/data/client_secret' },
  ]);
  expect((await move()).status).toBe(200);
  const before = calls.exchanges();
  expect((await calls.send(code)).status).toBe(400);
  expect(calls.exchanges()).toBe(before);
  expect([...other.requestCounts.keys()]).toEqual([DISCOVERY]);
});

test('a sign-in is 503 where the profile has no client secret, or one that the master key does not open, which is logged', async () => {
  const elsewhere = secretLocation(oidcProfile, 'client_secret', [realm, systemClock.mintId()]);
  const foreign = db.keyring.seal('oidc-client-secret', elsewhere, CLIENT_SECRET);
  const before = calls.exchanges();
  for (const client_secret of [undefined, foreign]) {
    const profile = await createOidcProfile(db, realm, provider.issuer, { client_secret });
    const answer = await calls.send(await calls.authorize(newPerson(), { at: { profile } }));
    expect([answer.status, (await errorsOf(answer))[0]?.code]).toEqual([503, 'provider_unavailable']);
    const failure = { realm, profile, cause: 'client_secret_unusable', count: 1 };
    expect(service.log).toContainEqual({ event: 'oidc_sign_in_failed', ...failure });
  }
  expect(calls.exchanges()).toBe(before);
});
