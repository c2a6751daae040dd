import { describe, expect, test } from 'bun:test';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import fc from 'fast-check';
import { parseIssuers } from '../../src/access/issuers/issuers_file.ts';
import { type ClaimRight, combineRights, metRights } from '../../src/access/tokens/claim_rights.ts';
import { parseJsonWithUniqueKeys } from '../../src/access/tokens/unique_key_json.ts';
import { readSettings } from '../../src/app/config/parse.ts';
import { serve } from '../../src/app/service.ts';
import { Refusal } from '../../src/model/fault.ts';
import type { Uuid } from '../../src/model/id.ts';
import { LIMITS } from '../../src/model/limits.ts';
import { parseScopes, type Realms } from '../../src/model/principal.ts';
import { systemClock } from '../../src/ops/process/clock.ts';
import { freshFolder } from '../support/folder.ts';
import { issuersFile } from '../support/issuers.ts';
import { runAuthrealm } from '../support/processes.ts';

const REALM = '0193c1d4-5a2e-7c11-9d0e-6b1f4a7e2c90' as Uuid;
const OTHER = '0193c1d4-5a2e-7c11-9d0e-6b1f4a7e2c91' as Uuid;
const right = { claim: 'groups', value: 'readers', scopes: 'users:read', realms: '*' };
const entry = { name: 'acme', issuer: 'https://login.example/', audience: 'directory', rights: [right] };

const read = (...entries: readonly unknown[]) =>
  parseIssuers('issuers.json', JSON.stringify({ issuers: entries }));

/** The problems of a file. */
function problemsOf(run: () => unknown): readonly string[] {
  try {
    run();
  } catch (error) {
    if (error instanceof Refusal && error.isUsage) return error.message.split('\n');
    throw error;
  }
  return [];
}

