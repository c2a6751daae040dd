import { createClient } from '../../src/access/clients/clients.ts';
import type { OpenDatabase } from '../../src/app/open_database.ts';
import type { Uuid } from '../../src/model/id.ts';
import type { ImplicitRights } from '../../src/model/implicit_rights.ts';
import { type EndUserAddress, parseScopes } from '../../src/model/principal.ts';
import { passwordProfile, passwordProfileInfo, user } from '../../src/model/resources.ts';
import { systemClock } from '../../src/ops/process/clock.ts';
import type { JsonObject } from './json_schema.ts';
import { insertRecord, type Sendable, type Service, startService, userMembers } from './service.ts';
import { createSettingsRealms } from './settings_realms.ts';

/** A user with a password in a profile of a realm. */
export interface PasswordFixture {
  readonly realm: Uuid;
  readonly profile: Uuid;
  readonly user: Uuid;
  readonly info: Uuid;
  readonly username: string;
  readonly password: string;
}

export const ACCOUNT_TOKENS = '/v2/account-members/tokens';
const TOKEN_TYPE = 'account_management_authentication_token';
export const ACCOUNT_TOKEN_HEADER = 'EP-Account-Management-Authentication-Token';
export const DEVICE_HEADER = 'Authrealm-Device';
export const END_USER = { 'Authrealm-End-User-Address': '192.0.2.1' };

/** Of the least cost, so that a check takes a millisecond. The first right password replaces it by a hash of this service. */
export function cheapHash(password: string): string {
  return Bun.password.hashSync(password, { algorithm: 'bcrypt', cost: 4 });
}

let count = 0;

/** Creates a profile, unless one exists, and a user with a password. */
export async function createPassword(
  db: OpenDatabase,
  realm: Uuid,
  given: Partial<PasswordFixture> & {
    readonly hash?: string | undefined;
    /** As a hash that was made here. */
    readonly isNormalised?: boolean;
    readonly isDisabled?: boolean;
  } = {},
): Promise<PasswordFixture> {
  count += 1;
  const { profile = systemClock.mintId(), password = 'correct horse battery staple' } = given;
  const { username = `jane-${process.pid}-${count}@example.com` } = given;
  const [userId, info] = [given.user ?? systemClock.mintId(), given.info ?? systemClock.mintId()];
  if (!given.profile) {
    const members = { name: 'Passwords', username_format: 'any', enable_one_time_password_token: false };
    await insertRecord(db, passwordProfile, [realm, profile], members);
  }
  await insertRecord(db, user, [realm, userId], { ...userMembers, enabled: !given.isDisabled });
  const hash = 'hash' in given ? given.hash : cheapHash(password);
  await insertRecord(db, passwordProfileInfo, [realm, userId, info], {
    username,
    password_profile_id: profile,
    ...(hash === undefined ? {} : { password_hash: hash }),
    ...(given.isNormalised ? { password_normalised: true } : {}),
  });
  return { realm, profile, user: userId, info, username, password };
}

/** The body of a sign-in by password. */
export function passwordBody({ profile, username, password }: PasswordFixture, more: object = {}): object {
  return {
    data: {
      type: TOKEN_TYPE,
      authentication_mechanism: 'password',
      password_profile_id: profile,
      username,
      password,
      ...more,
    },
  };
}

/** The body of a self-signup. */
export function selfSignupBody(password_profile_id: string, username: unknown, more: object = {}) {
  return {
    data: {
      ...{ type: TOKEN_TYPE, authentication_mechanism: 'self_signup', password_profile_id, username },
      ...{ password: 'correct horse battery', name: 'Jill Hill', email: 'jill@example.com', ...more },
    },
  };
}

/** Enables or disables self-signup, by a token with `settings:write`. */
export async function enableSelfSignup(
  service: Pick<Service, 'put'>,
  token: string,
  isEnabled = true,
): Promise<void> {
  const data = { type: 'account_authentication_settings', enable_self_signup: isEnabled };
  const answer = await service.put('/v2/settings/account-authentication', token, { data });
  if (answer.status !== 200) throw new Error(`answered ${answer.status}: ${await answer.text()}`);
}

