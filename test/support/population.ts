/**
 * Reproducible users: IDs, subjects and usernames are derived from the number of the user, so that a key is known without
 * reading the database.
 */

/** Creation time of the first user in milliseconds; each further user is created a millisecond later. */
const FIRST_AT = Date.UTC(2026, 0, 1);

export const ISSUER = 'https://login.example.com/';

export interface User {
  readonly user: string;
  readonly oidcLink: string;
  readonly passwordLink: string;
}

/** A small, seeded stream of 32-bit numbers (xorshift), one per user and purpose. */
function noise(number: number, purpose: number): number {
  let state = (Math.imul(number + 1, 0x9e3779b1) ^ Math.imul(purpose + 1, 0x85ebca6b)) >>> 0 || 1;
  for (let round = 0; round < 3; round += 1) {
    state ^= state << 13;
    state ^= state >>> 17;
    state ^= state << 5;
  }
  return state >>> 0;
}

const hex = (value: number, digits: number) => value.toString(16).padStart(8, '0').slice(0, digits);

/** A version 7 UUID for a moment, its random part drawn from the number. */
function uuid(at: number, number: number, purpose: number): string {
  const time = at.toString(16).padStart(12, '0');
  const [a, b, c] = [noise(number, purpose), noise(number, purpose + 1), noise(number, purpose + 2)];
  return `${time.slice(0, 8)}-${time.slice(8)}-7${hex(a, 3)}-8${hex(b, 3)}-${hex(c, 8)}${hex((a ^ b) >>> 0, 4)}`;
}

export const REALM = uuid(FIRST_AT - 1, 0, 1);
export const OIDC_PROFILE = uuid(FIRST_AT - 1, 0, 11);
export const PASSWORD_PROFILE = uuid(FIRST_AT - 1, 0, 21);

export function userAt(number: number): User {
  const at = FIRST_AT + number;
  return {
    user: uuid(at, number, 31),
    oidcLink: uuid(at, number, 41),
    passwordLink: uuid(at, number, 51),
  };
}

/** The IDs of a user, by number. */
export type UserOf = (number: number) => User;

/** The whole population as lines for `import`, parents first. */
export function* populationLines(users: number, userOf: UserOf = userAt): Generator<string> {
  const stamp = new Date(FIRST_AT).toISOString();
  const meta = { created_at: stamp, updated_at: stamp };
  const realm_id = REALM;
  const profile = {
    name: 'Login',
    discovery_url: `${ISSUER}.well-known/openid-configuration`,
    client_id: 'shop',
  };
  yield JSON.stringify({ type: 'authentication-realm', id: REALM, name: 'Bench', meta });
  yield JSON.stringify({
    type: 'oidc-profile',
    realm_id,
    id: OIDC_PROFILE,
    ...profile,
    meta: { issuer: ISSUER, ...meta },
  });
  yield JSON.stringify({ type: 'password_profile', realm_id, id: PASSWORD_PROFILE, name: 'Passwords', meta });
  for (let number = 0; number < users; number += 1) yield userLines(number, userOf(number));
}

/** The three lines of a user, joined. Concatenated for speed: millions are written. */
function userLines(number: number, { user, oidcLink, passwordLink }: User): string {
  const at = new Date(FIRST_AT + number).toISOString();
  const meta = `"meta":{"created_at":"${at}","updated_at":"${at}"}`;
  const subject = subjectAt(number);
  const owner = `"realm_id":"${REALM}","user_authentication_info_id":"${user}"`;
  return (
    `{"type":"user_authentication_info","realm_id":"${REALM}","id":"${user}","name":"User ${number}",` +
    `"email":"user${number}@example.com",${meta}}\n` +
    `{"type":"user_authentication_oidc_profile_info",${owner},"id":"${oidcLink}","subject":"${subject}",` +
    `"issuer":"${ISSUER}","oidc_profile_id":"${OIDC_PROFILE}",${meta}}\n` +
    `{"type":"user_authentication_password_profile_info",${owner},"id":"${passwordLink}",` +
    `"username":"${usernameAt(number)}","password_profile_id":"${PASSWORD_PROFILE}",${meta}}`
  );
}

