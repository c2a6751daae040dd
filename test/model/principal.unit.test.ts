import { expect, test } from 'bun:test';
import { IMPLICIT_SCOPES, parseScopes, ROLES, SCOPE_WORDS, SCOPES } from '../../src/model/principal.ts';

test('the scope "support" reads everything, writes OIDC profile infos and lifts throttles, and does nothing else', () => {
  const reading = SCOPES.filter((scope) => /:read$/.test(scope));
  expect(reading.length).toBeGreaterThan(5);
  const writing = ['oidc-profile-infos:write', 'sign-in-throttles:write'];
  expect([...(parseScopes('support') ?? [])].sort()).toEqual([...reading, ...writing].sort());
});

test('the roles of the console read everything, support it, or do everything but import and export', () => {
  const reading = SCOPES.filter((scope) => /:read$/.test(scope) && scope !== 'history:read');
  expect(ROLES).toMatchObject({
    read: { scopes: reading },
    support: { scopes: [...(parseScopes('support') ?? [])] },
    everything: { scopes: SCOPES.filter((scope) => scope !== 'transfer') },
  });
});

test('the roles "read" and "everything" are no scopes', () => {
  for (const role of ['read', 'everything']) expect([role, parseScopes(role)]).toEqual([role, undefined]);
});

test('the ID of a client alone may give four scopes', () => {
  expect([...IMPLICIT_SCOPES].sort()).toEqual(['profiles:read', 'settings:read', 'sign-in', 'sign-up']);
});

test('no short form contains the scope of imports and exports over HTTP', () => {
  const short = SCOPE_WORDS.filter((word) => !SCOPES.includes(word));
  expect(short.length).toBeGreaterThan(2);
  for (const word of short) expect([word, parseScopes(word)?.has('transfer')]).toEqual([word, false]);
  expect(parseScopes('transfer')).toEqual(new Set(['transfer']));
});