export const RENEWAL = { data: { type: TOKEN_TYPE, authentication_mechanism: TOKEN_TYPE } };

/** The answer of the token call. */
export interface AccountTokensAnswer {
  readonly data: readonly {
    readonly account_id: string;
    readonly account_name: string;
    readonly token: string;
    readonly expires: string;
  }[];
  readonly meta: { readonly account_member_id: string };
}

interface SignInClientOptions extends ImplicitRights {
  readonly scope?: string;
  readonly endUserAddress?: EndUserAddress;
}

/** Creates a client that may sign users in, and reports the addresses of end users by default. */
export async function createSignInClient(
  { db, clock }: Pick<Service, 'db' | 'clock'>,
  { scope = 'sign-in', endUserAddress = 'header', ...implicit }: SignInClientOptions = {},
): Promise<{ clientId: string; secret: string }> {
  const scopes = parseScopes(scope);
  if (!scopes) throw new Error(`unknown scope ${scope}`);
  const rights = { scopes, realms: '*', endUserAddress, ...implicit } as const;
  const { client, secret } = await createClient(db.engine.access, 'sign-in', rights, clock);
  // Then the service reads its clients again.
  clock.advance(1_000);
  return { clientId: client.clientId, secret };
}

/** An access token of such a client. */
export async function signInTokenOf(
  service: Service,
  options: Parameters<typeof createSignInClient>[1] = {},
): Promise<string> {
  const { clientId, secret } = await createSignInClient(service, options);
  return service.grant({ clientId, secret });
}

/** Sends the token call with the address of an end user. */
export function requestTokens(
  service: Pick<Service, 'post'>,
  token: string,
  body: Sendable,
  headers: Record<string, string> = {},
): Promise<Response> {
  return service.post(ACCOUNT_TOKENS, token, body, { ...END_USER, ...headers });
}

/** The account token of a right password. */
export async function accountTokenOf(
  service: Pick<Service, 'post'>,
  token: string,
  fixture: PasswordFixture,
): Promise<string> {
  const answer = await requestTokens(service, token, passwordBody(fixture));
  const { data } = (await answer.json()) as AccountTokensAnswer;
  const [first] = data;
  if (answer.status !== 201 || !first) throw new Error(`the sign-in was answered ${answer.status}`);
  return first.token;
}

/** Creates the realms that settings name, and a member with a password. Returns the body that signs it in. */
export async function createAccountMember(db: OpenDatabase): Promise<JsonObject> {
  const { accounts } = await createSettingsRealms(db);
  return passwordBody(await createPassword(db, accounts)) as JsonObject;
}

/** Headers of a request for an end user at an address. */
export const from = (address: string, more: Record<string, string> = {}) => ({
  'Authrealm-End-User-Address': address,
  ...more,
});

export const manyOf = (status: number, count: number) => new Array<number>(count).fill(status);

/** Signs in with right and wrong passwords, one after the other; answers statuses. */
export function openGuesses(service: Pick<Service, 'post'>, token: string) {
  const signIn = (of: PasswordFixture, password: string, headers: Record<string, string>) =>
    requestTokens(service, token, passwordBody(of, { password }), headers);
  const statusOf = async (...sent: Parameters<typeof signIn>) => (await signIn(...sent)).status;
  return {
    signIn,
    statusOf,
    async guess(of: PasswordFixture, count: number, addressOf: (index: number) => string) {
      const statuses: number[] = [];
      for (let index = 0; index < count; index += 1)
        statuses.push(await statusOf(of, `guess ${index}`, from(addressOf(index))));
      return statuses;
    },
  };
}

/** Starts a service behind a proxy, for guesses from many addresses by a client with `sign-in`. */
export async function startGuessedService() {
  const service = await startService({ trustedProxies: '127.0.0.1', tokenLifetime: '86400' });
  const { accounts } = await createSettingsRealms(service.db);
  const token = await signInTokenOf(service);
  return { service, accounts, token, ...openGuesses(service, token) };
}
