import { expect, test } from 'bun:test';
import { PUBLIC_SCOPES, parseScopes, SCOPES } from '../../src/domain/principal.ts';

test('the scope "support" reads everything, and writes OIDC profile infos alone', () => {
  const reading = SCOPES.filter((scope) => /:read$/.test(scope));
  expect(reading.length).toBeGreaterThan(5);
  expect([...(parseScopes('support') ?? [])].sort()).toEqual([...reading, 'oidc-profile-infos:write'].sort());
});

test('a public client may hold three scopes', () => {
  expect([...PUBLIC_SCOPES].sort()).toEqual(['profiles:read', 'settings:read', 'sign-in']);
});
