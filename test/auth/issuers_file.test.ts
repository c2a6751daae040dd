import { describe, expect, test } from 'bun:test';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import fc from 'fast-check';
import { parseIssuers } from '../../src/auth/issuers/issuers_file.ts';
import { type ClaimRight, rightsFromClaims } from '../../src/auth/tokens/claim_rights.ts';
import { parseJsonWithUniqueKeys } from '../../src/auth/tokens/unique_key_json.ts';
import { readSettings } from '../../src/config/parse.ts';
import { Refusal } from '../../src/domain/fault.ts';
import type { Uuid } from '../../src/domain/id.ts';
import { LIMITS } from '../../src/domain/limits.ts';
import { parseScopes, type Realms } from '../../src/domain/principal.ts';
import { systemClock } from '../../src/platform/clock.ts';
import { serve } from '../../src/service/service.ts';
import { freshFolder } from '../support/folder.ts';
import { issuersFile } from '../support/issuers.ts';
import { AUTHREALM, runCommand } from '../support/processes.ts';

const REALM = '0193c1d4-5a2e-7c11-9d0e-6b1f4a7e2c90' as Uuid;
const OTHER = '0193c1d4-5a2e-7c11-9d0e-6b1f4a7e2c91' as Uuid;
const right = { claim: 'groups', value: 'readers', scopes: 'users:read', realms: '*' };
const entry = { name: 'acme', issuer: 'https://login.example/', audience: 'directory', rights: [right] };

const read = (...entries: readonly unknown[]) =>
  parseIssuers('issuers.json', JSON.stringify({ issuers: entries }));

/** What is wrong with a file, a line each. */
function complaints(run: () => unknown): readonly string[] {
  try {
    run();
  } catch (error) {
    if (error instanceof Refusal && error.isUsage) return error.message.split('\n');
    throw error;
  }
  return [];
}

test('an entry is read as it stands, and what it does not say is careful', () => {
  expect(read(entry)).toEqual([
    {
      name: 'acme',
      issuer: 'https://login.example/',
      audience: 'directory',
      jwksUri: undefined,
      type: 'at+jwt',
      algorithms: ['RS256'],
      rights: [{ claim: ['groups'], value: 'readers', scopes: new Set(['users:read']), realms: '*' }],
      console: undefined,
    },
  ]);
  const [given] = read({
    ...entry,
    ...{ jwks_uri: 'https://login.example/keys', typ: 'application/JWT', algorithms: ['ES256', 'EdDSA'] },
    rights: [
      {
        ...right,
        claim: ['realm_access', 'roles'],
        scopes: 'profile-infos:read',
        realms: [REALM.toUpperCase()],
      },
    ],
  });
  expect(given).toMatchObject({
    jwksUri: 'https://login.example/keys',
    type: 'jwt',
    algorithms: ['ES256', 'EdDSA'],
  });
  expect(given?.rights[0]).toEqual({
    claim: ['realm_access', 'roles'],
    value: 'readers',
    scopes: new Set(['oidc-profile-infos:read', 'password-profile-infos:read']),
    realms: new Set([REALM]),
  });
});

