import { describe, expect, test } from 'bun:test';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { parseIssuers } from '../../src/auth/issuers/issuers_file.ts';
import { readSettings } from '../../src/config/parse.ts';
import { Refusal } from '../../src/domain/fault.ts';
import { LIMITS } from '../../src/domain/limits.ts';
import { readIssuers } from '../../src/service/authentication.ts';
import { freshFolder } from '../support/folder.ts';
import { issuersFile } from '../support/issuers.ts';

/** The member `console` of an issuer in the file. */

const right = { claim: 'groups', value: 'readers', scopes: 'users:read', realms: '*' };
const client = { client_id: 'console', client_secret: 'secret' };
const entry = { name: 'acme', issuer: 'https://login.example/', audience: 'directory', rights: [right] };

const read = (console: object, more: object = {}) =>
  parseIssuers('issuers.json', JSON.stringify({ issuers: [{ ...entry, console, ...more }] }))[0]?.console;

test('what it does not say is usual', () => {
  expect(read(client)).toEqual({
    ...{ clientId: 'console', clientSecret: 'secret', clientSecretFile: undefined },
    ...{ scope: 'openid profile email', person: ['email', 'preferred_username', 'name'] },
  });
  expect(read({ ...client, scope: 'openid groups', person: ['nickname'] })).toMatchObject({
    scope: 'openid groups',
    person: ['nickname'],
  });
});

const realms = Array.from({ length: LIMITS.tokenRealmsMax + 1 }, () => crypto.randomUUID());
const WRONG: [string, object, object, RegExp][] = [
  ['no client_id', { client_secret: 'x' }, {}, /console\.client_id/],
  ['no secret', { client_id: 'console' }, {}, /console must have one of client_secret/],
  ['two secrets', { ...client, client_secret_file: 'a' }, {}, /console must have one of client_secret/],
  ['a member that is unknown', { ...client, redirect_uri: 'x' }, {}, /redirect_uri/],
  ['no openid', { ...client, scope: 'profile' }, {}, /console\.scope must hold openid/],
  ['a scope with a quote', { ...client, scope: 'openid "' }, {}, /console\.scope must be words/],
  ['nobody', { ...client, person: [] }, {}, /console\.person must name at least one claim/],
  [
    'ID tokens that would be access tokens',
    client,
    { audience: 'console', typ: 'JWT' },
    /audience must not be the client_id/,
  ],
  [
    'more realms than a token names',
    client,
    { rights: [{ ...right, realms }] },
    /rights must name at most 32 realms/,
  ],
  ['the name of links', client, { name: 'console' }, /name must not be console/],
];

describe('refused:', () => {
  test.each(WRONG)('%s', (_what, console, more, complaint) => {
    expect(() => read(console, more)).toThrow(complaint);
    expect(() => read(console, more)).toThrow(Refusal);
  });

  test('no word of a secret is repeated', () => {
    const said = () => read({ client_id: '', client_secret: 'a\nsecret of ours' });
    expect(said).toThrow(Refusal);
    expect(said).not.toThrow(/secret of ours/);
  });
});

test('a secret is read from its file, without the line break at its end; one that is not there, or empty, is told', () => {
  const path = join(freshFolder(), 'secret');
  const { client_id } = client;
  const file = issuersFile({ ...entry, console: { client_id, client_secret_file: path } });
  const settings = readSettings({ issuersFile: file }, {});
  expect(() => readIssuers(settings)).toThrow(/client_secret_file/);
  writeFileSync(path, '\n');
  expect(() => readIssuers(settings)).toThrow(/is empty/);
  writeFileSync(path, ' of us \n');
  expect(readIssuers(settings)[0]?.console?.clientSecret).toBe(' of us ');
});
