import { describe, expect, test } from 'bun:test';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { parseIssuers } from '../../src/access/issuers/issuers_file.ts';
import { TARGET_RULE } from '../../src/access/outbound/target.ts';
import { readIssuers } from '../../src/app/authentication.ts';
import { readSettings } from '../../src/app/config/parse.ts';
import { Refusal } from '../../src/model/fault.ts';
import { LIMITS } from '../../src/model/limits.ts';
import { freshFolder } from '../support/folder.ts';
import { issuersFile } from '../support/issuers.ts';

/** The member `console` of an issuer in the issuers file. */

const right = { claim: 'groups', value: 'readers', scopes: 'users:read', realms: '*' };
const client = { client_id: 'console', client_secret: 'secret' };
const entry = { name: 'acme', issuer: 'https://login.example/', audience: 'directory', rights: [right] };

const read = (console: object, more: object = {}) =>
  parseIssuers('issuers.json', JSON.stringify({ issuers: [{ ...entry, console, ...more }] }))[0]?.console;

test('the member console of an issuer has defaults for scope and person', () => {
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
  ['an unknown member', { ...client, redirect_uri: 'x' }, {}, /redirect_uri/],
  ['a scope without openid', { ...client, scope: 'profile' }, {}, /console\.scope must contain openid/],
  ['a quote in scope', { ...client, scope: 'openid "' }, {}, /console\.scope must be words/],
  ['no claim in person', { ...client, person: [] }, {}, /console\.person must name at least one claim/],
  [
    'an audience that is the client_id',
    client,
    { audience: 'console', typ: 'JWT' },
    /audience must not be the client_id/,
  ],
  [
    'more realms in rights than a token can name',
    client,
    { rights: [{ ...right, realms }] },
    /rights must name at most 32 realms/,
  ],
  ['the reserved issuer name console', client, { name: 'console' }, /name must not be console/],
];

describe('invalid members console', () => {
  test.each(WRONG)(
    'the member console of an issuer is rejected with %s',
    (_what, console, more, complaint) => {
      expect(() => read(console, more)).toThrow(complaint);
      expect(() => read(console, more)).toThrow(Refusal);
    },
  );

  test('the rejection of a member console does not quote its client secret', () => {
    const parse = () => read({ client_id: '', client_secret: 'a\nsecret of ours' });
    expect(parse).toThrow(Refusal);
    expect(parse).not.toThrow(/secret of ours/);
  });
});

test('client_secret_file is read without its line break, and rejected if missing or empty', () => {
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

test('an issuers file with a private or loopback URL that is requested needs --allow-private', () => {
  const urls = { issuer: 'https://localhost:8443', jwks_uri: 'https://10.1.2.3/keys' };
  const files = [issuersFile({ ...entry, ...urls, console: client }), issuersFile({ ...entry, ...urls })];
  const settingsWith = (issuersFile = '', allowPrivate = '') =>
    readSettings({ issuersFile, allowPrivate }, {});
  const [forConsole, keysAlone] = files;
  const [issuer, keys] = Object.values(urls).map((url) => `${url} of acme ${TARGET_RULE}`);
  expect(() => readIssuers(settingsWith(forConsole))).toThrow(
    new Refusal(`${forConsole}: ${issuer}\n${forConsole}: ${keys}`),
  );
  expect(() => readIssuers(settingsWith(keysAlone))).toThrow(new Refusal(`${keysAlone}: ${keys}`));
  expect(readIssuers(settingsWith(forConsole, 'localhost,10.1.2.3'))).toHaveLength(1);
  expect(readIssuers(settingsWith(keysAlone, '10.1.2.3'))).toHaveLength(1);
});
