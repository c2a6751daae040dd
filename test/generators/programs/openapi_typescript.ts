import createClient from 'openapi-fetch';
import type { paths } from './generated.ts';

const { BASE_URL = '', TOKEN = '', REALM = '', USER = '', OIDC_LINK = '', PASSWORD_LINK = '' } = process.env;

const client = createClient<paths>({ baseUrl: BASE_URL, headers: { Authorization: `Bearer ${TOKEN}` } });
const OIDC =
  '/v2/authentication-realms/{realm_id}/user-authentication-info/{user_id}/user-authentication-oidc-profile-info/{id}';
const PASSWORD =
  '/v2/authentication-realms/{realm_id}/user-authentication-info/{user_id}/user-authentication-password-profile-info/{id}';
const oidcLink = (id: string) =>
  client.GET(OIDC, { params: { path: { realm_id: REALM, user_id: USER, id } } });

const oidc = await oidcLink(OIDC_LINK);
const password = await client.GET(PASSWORD, {
  params: { path: { realm_id: REALM, user_id: USER, id: PASSWORD_LINK } },
});
const created = await client.POST('/v2/authentication-realms/{realm_id}/user-authentication-info', {
  params: { path: { realm_id: REALM } },
  body: { data: { type: 'user_authentication_info', name: 'Jane Doe', email: 'jane@example.com' } },
});
const absent = await oidcLink(USER);

console.log(
  JSON.stringify({
    oidc: [oidc.response.status, oidc.data?.data.subject],
    password: [password.response.status, password.data?.data.username],
    created: [created.response.status, created.data?.data.name],
    absent: [absent.response.status, absent.error?.errors[0]?.title],
  }),
);
