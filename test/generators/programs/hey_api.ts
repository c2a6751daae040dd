import { client } from './generated/client.gen.ts';
import {
  createUserAuthenticationInfo,
  getUserAuthenticationOidcProfileInfo,
  getUserAuthenticationPasswordProfileInfo,
} from './generated/sdk.gen.ts';

const { BASE_URL = '', TOKEN = '', REALM = '', USER = '', OIDC_LINK = '', PASSWORD_LINK = '' } = process.env;

client.setConfig({ baseUrl: BASE_URL, auth: TOKEN });
const oidcLink = (id: string) =>
  getUserAuthenticationOidcProfileInfo({ path: { realm_id: REALM, user_id: USER, id } });

const oidc = await oidcLink(OIDC_LINK);
const password = await getUserAuthenticationPasswordProfileInfo({
  path: { realm_id: REALM, user_id: USER, id: PASSWORD_LINK },
});
const created = await createUserAuthenticationInfo({
  path: { realm_id: REALM },
  body: { data: { type: 'user_authentication_info', name: 'Jane Doe', email: 'jane@example.com' } },
});
const absent = await oidcLink(USER);

console.log(
  JSON.stringify({
    oidc: [oidc.response?.status, oidc.data?.data.subject],
    password: [password.response?.status, password.data?.data.username],
    created: [created.response?.status, created.data?.data.name],
    absent: [absent.response?.status, absent.error?.errors[0]?.title],
  }),
);
