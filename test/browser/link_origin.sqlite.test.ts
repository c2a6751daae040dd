import { expect, setDefaultTimeout, test } from 'bun:test';
import { oidcProfileInfo, passwordProfile, realm, user } from '../../src/model/resources.ts';
import { signIn } from '../support/console_sign_in.ts';
import { realmLines, runImport } from '../support/import_fixtures.ts';
import { newPerson, signedInOf, startTokenCalls } from '../support/oidc_token_calls.ts';
import { createRecord, kindOf } from '../support/resource_cases.ts';
import { enableSelfSignup, requestTokens, selfSignupBody } from '../support/sign_in.ts';
import { expectNoErrors, expectNoErrorsInAnyView, openSignedIn, READ_SCOPE } from './console_session.ts';
import { BROWSER_TEST_MS } from './console_window.ts';

/** How the links of a user came into being, on the page of the user. */

setDefaultTimeout(BROWSER_TEST_MS);

const calls = await startTokenCalls();
const { service, provider, realm: realmId, profile } = calls;
const writer = await service.token(
  'realms:write settings:write users:write profiles:write profile-infos:write',
);
const home = { realm: realmId, oidcProfile: profile, passwordProfile: '', user: '' };
const passwords = await createRecord(service, writer, {
  ...{ kind: kindOf(passwordProfile), home, data: { name: 'Passwords' } },
});

const accountRealm = `/v2/authentication-realms/${realmId}`;
const linking = { type: realm.type, duplicate_email_policy: 'api_only' };
expect((await service.put(accountRealm, writer, { data: linking })).status).toBe(200);
await enableSelfSignup(service, writer);

const link = (subject: string) => ({
  ...{ type: oidcProfileInfo.type, subject, issuer: provider.issuer, oidc_profile_id: profile },
});

/** Resolves to the ID of the user. */
async function createUser(email: string, included: readonly object[] = []): Promise<string> {
  const data = { type: user.type, name: 'Jane Doe', email };
  const answer = await service.post(`${accountRealm}/user-authentication-info`, writer, { data, included });
  expect(answer.status).toBe(201);
  return ((await answer.json()) as { data: { id: string } }).data.id;
}

async function addLink(token: string): Promise<string> {
  const { sub, email } = newPerson();
  const id = await createUser(String(email));
  const path = `${accountRealm}/user-authentication-info/${id}/user-authentication-oidc-profile-info`;
  const answer = await service.post(path, token, { data: link(String(sub)) });
  expect(answer.status).toBe(201);
  return id;
}

async function signUp(): Promise<string> {
  const { email } = newPerson();
  const body = selfSignupBody(passwords.id, email, { email });
  return (await signedInOf(await requestTokens(service, calls.token, body))).user;
}

/** How a link comes into being, and what the page of its user says to an administrator. */
const ORIGINS: readonly (readonly [string, () => Promise<string>, string])[] = [
  ['a first sign-in', async () => (await signedInOf(await calls.signIn())).user, 'signed up through sign-in'],
  ['a self-signup', signUp, 'signed up through sign-in'],
  [
    'a sign-in with the address of a user',
    async () => {
      const jane = newPerson();
      const id = await createUser(String(jane.email));
      expect((await signedInOf(await calls.signIn(jane))).user).toBe(id as never);
      return id;
    },
    'linked at a sign-in through sign-in',
  ],
  [
    'a client that creates user and link',
    async () => createUser('jack@example.com', [link('auth0|jack')]),
    'created with the user by test',
  ],
  ['a client that adds a link', () => addLink(writer), 'added by test'],
  [
    'a person in the console',
    async () => addLink((await signIn(service, { scope: 'profile-infos:write' })).access_token),
    'added in the console (anna)',
  ],
];

test.each(ORIGINS)('the page of a user says how a link came into being: %s', async (_, make, words) => {
  const id = await make();
  const window = await openSignedIn(service, `#/realms/${realmId}/users/${id}`, {
    scope: `${READ_SCOPE} admin`,
  });
  await window.page.getByRole('row').getByText(words, { exact: true }).waitFor();
  // Whether somebody vouched for the address is for the service alone.
  expect(await window.page.getByText(/vouched/i).count()).toBe(0);
  await expectNoErrorsInAnyView(window);
});

test('the page of a user says that its links were imported', async () => {
  const { ids, all } = realmLines();
  expect((await runImport(service.db, all)).refusals).toEqual([]);
  const window = await openSignedIn(service, `#/realms/${ids.realm}/users/${ids.user}`);
  await window.page.getByText('imported', { exact: true }).nth(1).waitFor();
  await expectNoErrors(window);
});

test('the page of a user names the client of a link by its ID, and none without changes:read', async () => {
  const { user: id } = await signedInOf(await calls.signIn());
  const fragment = `#/realms/${realmId}/users/${id}`;
  const reader = await openSignedIn(service, fragment, { scope: READ_SCOPE });
  const words = `created with the user by ${calls.client.clientId}`;
  await reader.page.getByRole('row').getByText(words, { exact: true }).waitFor();
  await expectNoErrors(reader);
  const scope = READ_SCOPE.replace(' changes:read', '');
  const other = await openSignedIn(service, fragment, { scope });
  await other.page.getByRole('row').locator('time').first().waitFor();
  expect(await other.page.getByText('created with the user').count()).toBe(0);
  await expectNoErrors(other);
});