test('an issuer entry is parsed, with strict defaults', () => {
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
  const [parsed] = read({
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
  expect(parsed).toMatchObject({
    jwksUri: 'https://login.example/keys',
    type: 'jwt',
    algorithms: ['ES256', 'EdDSA'],
  });
  expect(parsed?.rights[0]).toEqual({
    claim: ['realm_access', 'roles'],
    value: 'readers',
    scopes: new Set(['oidc-profile-infos:read', 'password-profile-infos:read']),
    realms: new Set([REALM]),
  });
});

const WRONG: [what: string, wrong: unknown, complaint: RegExp][] = [
  ['an unknown member', { ...entry, audiences: [] }, /issuers\.0 .*audiences/],
  ['an invalid name', { ...entry, name: 'Acme Inc.' }, /issuers\.0\.name must be 1 to 32/],
  ['an http issuer', { ...entry, issuer: 'http://login.example' }, /issuers\.0\.issuer must be https/],
  ['an issuer with a query', { ...entry, issuer: 'https://login.example?a' }, /issuers\.0\.issuer .*query/],
  ['an http jwks_uri', { ...entry, jwks_uri: 'http://login.example' }, /issuers\.0\.jwks_uri must be https/],
  ['no audience', { ...entry, audience: undefined }, /issuers\.0\.audience/],
  ['HS256', { ...entry, algorithms: ['HS256'] }, /issuers\.0\.algorithms\.0 must be one of RS256/],
  ['alg none', { ...entry, algorithms: ['none'] }, /issuers\.0\.algorithms\.0 must be one of RS256/],
  ['no algorithm', { ...entry, algorithms: [] }, /issuers\.0\.algorithms must name at least one/],
  ['a typ with a space', { ...entry, typ: 'at jwt' }, /issuers\.0\.typ must be/],
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
    'admin for every value',
    { ...entry, rights: [{ ...right, value: '*', scopes: 'admin' }] },
    /rights\.0\.value must name a value/,
  ],
  [
    'admin in one realm',
    { ...entry, rights: [{ ...right, scopes: 'users:read admin', realms: [REALM] }] },
    /rights\.0\.realms must be "\*"/,
  ],
  ['an invalid realm ID', { ...entry, rights: [{ ...right, realms: ['shop'] }] }, /rights\.0\.realms/],
  [
    'no realms',
    { ...entry, rights: [{ ...right, realms: undefined }] },
    /rights\.0\.realms must be "\*" or a list/,
  ],
  [
    'a claim path that is too deep',
    { ...entry, rights: [{ ...right, claim: ['a', 'b', 'c', 'd', 'e'] }] },
    /rights\.0\.claim must be/,
  ],
  ['an empty claim path', { ...entry, rights: [{ ...right, claim: [] }] }, /rights\.0\.claim must be/],
  ['a claim without a name', { ...entry, rights: [{ ...right, claim: '' }] }, /rights\.0\.claim must be/],
  [
    'too many rights',
    { ...entry, rights: Array(LIMITS.issuerRightsMax + 1).fill(right) },
    /rights must have at most 100 entries/,
  ],
];

test('a right other than admin may be given to every value of a claim', () => {
  expect(read({ ...entry, rights: [{ ...right, value: '*' }] })[0]?.rights[0]?.value).toBe('*');
});

const QUIET = { write: () => undefined };

describe('invalid issuers files', () => {
  test.each(WRONG)('an issuers file is refused with %s', (_what, entry, complaint) => {
    const found = problemsOf(() => read(entry));
    expect(found).toHaveLength(1);
    expect(found[0]).toMatch(complaint);
  });

  test('an issuers file is refused with an issuer that is not a URL', () => {
    expect(problemsOf(() => read({ ...entry, issuer: 'nonsense', jwks_uri: 'nonsense' })).join()).toMatch(
      /issuers\.0\.issuer must be an absolute .*issuers\.0\.jwks_uri must be an absolute/,
    );
  });

  test('an issuers file is refused with a repeated name or issuer', () => {
    expect(problemsOf(() => read(entry, { ...entry, issuer: 'https://other.example' }))).toEqual([
      'issuers.json: issuers.1.name is already used by another issuer',
    ]);
    expect(problemsOf(() => read(entry, { ...entry, name: 'other' }))).toEqual([
      'issuers.json: issuers.1.issuer is already used by another issuer',
    ]);
  });

  test('an issuers file may have the maximum of issuers and rights, and no more issuers', () => {
    const entries = (count: number) =>
      Array.from({ length: count }, (_, place) => ({
        ...entry,
        name: `n${place}`,
        issuer: `https://${place}.example`,
      }));
    expect(problemsOf(() => read(...entries(LIMITS.issuersMax)))).toEqual([]);
    expect(problemsOf(() => read(...entries(LIMITS.issuersMax + 1)))).toEqual([
      'issuers.json: issuers must have at most 32 entries',
    ]);
    expect(problemsOf(() => read({ ...entry, rights: Array(LIMITS.issuerRightsMax).fill(right) }))).toEqual(
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
      expect(problemsOf(() => parseIssuers('issuers.json', content))).toEqual([
        'issuers.json is not a JSON object, or has a duplicate key: write {"issuers": [ISSUER, …]}, with each key once',
      ]);
    }
  });

  test('all mistakes of an issuers file are reported at once', () => {
    const wrong = { ...entry, name: '', algorithms: ['HS256'], rights: [{ ...right, scopes: 'x' }] };
    expect(problemsOf(() => read(wrong))).toHaveLength(3);
  });
});

describe('the setting', () => {
  test('serve refuses an invalid issuers file, with one process and with several', async () => {
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
      const { code, stderr } = await runAuthrealm([...words, '--issuers-file', path]);
      expect(code).toBe(2);
      expect(stderr).toContain(`${path}: issuers.0.name must be`);
    }
  });

  test('a missing issuers file is reported by its setting', async () => {
    const settings = readSettings({ database: 'sqlite::memory:', issuersFile: '/nowhere/issuers.json' }, {});
    await expect(serve(settings, {} as never, QUIET, systemClock)).rejects.toThrow(/--issuers-file/);
  });

  test('an issuers file is refused if it lists the service itself', async () => {
    const flags = {
      database: 'sqlite::memory:',
      baseUrl: 'https://login.example/',
      issuersFile: issuersFile({ ...entry, issuer: 'https://login.example' }),
    };
    await expect(serve(readSettings(flags, {}), {} as never, QUIET, systemClock)).rejects.toThrow(
      /acme is this service itself/,
    );
  });

  test('--issuers-file and --offline are mutually exclusive', () => {
    const path = join(freshFolder(), 'issuers.json');
    writeFileSync(path, '{"issuers":[]}');
    const run = () => readSettings({ database: 'sqlite::memory:', issuersFile: path, offline: 'true' }, {});
    expect(problemsOf(run).join()).toMatch(/--offline/);
  });
});