const WRONG: [what: string, wrong: unknown, complaint: RegExp][] = [
  ['a member that is unknown', { ...entry, audiences: [] }, /issuers\.0 .*audiences/],
  ['a name that is not plain', { ...entry, name: 'Acme Inc.' }, /issuers\.0\.name must be 1 to 32/],
  ['http', { ...entry, issuer: 'http://login.example' }, /issuers\.0\.issuer must be https/],
  ['an issuer with a query', { ...entry, issuer: 'https://login.example?a' }, /issuers\.0\.issuer .*query/],
  ['keys by http', { ...entry, jwks_uri: 'http://login.example' }, /issuers\.0\.jwks_uri must be https/],
  ['no audience', { ...entry, audience: undefined }, /issuers\.0\.audience/],
  ['HS256', { ...entry, algorithms: ['HS256'] }, /issuers\.0\.algorithms\.0 must be one of RS256/],
  ['none', { ...entry, algorithms: ['none'] }, /issuers\.0\.algorithms\.0 must be one of RS256/],
  ['no algorithm', { ...entry, algorithms: [] }, /issuers\.0\.algorithms must name at least one/],
  ['a typ of two words', { ...entry, typ: 'at jwt' }, /issuers\.0\.typ must be/],
  [
    'an unknown scope',
    { ...entry, rights: [{ ...right, scopes: 'users' }] },
    /rights\.0\.scopes must be existing scopes/,
  ],
  [
    'every scope',
    { ...entry, rights: [{ ...right, scopes: '*' }] },
    /rights\.0\.scopes must be existing scopes/,
  ],
  ['no scope', { ...entry, rights: [{ ...right, scopes: '' }] }, /rights\.0\.scopes must be existing scopes/],
  [
    'admin for everybody',
    { ...entry, rights: [{ ...right, value: '*', scopes: 'admin' }] },
    /rights\.0\.value must name a value/,
  ],
  [
    'admin in one realm',
    { ...entry, rights: [{ ...right, scopes: 'users:read admin', realms: [REALM] }] },
    /rights\.0\.realms must be "\*"/,
  ],
  ['a realm that is none', { ...entry, rights: [{ ...right, realms: ['shop'] }] }, /rights\.0\.realms/],
  [
    'no realms',
    { ...entry, rights: [{ ...right, realms: undefined }] },
    /rights\.0\.realms must be "\*" or a list/,
  ],
  [
    'a claim too deep',
    { ...entry, rights: [{ ...right, claim: ['a', 'b', 'c', 'd', 'e'] }] },
    /rights\.0\.claim must be/,
  ],
  ['a claim by no names', { ...entry, rights: [{ ...right, claim: [] }] }, /rights\.0\.claim must be/],
  ['a claim without a name', { ...entry, rights: [{ ...right, claim: '' }] }, /rights\.0\.claim must be/],
  [
    'too many rights',
    { ...entry, rights: Array(LIMITS.issuerRightsMax + 1).fill(right) },
    /rights must be at most 100/,
  ],
];

test('everybody may get what is not admin', () => {
  expect(read({ ...entry, rights: [{ ...right, value: '*' }] })[0]?.rights[0]?.value).toBe('*');
});

const QUIET = { write: () => undefined, written: async () => undefined };

describe('refused:', () => {
  test.each(WRONG)('%s', (_what, wrong, complaint) => {
    const said = complaints(() => read(wrong));
    expect(said).toHaveLength(1);
    expect(said[0]).toMatch(complaint);
  });

  test('an issuer that is no URL at all', () => {
    expect(complaints(() => read({ ...entry, issuer: 'nonsense', jwks_uri: 'nonsense' })).join()).toMatch(
      /issuers\.0\.issuer must be an absolute .*issuers\.0\.jwks_uri must be an absolute/,
    );
  });

  test('the same name or issuer twice', () => {
    expect(complaints(() => read(entry, { ...entry, issuer: 'https://other.example' }))).toEqual([
      'issuers.json: issuers.1.name is already used by another issuer',
    ]);
    expect(complaints(() => read(entry, { ...entry, name: 'other' }))).toEqual([
      'issuers.json: issuers.1.issuer is already used by another issuer',
    ]);
  });

  test('more issuers than the limit, and not as many', () => {
    const entries = (count: number) =>
      Array.from({ length: count }, (_, place) => ({
        ...entry,
        name: `n${place}`,
        issuer: `https://${place}.example`,
      }));
    expect(complaints(() => read(...entries(LIMITS.issuersMax)))).toEqual([]);
    expect(complaints(() => read(...entries(LIMITS.issuersMax + 1)))).toEqual([
      'issuers.json: issuers must be at most 32',
    ]);
    expect(complaints(() => read({ ...entry, rights: Array(LIMITS.issuerRightsMax).fill(right) }))).toEqual(
      [],
    );
  });

  test('an issuers file that is not a JSON object, or has a duplicate key, is refused', () => {
    for (const content of [
      '',
      '[]',
      'null',
      '{"issuers":[],"issuers":[]}',
      '{"issuers":[{"name":"a","n\\u0061me":"b"}]}',
    ]) {
      expect(complaints(() => parseIssuers('issuers.json', content))).toEqual([
        'issuers.json is not a JSON object, or has a duplicate key',
      ]);
    }
  });

  test('all mistakes of an issuers file are reported at once', () => {
    const wrong = { ...entry, name: '', algorithms: ['HS256'], rights: [{ ...right, scopes: 'x' }] };
    expect(complaints(() => read(wrong))).toHaveLength(3);
  });
});

