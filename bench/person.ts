import { ISSUER, OIDC_PROFILE, USERS_PATH, type UserOf } from '../test/support/population.ts';

/** A user and its links as one person: read, and created, by one request. */

const LINK = {
  type: 'user_authentication_oidc_profile_info',
  subject: 'bench|{n}',
  issuer: ISSUER,
  oidc_profile_id: OIDC_PROFILE,
};
const USER = { type: 'user_authentication_info', name: 'Bench {n}', email: 'bench{n}@example.com' };

/** A second link of the same user. Not of a password, because hashing one takes longer than all else. */
const SECOND_LINK = { ...LINK, subject: 'second|{n}' };

/** Bodies to post; `{n}` is replaced with a unique value. */
export const LINK_BODY = JSON.stringify({ data: LINK });
/** The links of a user, to create by one request each. */
export const LINK_REQUESTS = [LINK, SECOND_LINK].map((link) => ({
  collection: 'user-authentication-oidc-profile-info',
  body: JSON.stringify({ data: link }),
}));
export const USER_BODY = JSON.stringify({ data: USER });
export const PERSON_BODY = JSON.stringify({ data: USER, included: [LINK] });
export const TWO_LINK_PERSON_BODY = JSON.stringify({ data: USER, included: [LINK, SECOND_LINK] });

/** The path of a user with all its links. */
export function personPath(user: string): string {
  return `${USERS_PATH}/${user}?include=oidc_profile_infos,password_profile_infos`;
}

/** The paths of `count` users with their links, spread evenly over all users. */
export function personPaths(users: number, count: number, userOf: UserOf): readonly string[] {
  return Array.from({ length: count }, (_, index) => {
    // A prime far above the count visits each number once, in an order that no cache likes.
    const number = Math.floor((((index * 1_000_003) % count) * users) / count);
    return personPath(userOf(number).user);
  });
}
