import { describe, expect, test } from 'bun:test';
import { parseIssuers } from '../../src/auth/issuers/issuers_file.ts';
import { LIMITS } from '../../src/domain/limits.ts';
import { systemClock } from '../../src/platform/clock.ts';

/** What a file of issuers may say where people sign in to the console by one. */

const right = { claim: 'groups', value: 'readers', scopes: 'users:read', realms: '*' };
const console = { client_id: 'directory', client_secret: 'a secret' };
const entry = { name: 'acme', issuer: 'https://login.example/', audience: 'api', rights: [right], console };
const realms = Array.from({ length: LIMITS.tokenRealmsMax + 1 }, () => systemClock.mintId());

const read = (more: object) =>
  parseIssuers('issuers.json', JSON.stringify({ issuers: [{ ...entry, ...more }] }))[0];

test('as many claims and realms as may be, and tokens that differ from those of the console', () => {
  const person = Array(8).fill('email');
  const rights = [right, { ...right, realms: realms.slice(1) }];
  expect(read({ rights, console: { ...console, person } })?.console?.person).toEqual(person);
  expect(read({ typ: 'JWT' })?.type).toBe('jwt');
  expect(read({ audience: 'directory' })?.type).toBe('at+jwt');
});

describe('refused:', () => {
  test.each([
    [
      'a person by nine claims',
      { console: { ...console, person: Array(9).fill('email') } },
      /^issuers\.json: issuers\.0\.console\.person must be at most 8$/,
    ],
    [
      'access tokens that look as ID tokens of the console do',
      { typ: 'application/JWT', audience: 'directory' },
      /^issuers\.json: issuers\.0\.audience must not be the client_id of its console: [^\n]*$/,
    ],
    [
      'more realms than the token of a session names',
      { rights: [right, { ...right, realms }] },
      /^issuers\.json: issuers\.0\.rights must name at most 32 realms where console is set$/,
    ],
  ] as const)('%s', (_what, wrong, complaint) => {
    expect(() => read(wrong)).toThrow(complaint);
  });
});
