import {
  createUserAuthenticationInfo,
  type ErrorResponse,
  getUserAuthenticationOidcProfileInfo,
  listChanges,
  listUserAuthenticationInfo,
  updateUserAuthenticationOidcProfileInfo,
} from './generated.ts';

const { REALM = '', USER = '', OIDC_LINK = '', ...variables } = process.env;

const authorized = (token = 'TOKEN', headers = {}) => ({
  headers: { Authorization: `Bearer ${variables[token]}`, ...headers },
});
const lookup = (token?: string, id = OIDC_LINK) =>
  getUserAuthenticationOidcProfileInfo(REALM, USER, id, authorized(token));
const create = (name: string, token?: string, headers = {}) =>
  createUserAuthenticationInfo(
    REALM,
    { data: { type: 'user_authentication_info', name, email: 'jane@example.com' } },
    authorized(token, headers),
  );
const update = (subject: string, headers = {}) =>
  updateUserAuthenticationOidcProfileInfo(
    REALM,
    USER,
    OIDC_LINK,
    { data: { type: 'user_authentication_oidc_profile_info', subject } },
    authorized('TOKEN', headers),
  );

/** The status and the first error, which has the same type for every status. */
async function errorOf(answer: Promise<{ readonly status: number; readonly data?: unknown }>) {
  const { status, data } = await answer;
  const [first] = (data as Partial<ErrorResponse> | undefined)?.errors ?? [];
  const source = first?.source ?? {};
  const place = 'pointer' in source ? source.pointer : 'parameter' in source ? source.parameter : undefined;
  return [status, first?.status, first?.title, place];
}

const key = crypto.randomUUID();
const slow = create('Slow', 'TOKEN', { 'Idempotency-Key': key });
await Bun.sleep(100);
console.log(
  JSON.stringify([
    await errorOf(create('Slow', 'TOKEN', { 'Idempotency-Key': key })),
    await errorOf(create('')),
    await errorOf(listUserAuthenticationInfo(REALM, { filter: 'eq(name' }, authorized())),
    await errorOf(lookup('WRONG_TOKEN')),
    await errorOf(create('Jane Doe', 'READER_TOKEN')),
    await errorOf(lookup('TOKEN', USER)),
    await errorOf(listChanges(REALM, { after: variables.EXPIRED_CURSOR ?? '' }, authorized())),
    await errorOf(update('jane', { 'If-Match': '"another"' })),
    await errorOf(create('x'.repeat(70_000))),
    await errorOf(update(variables.TAKEN_SUBJECT ?? '')),
    await errorOf(lookup('LIMITED_TOKEN')),
    await errorOf(lookup('TOKEN', variables.BROKEN_LINK)),
    await errorOf(lookup('TOKEN', variables.FAILING_LINK)),
  ]),
);
await slow;
