import { describe, expect, test } from 'bun:test';
import { parseIssuers } from '../../src/access/issuers/issuers_file.ts';
import { LIMITS } from '../../src/model/limits.ts';
import { systemClock } from '../../src/ops/process/clock.ts';

/** Issuers files with an entry for console sign-in. */

const right = { claim: 'groups', value: 'readers', scopes: 'users:read', realms: '*' };
const console = { client_id: 'directory', client_secret: 'a secret' };
const entry = { name: 'acme', issuer: 'https://login.example/', audience: 'api', rights: [right], console };
const realms = Array.from({ length: LIMITS.tokenRealmsMax + 1 }, () => systemClock.mintId());

const read = (more: object) =>
  parseIssuers('issuers.json', JSON.stringify({ issuers: [{ ...entry, ...more }] }))[0];

test('a console entry may have the maximum of claims and realms, and a typ or audience unlike its ID tokens', () => {
  const person = Array(8).fill('email');
  const rights = [right, { ...right, realms: realms.slice(1) }];
  expect(read({ rights, console: { ...console, person } })?.console?.person).toEqual(person);
  expect(read({ typ: 'JWT' })?.type).toBe('jwt');
  expect(read({ audience: 'directory' })?.type).toBe('at+jwt');
});

describe('invalid console entries', () => {
  test.each([
    [
      'nine person claims',
      { console: { ...console, person: Array(9).fill('email') } },
      /^issuers\.json: issuers\.0\.console\.person must name at most 8 claims$/,
    ],
    [
      'access tokens that look like its ID tokens',
      { typ: 'application/JWT', audience: 'directory' },
      /^issuers\.json: issuers\.0\.audience must not be the client_id of its console: [^\n]*$/,
    ],
    [
      'more realms than a session token can name',
      { rights: [right, { ...right, realms }] },
      /^issuers\.json: issuers\.0\.rights must name at most 32 realms where console is set$/,
    ],
    [
      'two mistakes',
      { typ: 'JWT', audience: 'directory', console: { client_id: 'directory' } },
      /^issuers\.json: issuers\.0\.console must have one of [^\n]*\nissuers\.json: issuers\.0\.audience must not be [^\n]*$/,
    ],
  ] as const)('an issuers file is refused with %s', (_what, entry, complaint) => {
    expect(() => read(entry)).toThrow(complaint);
  });
});