describe('the setting', () => {
  test('a service does not start with a file that is wrong, however many processes it has', async () => {
    const path = issuersFile({ ...entry, name: '' });
    for (const processes of ['1', '2']) {
      const words = [
        'serve',
        '--database',
        `sqlite:${join(freshFolder(), 'a.db')}`,
        '--port',
        '0',
        '--processes',
        processes,
      ];
      const { code, stderr } = await runCommand([AUTHREALM, ...words, '--issuers-file', path]);
      expect(code).toBe(2);
      expect(stderr).toContain(`${path}: issuers.0.name must be`);
    }
  });

  test('a file that is not there is named', async () => {
    const settings = readSettings({ database: 'sqlite::memory:', issuersFile: '/nowhere/issuers.json' }, {});
    await expect(serve(settings, {} as never, QUIET, systemClock)).rejects.toThrow(/--issuers-file/);
  });

  test('an entry that is the service itself is refused', async () => {
    const flags = {
      database: 'sqlite::memory:',
      baseUrl: 'https://login.example/',
      issuersFile: issuersFile({ ...entry, issuer: 'https://login.example' }),
    };
    await expect(serve(readSettings(flags, {}), {} as never, QUIET, systemClock)).rejects.toThrow(
      /acme is this service itself/,
    );
  });

  test('does not go with --offline, which asks nobody', () => {
    const path = join(freshFolder(), 'issuers.json');
    writeFileSync(path, '{"issuers":[]}');
    const run = () => readSettings({ database: 'sqlite::memory:', issuersFile: path, offline: 'true' }, {});
    expect(complaints(run).join()).toMatch(/--offline/);
  });
});

describe('a JSON object none of whose members stands twice', () => {
  test('is what JSON.parse makes of it; with any member doubled it is none', () => {
    fc.assert(
      fc.property(fc.dictionary(fc.string(), fc.jsonValue(), { minKeys: 1 }), fc.nat(), (object, place) => {
        const json = JSON.stringify(object);
        expect(parseJsonWithUniqueKeys(json)).toEqual(JSON.parse(json));
        const names = Object.keys(object);
        const name = names[place % names.length] as string;
        expect(
          parseJsonWithUniqueKeys(`{"inner":[${json.slice(0, -1)},${JSON.stringify(name)}:0}]}`),
        ).toBeUndefined();
        expect(parseJsonWithUniqueKeys(`${json.slice(0, -1)},${JSON.stringify(name)}:{}}`)).toBeUndefined();
      }),
    );
  });

  test('what is no object is none', () => {
    for (const json of ['null', '"a"', '1', 'true', '[]', '[{"a":1}]', '', '{'])
      expect(parseJsonWithUniqueKeys(json)).toBeUndefined();
  });

  test('texts that look like members are none', () => {
    for (const object of [
      { a: '"a":1' },
      { a: '{"a":{"a":1}}' },
      { a: '\\', b: '\\"' },
      { a: { a: { a: [] } } },
      { a: [{ b: 1 }, { b: 2 }] },
    ]) {
      expect(parseJsonWithUniqueKeys(JSON.stringify(object))).toEqual(object);
    }
  });
});

