import { createClient } from './generated/client/index.ts';
import {
  createUserAuthenticationInfo,
  getUserAuthenticationOidcProfileInfo,
  updateUserAuthenticationOidcProfileInfo,
} from './generated/sdk.gen.ts';
import type { ErrorResponse } from './generated/types.gen.ts';

const { REALM = '', USER = '', OIDC_LINK = '', ...variables } = process.env;

const clientOf = (service: string, token: string) =>
  createClient({ baseUrl: variables[service] ?? '', auth: variables[token] ?? '' });
const client = clientOf('BASE_URL', 'TOKEN');
const link = { realm_id: REALM, user_id: USER, id: OIDC_LINK };
const lookup = (by = client, id = OIDC_LINK) =>
  getUserAuthenticationOidcProfileInfo({ client: by, path: { ...link, id } });
const create = (name: string, email: string, by = client) =>
  createUserAuthenticationInfo({
    client: by,
    path: { realm_id: REALM },
    body: { data: { type: 'user_authentication_info', name, email } },
  });
const update = (subject: string, headers = {}) =>
  updateUserAuthenticationOidcProfileInfo({
    client,
    path: link,
    headers,
    body: { data: { type: 'user_authentication_oidc_profile_info', subject } },
  });

/** The status and the first error, which has the same type whatever the status is. */
async function errorOf(answer: Promise<{ readonly error?: ErrorResponse; readonly response?: Response }>) {
  const { error, response } = await answer;
  const [first] = error?.errors ?? [];
  return [response?.status, first?.status, first?.title, first?.source?.pointer];
}

console.log(
  JSON.stringify([
    await errorOf(create('', 'jane@example.com')),
    await errorOf(lookup(clientOf('BASE_URL', 'WRONG_TOKEN'))),
    await errorOf(create('Jane Doe', 'jane@example.com', clientOf('BASE_URL', 'READER_TOKEN'))),
    await errorOf(lookup(client, USER)),
    await errorOf(update('jane', { 'If-Match': '"another"' })),
    await errorOf(update(variables.TAKEN_SUBJECT ?? '')),
    await errorOf(lookup(clientOf('LIMITED_URL', 'LIMITED_TOKEN'))),
    await errorOf(lookup(clientOf('FAILING_URL', 'FAILING_TOKEN'))),
  ]),
);
