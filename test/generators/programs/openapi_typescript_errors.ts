import createClient from 'openapi-fetch';
import type { components, paths } from './generated.ts';

type ErrorResponse = components['schemas']['ErrorResponse'];

const { BASE_URL = '', REALM = '', USER = '', OIDC_LINK = '', ...variables } = process.env;

const client = createClient<paths>({ baseUrl: BASE_URL });
const USERS = '/v2/authentication-realms/{realm_id}/user-authentication-info';
const LINK =
  '/v2/authentication-realms/{realm_id}/user-authentication-info/{user_id}/user-authentication-oidc-profile-info/{id}';
const realm = { realm_id: REALM };
const authorized = (token = 'TOKEN') => ({ Authorization: `Bearer ${variables[token]}` });
const lookup = (token?: string, id = OIDC_LINK) =>
  client.GET(LINK, { params: { path: { ...realm, user_id: USER, id } }, headers: authorized(token) });
const create = (name: string, token?: string, header = {}) =>
  client.POST(USERS, {
    params: { path: realm, header },
    headers: authorized(token),
    body: { data: { type: 'user_authentication_info', name, email: 'jane@example.com' } },
  });
const update = (subject: string, header = {}) =>
  client.PUT(LINK, {
    params: { path: { ...realm, user_id: USER, id: OIDC_LINK }, header },
    headers: authorized(),
    body: { data: { type: 'user_authentication_oidc_profile_info', subject } },
  });

/** The status and the first error, which has the same type for every status. */
async function errorOf(answer: Promise<{ readonly error?: ErrorResponse; readonly response: Response }>) {
  const { error, response } = await answer;
  const [first] = error?.errors ?? [];
  return [response.status, first?.status, first?.title, first?.source?.pointer ?? first?.source?.parameter];
}

const key = crypto.randomUUID();
const slow = create('Slow', 'TOKEN', { 'Idempotency-Key': key });
await Bun.sleep(100);
console.log(
  JSON.stringify([
    await errorOf(create('Slow', 'TOKEN', { 'Idempotency-Key': key })),
    await errorOf(create('')),
    await errorOf(
      client.GET(USERS, { params: { path: realm, query: { filter: 'eq(name' } }, headers: authorized() }),
    ),
    await errorOf(lookup('WRONG_TOKEN')),
    await errorOf(create('Jane Doe', 'READER_TOKEN')),
    await errorOf(lookup('TOKEN', USER)),
    await errorOf(
      client.GET('/v2/authentication-realms/{realm_id}/changes', {
        params: { path: realm, query: { after: variables.EXPIRED_CURSOR ?? '' } },
        headers: authorized(),
      }),
    ),
    await errorOf(update('jane', { 'If-Match': '"another"' })),
    await errorOf(create('x'.repeat(70_000))),
    await errorOf(update(variables.TAKEN_SUBJECT ?? '')),
    await errorOf(lookup('LIMITED_TOKEN')),
    await errorOf(lookup('TOKEN', variables.BROKEN_LINK)),
    await errorOf(lookup('TOKEN', variables.FAILING_LINK)),
  ]),
);
await slow;