describe('parseJsonWithUniqueKeys', () => {
  test('parseJsonWithUniqueKeys parses like JSON.parse and rejects any repeated key', () => {
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

  test('parseJsonWithUniqueKeys rejects values that are not objects', () => {
    for (const json of ['null', '"a"', '1', 'true', '[]', '[{"a":1}]', '', '{'])
      expect(parseJsonWithUniqueKeys(json)).toBeUndefined();
  });

  test('parseJsonWithUniqueKeys does not take text within strings for keys', () => {
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

describe('the rights that claims map to', () => {
  const rightsFromClaims = (claims: object, rights: readonly ClaimRight[]) =>
    combineRights(metRights({ ...claims }, rights));

  const of = (value: string, scope: string, realms: Realms): ClaimRight => ({
    claim: ['groups'],
    value,
    scopes: parseScopes(scope) ?? new Set(),
    realms,
  });
  const here: Realms = new Set([REALM]);
  const there: Realms = new Set([OTHER]);

  test('claims without a matching value give no right', () => {
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
    ['a string', ['groups'], { groups: 'readers' }],
    ['an element of a list', ['groups'], { groups: ['others', 'readers'] }],
    ['a nested claim', ['realm_access', 'roles'], { realm_access: { roles: ['readers'] } }],
    ['a word of scope', ['scope'], { scope: 'openid readers' }],
    ['an element of a scope list', ['scope'], { scope: ['openid', 'readers'] }],
    ['a word of scp', ['scp'], { scp: 'readers openid' }],
  ])('a claim gives its right as %s', (_form, claim, claims) => {
    const rights = [{ ...of('readers', 'users:read', here), claim }];
    expect(rightsFromClaims(claims, rights)).toEqual({ scopes: new Set(['users:read']), realms: here });
  });

  test('only scope and scp claims are split into words', () => {
    expect(
      rightsFromClaims({ groups: 'others readers' }, [of('readers', 'users:read', '*')]).scopes.size,
    ).toBe(0);
    expect(
      rightsFromClaims({ scope: 'unreaders' }, [{ ...of('readers', 'users:read', '*'), claim: ['scope'] }])
        .scopes.size,
    ).toBe(0);
  });

  test('list indexes are not claim names', () => {
    const rights = [{ ...of('readers', 'users:read', '*'), claim: ['groups', '0'] }];
    expect(rightsFromClaims({ groups: ['readers'] }, rights).scopes.size).toBe(0);
    expect(rightsFromClaims({ groups: { 0: 'readers' } }, rights).scopes.size).toBe(1);
    for (const groups of [null, 'readers', 1])
      expect(rightsFromClaims({ groups }, rights).scopes.size).toBe(0);
  });

  test('inherited properties are not claims', () => {
    const rights = [
      { ...of('*', 'users:read', '*'), claim: ['constructor', 'name'] },
      { ...of('*', 'users:read', '*'), claim: ['__proto__'] },
    ];
    expect(rightsFromClaims({}, rights).scopes.size).toBe(0);
  });

  test('the value * matches every claim that is present and not null', () => {
    const rights = [of('*', 'users:read', '*')];
    expect([
      rightsFromClaims({ groups: 0 }, rights).scopes.size,
      rightsFromClaims({ groups: null }, rights).scopes.size,
    ]).toEqual([1, 0]);
  });

  test('rights with the same scope join their realms, and different scopes keep their common realms', () => {
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
    // admin covers every realm, so it is dropped next to a limited right.
    expect(rightsFromClaims(claims, [of('a', 'admin', '*'), of('b', read, here)])).toEqual({
      scopes: new Set([read]),
      realms: here,
    });
    expect(rightsFromClaims(claims, [of('a', 'admin', '*'), of('b', read, '*')]).scopes).toEqual(
      new Set(['admin', read]),
    );
  });

  test('claims never give a scope in a realm that no single right gives', () => {
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