/** The ID of a further realm. */
export const realmAt = (number: number) => uuid(FIRST_AT - 1, number, 1);

/** The lines of a further realm with one user and its username, joined. */
export function realmLines(number: number): string {
  const realm_id = realmAt(number);
  const [user, profile] = [uuid(FIRST_AT, number, 81), uuid(FIRST_AT - 1, number, 21)];
  const stamp = new Date(FIRST_AT).toISOString();
  const meta = { created_at: stamp, updated_at: stamp };
  const name = `of realm ${number}`;
  return [
    { type: 'authentication-realm', id: realm_id, name: `Realm ${number}`, meta },
    { type: 'password_profile', realm_id, id: profile, name: 'Passwords', meta },
    { type: 'user_authentication_info', realm_id, id: user, name, email: `realm${number}@example.com`, meta },
    {
      type: 'user_authentication_password_profile_info',
      ...{ realm_id, user_authentication_info_id: user, id: uuid(FIRST_AT, number, 91) },
      ...{ username: name, password_profile_id: profile, meta },
    },
  ]
    .map((line) => JSON.stringify(line))
    .join('\n');
}

export function subjectAt(number: number): string {
  return `auth0|${hex(noise(number, 61), 8)}${hex(noise(number, 62), 8)}${hex(noise(number, 63), 8)}`;
}

export function usernameAt(number: number): string {
  return `user${number}@example.com`;
}

const REALM_PATH = `/v2/authentication-realms/${REALM}`;

/** The list of users. */
export const USERS_PATH = `${REALM_PATH}/user-authentication-info`;

/** The paths of `count` reverse lookups, drawn evenly over all users, both kinds in turn, shuffled. */
export function findPaths(users: number, count: number): readonly string[] {
  const issuer = encodeURIComponent(ISSUER);
  return shuffled(
    Array.from({ length: count }, (_, index) => {
      const number = Math.floor((index * users) / count);
      if (index % 2 === 1) {
        const username = encodeURIComponent(usernameAt(number));
        return `${REALM_PATH}/user-authentication-password-profile-info?filter=eq(username,${username})`;
      }
      const filter = `eq(issuer,${issuer}):eq(subject,${encodeURIComponent(subjectAt(number))})`;
      return `${REALM_PATH}/user-authentication-oidc-profile-info?filter=${filter}`;
    }),
  );
}

/** The collections of OIDC profile infos of users, shuffled: where links are created. */
export function collectionPaths(users: number, count: number): readonly string[] {
  return shuffled(
    Array.from({ length: count }, (_, index) => {
      const { user } = userAt(Math.floor((index * users) / count));
      return `${USERS_PATH}/${user}/user-authentication-oidc-profile-info`;
    }),
  );
}

/** The paths of `count` lookups, drawn evenly over all users, both kinds in turn, shuffled. */
export function lookupPaths(users: number, count: number, userOf: UserOf = userAt): readonly string[] {
  const paths = Array.from({ length: count }, (_, index) => {
    const { user, oidcLink, passwordLink } = userOf(Math.floor((index * users) / count));
    const owner = `${USERS_PATH}/${user}`;
    return index % 2 === 0
      ? `${owner}/user-authentication-oidc-profile-info/${oidcLink}`
      : `${owner}/user-authentication-password-profile-info/${passwordLink}`;
  });
  return shuffled(paths);
}

function shuffled(paths: string[]): readonly string[] {
  for (let index = paths.length - 1; index > 0; index -= 1) {
    const other = noise(index, 71) % (index + 1);
    [paths[index], paths[other]] = [paths[other] as string, paths[index] as string];
  }
  return paths;
}
