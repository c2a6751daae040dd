import { expect, test } from 'bun:test';
import { createFixture, errorsOf, startService } from '../../support/service.ts';

const service = await startService();
const { realm } = await createFixture(service.db);
const users = `/v2/authentication-realms/${realm}/user-authentication-info`;
const writer = await service.token('users:write');

async function errorOf(answer: Promise<Response>): Promise<readonly [number, string | undefined, string]> {
  const response = await answer;
  const [error] = await errorsOf(response);
  return [response.status, error?.code, String(error?.detail)];
}

test('a 401 says whether no token was sent, or one that is not valid', async () => {
  const text = 'Unable to validate access token';
  const code = 'unauthenticated';
  expect(await errorOf(service.get(users))).toEqual([401, code, `${text}: none was sent`]);
  expect(await errorOf(service.get(users, 'x'))).toEqual([401, code, `${text}: not valid or expired`]);
});

test('a 401 for an account token says whether none was sent, or one that is not valid', async () => {
  const signIn = await service.token('sign-in');
  const renewal = {
    data: {
      type: 'account_management_authentication_token',
      authentication_mechanism: 'account_management_authentication_token',
    },
  };
  const renew = (headers: Record<string, string>) =>
    errorOf(service.post('/v2/account-members/tokens', signIn, renewal, headers));
  const text = 'Unable to validate access token';
  const code = 'invalid_account_token';
  expect(await renew({})).toEqual([401, code, `${text}: none was sent`]);
  const sent = { 'EP-Account-Management-Authentication-Token': 'x' };
  expect(await renew(sent)).toEqual([401, code, `${text}: not valid or expired`]);
});

test('a 403 names what the token lacks: a scope, one of several, or all realms', async () => {
  const code = 'insufficient_scope';
  const refused = (missing: string) => [403, code, `forbidden: needs ${missing}`] as const;
  expect(await errorOf(service.get(users, writer))).toEqual(refused('the scope users:read'));
  const batch = `/v2/authentication-realms/${realm}/batch`;
  const reader = await service.token('users:read');
  expect(await errorOf(service.post(batch, reader, { requests: [] }))).toEqual(
    refused(
      'one of the scopes profiles:write, users:write, oidc-profile-infos:write, password-profile-infos:write',
    ),
  );
  expect(await errorOf(service.get('/v2/account-members', writer))).toEqual(
    refused('one of the scopes users:read, sign-in'),
  );
  const limited = await service.token('realms:write', new Set([realm]));
  const data = { type: 'authentication-realm', name: 'Second' };
  expect(await errorOf(service.post('/v2/authentication-realms', limited, { data }))).toEqual(
    refused('access to all realms'),
  );
});

test('a 415 names the media type to send', async () => {
  const answer = service.post(users, writer, '<user/>', { 'Content-Type': 'application/xml' });
  expect(await errorOf(answer)).toEqual([415, 'unsupported_media_type', 'Send the body as application/json']);
});

test('a 400 for a body that is not JSON names line and column, and nothing of the body', async () => {
  const body = '{\n  "data": {\n    "name": "Jane",\n    "note": correct horse\n  }\n}';
  expect(await errorOf(service.post(users, writer, body))).toEqual([
    400,
    'malformed',
    'body: is not JSON at line 4, column 13',
  ]);
  expect(await errorOf(service.post(users, writer, ''))).toEqual([400, 'malformed', 'body: is empty']);
});
