import { createClient } from './generated/client/index.ts';
import {
  createUserAuthenticationInfo,
  getUserAuthenticationOidcProfileInfo,
  listChanges,
  listUserAuthenticationInfo,
  updateUserAuthenticationOidcProfileInfo,
} from './generated/sdk.gen.ts';
import type { ErrorResponse } from './generated/types.gen.ts';

const { BASE_URL = '', REALM = '', USER = '', OIDC_LINK = '', ...variables } = process.env;

const clientOf = (token: string) => createClient({ baseUrl: BASE_URL, auth: variables[token] ?? '' });
const client = clientOf('TOKEN');
const link = { realm_id: REALM, user_id: USER, id: OIDC_LINK };
const lookup = (by = client, id = OIDC_LINK) =>
  getUserAuthenticationOidcProfileInfo({ client: by, path: { ...link, id } });
const create = (name: string, by = client, headers = {}) =>
  createUserAuthenticationInfo({
    client: by,
    path: { realm_id: REALM },
    headers,
    body: { data: { type: 'user_authentication_info', name, email: 'jane@example.com' } },
  });
const update = (subject: string, headers = {}) =>
  updateUserAuthenticationOidcProfileInfo({
    client,
    path: link,
    headers,
    body: { data: { type: 'user_authentication_oidc_profile_info', subject } },
  });

/** The status and the first error, which has the same type for every status. */
async function errorOf(answer: Promise<{ readonly error?: ErrorResponse; readonly response?: Response }>) {
  const { error, response } = await answer;
  const [first] = error?.errors ?? [];
  return [response?.status, first?.status, first?.title, first?.source?.pointer ?? first?.source?.parameter];
}

const key = crypto.randomUUID();
const slow = create('Slow', client, { 'Idempotency-Key': key });
await Bun.sleep(100);
console.log(
  JSON.stringify([
    await errorOf(create('Slow', client, { 'Idempotency-Key': key })),
    await errorOf(create('')),
    await errorOf(
      listUserAuthenticationInfo({ client, path: { realm_id: REALM }, query: { filter: 'eq(name' } }),
    ),
    await errorOf(lookup(clientOf('WRONG_TOKEN'))),
    await errorOf(create('Jane Doe', clientOf('READER_TOKEN'))),
    await errorOf(lookup(client, USER)),
    await errorOf(
      listChanges({ client, path: { realm_id: REALM }, query: { after: variables.EXPIRED_CURSOR ?? '' } }),
    ),
    await errorOf(update('jane', { 'If-Match': '"another"' })),
    await errorOf(create('x'.repeat(70_000))),
    await errorOf(update(variables.TAKEN_SUBJECT ?? '')),
    await errorOf(lookup(clientOf('LIMITED_TOKEN'))),
    await errorOf(lookup(client, variables.BROKEN_LINK)),
    await errorOf(lookup(client, variables.FAILING_LINK)),
  ]),
);
await slow;
