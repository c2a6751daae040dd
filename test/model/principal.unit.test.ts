import { expect, test } from 'bun:test';
import { IMPLICIT_SCOPES, parseScopes, SCOPES } from '../../src/model/principal.ts';

test('the scope "support" reads everything, and writes OIDC profile infos alone', () => {
  const reading = SCOPES.filter((scope) => /:read$/.test(scope));
  expect(reading.length).toBeGreaterThan(5);
  expect([...(parseScopes('support') ?? [])].sort()).toEqual([...reading, 'oidc-profile-infos:write'].sort());
});

test('the ID of a client alone may give four scopes', () => {
  expect([...IMPLICIT_SCOPES].sort()).toEqual(['profiles:read', 'settings:read', 'sign-in', 'sign-up']);
});