describe('what claims come to', () => {
  const of = (value: string, scope: string, realms: Realms): ClaimRight => ({
    claim: ['groups'],
    value,
    scopes: parseScopes(scope) ?? new Set(),
    realms,
  });
  const here: Realms = new Set([REALM]);
  const there: Realms = new Set([OTHER]);

  test('no right without a claim that has one', () => {
    const rights = [of('readers', 'users:read', '*')];
    for (const claims of [
      {},
      { groups: [] },
      { groups: 'reader' },
      { groups: ['Readers'] },
      { groups: { readers: true } },
      { roles: ['readers'] },
    ]) {
      expect(rightsFromClaims(claims, rights)).toEqual({ scopes: new Set(), realms: new Set() });
    }
  });

  test.each([
    ['a text', ['groups'], { groups: 'readers' }],
    ['one of a list', ['groups'], { groups: ['others', 'readers'] }],
    ['far inside', ['realm_access', 'roles'], { realm_access: { roles: ['readers'] } }],
    ['a word of scope', ['scope'], { scope: 'openid readers' }],
    ['one of a list of scopes', ['scope'], { scope: ['openid', 'readers'] }],
    ['a word of scp', ['scp'], { scp: 'readers openid' }],
  ])('a claim says it as %s', (_form, claim, claims) => {
    const rights = [{ ...of('readers', 'users:read', here), claim }];
    expect(rightsFromClaims(claims, rights)).toEqual({ scopes: new Set(['users:read']), realms: here });
  });

  test('a text is no list of words but where it is scopes', () => {
    expect(
      rightsFromClaims({ groups: 'others readers' }, [of('readers', 'users:read', '*')]).scopes.size,
    ).toBe(0);
    expect(
      rightsFromClaims({ scope: 'unreaders' }, [{ ...of('readers', 'users:read', '*'), claim: ['scope'] }])
        .scopes.size,
    ).toBe(0);
  });

  test('places in a list are no names', () => {
    const rights = [{ ...of('readers', 'users:read', '*'), claim: ['groups', '0'] }];
    expect(rightsFromClaims({ groups: ['readers'] }, rights).scopes.size).toBe(0);
    expect(rightsFromClaims({ groups: { 0: 'readers' } }, rights).scopes.size).toBe(1);
    for (const groups of [null, 'readers', 1])
      expect(rightsFromClaims({ groups }, rights).scopes.size).toBe(0);
  });

  test('members that every object has are no claims', () => {
    const rights = [
      { ...of('*', 'users:read', '*'), claim: ['constructor', 'name'] },
      { ...of('*', 'users:read', '*'), claim: ['__proto__'] },
    ];
    expect(rightsFromClaims({}, rights).scopes.size).toBe(0);
  });

  test('everybody is who has the claim at all', () => {
    const rights = [of('*', 'users:read', '*')];
    expect([
      rightsFromClaims({ groups: 0 }, rights).scopes.size,
      rightsFromClaims({ groups: null }, rights).scopes.size,
    ]).toEqual([1, 0]);
  });

  test('the same scopes add their realms; different ones go together where all of them are', () => {
    const claims = { groups: ['a', 'b', 'c'] };
    const read = 'users:read';
    expect(rightsFromClaims(claims, [of('a', read, here), of('b', read, there)])).toEqual({
      scopes: new Set([read]),
      realms: new Set([REALM, OTHER]),
    });
    for (const rights of [
      [of('a', read, here), of('b', read, '*')],
      [of('a', read, '*'), of('b', read, here)],
    ]) {
      expect(rightsFromClaims(claims, rights)).toEqual({ scopes: new Set([read]), realms: '*' });
    }
    expect(rightsFromClaims(claims, [of('a', read, '*'), of('b', 'users:write', here)])).toEqual({
      scopes: new Set([read, 'users:write']),
      realms: here,
    });
    expect(rightsFromClaims(claims, [of('a', read, here), of('b', 'users:write', there)]).realms).toEqual(
      new Set(),
    );
    // admin reaches every realm, and so does not stand beside a limit.
    expect(rightsFromClaims(claims, [of('a', 'admin', '*'), of('b', read, here)])).toEqual({
      scopes: new Set([read]),
      realms: here,
    });
    expect(rightsFromClaims(claims, [of('a', 'admin', '*'), of('b', read, '*')]).scopes).toEqual(
      new Set(['admin', read]),
    );
  });

  test('nobody gets a scope in a realm that no right of theirs names together', () => {
    const realm = fc.constantFrom<Realms>('*', here, there, new Set([REALM, OTHER]));
    const scope = fc.constantFrom('users:read', 'users:write', 'users:read users:write', 'profiles:read');
    const rights = fc.array(fc.record({ value: fc.constantFrom('a', 'b', 'c'), scope, realm }), {
      maxLength: 6,
    });
    const has = (realms: Realms, id: Uuid) => realms === '*' || realms.has(id);
    fc.assert(
      fc.property(rights, fc.subarray(['a', 'b', 'c']), (drawn, groups) => {
        const all = drawn.map(({ value, scope: words, realm: realms }) => of(value, words, realms));
        const { scopes, realms } = rightsFromClaims({ groups }, all);
        for (const each of scopes)
          for (const id of [REALM, OTHER])
            if (has(realms, id)) {
              const named = all.filter(({ value }) => groups.includes(value));
              expect(named.some((one) => one.scopes.has(each) && has(one.realms, id))).toBe(true);
            }
      }),
    );
  });
});
