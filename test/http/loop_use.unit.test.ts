import { expect, test } from 'bun:test';
import { OPERATIONS } from '../../src/app/api/operations.ts';

/** How operations use the event loop; all that are not listed wait for their turn. */
const LOOP_USES = {
  lookup: [
    'get-authentication-realm',
    'get-oidc-profile',
    'get-password-profile',
    'get-user-authentication-info',
    'get-user-authentication-oidc-profile-info',
    'find-user-authentication-oidc-profile-info',
    'search-user-authentication-oidc-profile-info',
    'get-user-authentication-password-profile-info',
    'get-user-authentication-password-profile-info-by-self-link',
    'find-user-authentication-password-profile-info',
    'search-user-authentication-password-profile-info',
  ],
  'own turn': [
    'get-access-token',
    'get-token',
    'revoke-token',
    'introspect-token',
    'get-health',
    'get-readiness',
  ],
};

test('lookups by ID admit their calls themselves, and no other operations', () => {
  const found = OPERATIONS.filter(({ admitsItself }) => admitsItself).map(({ name }) => name);
  expect(found.sort()).toEqual(LOOP_USES.lookup.filter((name) => name.startsWith('get-')).toSorted());
});

test.each(Object.entries(LOOP_USES))(
  'the operations of the loop use "%s" are those listed, and no others',
  (use, names) => {
    const found = OPERATIONS.filter(({ loopUse }) => loopUse === use).map(({ name }) => name);
    expect(found.sort()).toEqual(names.toSorted());
  },
);
