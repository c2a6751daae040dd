import {
  createUserAuthenticationInfo,
  getUserAuthenticationOidcProfileInfo,
  getUserAuthenticationPasswordProfileInfo,
} from './generated.ts';

const { TOKEN = '', REALM = '', USER = '', OIDC_LINK = '', PASSWORD_LINK = '' } = process.env;

const authorized = { headers: { Authorization: `Bearer ${TOKEN}` } };
const oidcLink = (id: string) => getUserAuthenticationOidcProfileInfo(REALM, USER, id, authorized);

const oidc = await oidcLink(OIDC_LINK);
const password = await getUserAuthenticationPasswordProfileInfo(REALM, USER, PASSWORD_LINK, authorized);
const created = await createUserAuthenticationInfo(
  REALM,
  { data: { type: 'user_authentication_info', name: 'Jane Doe', email: 'jane@example.com' } },
  authorized,
);
const absent = await oidcLink(USER);

console.log(
  JSON.stringify({
    oidc: [oidc.status, oidc.status === 200 && oidc.data.data.subject],
    password: [password.status, password.status === 200 && password.data.data.username],
    created: [created.status, created.status === 201 && created.data.data.name],
    absent: [absent.status, absent.status === 404 && absent.data.errors[0]?.title],
  }),
);
