import { describe, expect, test } from 'bun:test';
import type { Uuid } from '../../../src/model/id.ts';
import { user } from '../../../src/model/resources.ts';
import { UNUSUAL_EMAILS } from '../../support/emails.ts';
import {
  importCounts,
  type Json,
  meta,
  mintId,
  realmLines,
  runImport,
} from '../../support/import_fixtures.ts';
import { PASSWORD_HASH, startService } from '../../support/service.ts';

const service = await startService();
const db = service.db;

describe('an invalid line is refused with its number and reason, without its values', async () => {
  const { ids, lines, all } = realmLines();
  const secretive = 'do-not-repeat-me';
  await runImport(db, all);
  const fresh = <L extends Json>(line: L, more: Json = {}) => ({ ...line, id: mintId(), ...more });
  const name = (more: Json) => fresh(lines.name, { username: mintId(), ...more });
  const instant = /^meta\.(created|updated)_at must be an instant of RFC 3339/;
  const hash = /^password_hash must be argon2i or argon2id/;
  const cost = (m: number, t: number, p: number) =>
    `$argon2id$v=19$m=${m},t=${t},p=${p}$${'c2Fs'.repeat(4)}$${'aGFz'.repeat(8)}`;

  const cases: [string, Json | string, RegExp][] = [
    ['not JSON', `{"type": ${secretive}`, /^is not JSON$/],
    ['two objects', '{} {}', /^is not JSON$/],
    ['deeper than any record', '['.repeat(60_000), /^is not JSON$/],
    ['an array', '[]', /^must be a JSON object$/],
    ['null', 'null', /^must be a JSON object$/],
    ['a string', `"${secretive}"`, /^must be a JSON object$/],
    ['no type', { id: mintId() }, /^type must be one of authentication-realm, /],
    ['an unknown type', { type: secretive, id: mintId() }, /^type must be one of /],
    ['a type of Object.prototype', { type: 'constructor' }, /^type must be one of /],
    ['a type that is not a string', { type: ['authentication-realm'] }, /^type must be one of /],
    ['no id', { ...lines.realm, id: undefined }, /^id is missing$/],
    ['an id that is not a UUID', fresh(lines.user, { id: secretive }), /^id must be the identifier/],
    ['an id that is a number', fresh(lines.user, { id: 7 }), /^id must be the identifier/],
    ['no realm', fresh(lines.user, { realm_id: undefined }), /^realm_id is missing$/],
    ['no user', name({ user_authentication_info_id: undefined }), /^user_authentication_info_id is missing$/],
    [
      'a realm_id other than the id of the realm',
      fresh(lines.realm, { realm_id: mintId() }),
      /^realm_id must equal id$/,
    ],
    ['no name', fresh(lines.user, { name: undefined }), /^name is missing$/],
    ['a name that is a number', fresh(lines.user, { name: 5 }), /^name must be a string$/],
    ['a blank name', fresh(lines.user, { name: ' ' }), /^name must not be blank$/],
    [
      'an invalid e-mail address',
      fresh(lines.user, { email: secretive }),
      /^email must be an e-mail address$/,
    ],
    [
      'an unknown policy',
      fresh(lines.realm, { duplicate_email_policy: secretive }),
      /^duplicate_email_policy must be one of allowed, api_only$/,
    ],
    [
      'a wrong origin',
      fresh(lines.realm, { relationships: { origin: { data: { id: 1 } } } }),
      /^relationships\.origin\.data\.id must be a string/,
    ],
    ['meta that is a string', fresh(lines.user, { meta: secretive }), /^meta must be a JSON object$/],
    [
      'an unknown creation status',
      fresh(lines.user, { meta: { creation_status: secretive } }),
      /^meta\.creation_status must be one of COMPLETE, IN_PROGRESS$/,
    ],
    [
      'a subject with a control character',
      fresh(lines.link, { subject: `${secretive}\u0000` }),
      /^subject must hold no control/,
    ],
    [
      'a lone surrogate',
      JSON.stringify(fresh(lines.link, { subject: '#' })).replace('#', '\\ud800'),
      /^subject must hold no control/,
    ],
    [
      'an issuer with a query',
      fresh(lines.link, { issuer: `https://a.example/?${secretive}` }),
      /^issuer must have no userinfo/,
    ],
    [
      'a profile that is not a UUID',
      fresh(lines.link, { oidc_profile_id: secretive }),
      /^oidc_profile_id must be the identifier/,
    ],
    ...['2021-02-03T04:05:06', '2021-02-03 04:05:06Z', '2021-02-03T04:05:60Z', '2021-02-03T04:05:06.Z'].map(
      (created_at): [string, Json, RegExp] => [
        created_at,
        fresh(lines.user, { meta: { created_at } }),
        instant,
      ],
    ),
    ...[
      '2021-02-03T04:05:06+24:00',
      '2021-02-03T04:05:06+0100',
      '9999-12-31T23:59:59-01:00',
      '2021-02-03',
    ].map((updated_at): [string, Json, RegExp] => [
      updated_at,
      fresh(lines.user, { meta: { updated_at } }),
      instant,
    ]),
    [
      'a day that does not exist',
      fresh(lines.user, { meta: { created_at: '2021-02-30T04:05:06.007Z' } }),
      instant,
    ],
    [
      'an hour that does not exist',
      fresh(lines.user, { meta: { updated_at: '2021-02-03T24:00:00.000Z' } }),
      instant,
    ],
    ['a time that is a number', fresh(lines.user, { meta: { updated_at: 1_612_325_106_007 } }), instant],
    ['a time that is null', fresh(lines.user, { meta: { updated_at: null } }), instant],
    [
      'updated_at before created_at',
      fresh(lines.user, { meta: { created_at: meta.updated_at, updated_at: meta.created_at } }),
      /^meta\.updated_at must not be before meta\.created_at$/,
    ],
    [
      'a profile without an issuer',
      fresh(lines.oidc, { meta }),
      /^meta\.issuer is missing: state it as the tokens of the provider have it$/,
    ],
    [
      'a profile with the issuer of another discovery URL',
      fresh(lines.oidc, { meta: { ...meta, issuer: `https://${secretive}.example` } }),
      /^meta\.issuer must be discovery_url without \/\.well-known\/openid-configuration, with or without a final slash$/,
    ],
    ['an empty client secret', fresh(lines.oidc, { client_secret: '' }), /^client_secret must not be blank$/],
    ['a password in clear text', name({ password_hash: secretive }), hash],
    ['argon2d', name({ password_hash: PASSWORD_HASH.replace('argon2id', 'argon2d') }), hash],
    ['argon2 of an older version', name({ password_hash: PASSWORD_HASH.replace('v=19', 'v=16') }), hash],
    ['argon2 without its version', name({ password_hash: PASSWORD_HASH.replace('$v=19', '') }), hash],
    [
      'argon2 without its hash',
      name({ password_hash: PASSWORD_HASH.slice(0, PASSWORD_HASH.lastIndexOf('$')) }),
      hash,
    ],
    [
      'argon2 with a short salt',
      name({ password_hash: `$argon2id$v=19$m=64,t=1,p=1$c2Fs$${'aGFz'.repeat(8)}` }),
      hash,
    ],
    ['argon2 with too much memory', name({ password_hash: cost(262_145, 1, 1) }), hash],
    ['argon2 with too many passes', name({ password_hash: cost(65_536, 9, 1) }), hash],
    ['argon2 with too many lanes', name({ password_hash: cost(65_536, 2, 9) }), hash],
    ['argon2 with less memory than lanes', name({ password_hash: cost(8, 2, 8) }), hash],
    ['bcrypt of excessive cost', name({ password_hash: `$2b$13$${'a'.repeat(53)}` }), hash],
    ['bcrypt without its hash', name({ password_hash: '$2b$10$' }), hash],
    ['yescrypt', name({ password_hash: '$y$j9T$c2FsdHNhbHQ$aGFzaGhhc2hoYXNoaGFzaA' }), hash],
    [
      'an identity of another record',
      fresh(lines.link),
      /^another record of the realm has the same issuer and subject$/,
    ],
    [
      'a username of another record, in another letter case',
      fresh(lines.name, { username: lines.name.username.toUpperCase() }),
      /^another record of the realm has the same password_profile_id and username$/,
    ],
    [
      'an identifier in use under another user',
      { ...lines.link, user_authentication_info_id: lines.user.id.replace(/^./, 'f') },
      /^another record of the realm has the same id$/,
    ],
    [
      'an existing record with other content',
      { ...lines.user, name: secretive },
      /^differs from the stored record in name$/,
    ],
    [
      'a secret other than the stored one',
      { ...lines.oidc, client_secret: secretive },
      /^differs from the stored record in client_secret$/,
    ],
  ];

  for (const [what, line, reason] of cases) {
    test(`a line with ${what} is refused`, async () => {
      const report = await runImport(db, [line]);
      expect(report.counts).toEqual(importCounts(0, 0, 0, 1));
      const [refusal = ''] = report.refusals;
      expect(refusal).toStartWith('line 1: ');
      expect(refusal.slice('line 1: '.length)).toMatch(reason);
      const values = [
        secretive,
        ids.user,
        ids.link,
        lines.link.subject,
        lines.name.username,
        'jane@',
        '$2b',
        'c2Fs',
      ];
      for (const value of values) expect(refusal).not.toContain(value);
    });
  }

  test('unknown members are ignored, __proto__ included', async () => {
    const odd = JSON.stringify(fresh(lines.user)).replace(
      '{',
      '{"__proto__":{"name":"x"},"usernameFormat":[1],',
    );
    expect((await runImport(db, [odd])).counts).toEqual(importCounts(1, 0, 0, 0));
  });

  test('password hashes of every supported format are imported', async () => {
    const hashes = [
      PASSWORD_HASH,
      cost(262_144, 2, 8),
      cost(262_144, 2, 8).replace('argon2id', 'argon2i'),
      await Bun.password.hash('a password', { algorithm: 'argon2id', memoryCost: 64, timeCost: 1 }),
      await Bun.password.hash('a password', { algorithm: 'bcrypt', cost: 4 }),
      ...['2a', '2b', '2y'].map((prefix) => `$${prefix}$12$${'a'.repeat(53)}`),
    ];
    const report = await runImport(
      db,
      hashes.map((each) => name({ password_hash: each })),
    );
    expect([report.counts, report.refusals]).toEqual([importCounts(hashes.length, 0, 0, 0), []]);
  });

  test('times that are missing in a line are set to the time of the import', async () => {
    const before = Date.now();
    const line = fresh(lines.user, { meta: undefined });
    const late = fresh(lines.user, { meta: { created_at: meta.created_at } });
    const early = fresh(lines.user, { meta: { updated_at: meta.updated_at } });
    await runImport(db, [line, late, early]);
    const stored = async (id: unknown) => db.engine.records.get(user, [ids.realm, id as Uuid]);
    const bare = await stored(line.id);
    expect(bare?.created_at).toBeGreaterThanOrEqual(before);
    expect(bare?.updated_at).toBe(bare?.created_at as number);
    expect((await stored(late.id))?.updated_at).toBeGreaterThanOrEqual(before);
    expect((await stored(early.id))?.created_at).toBe(Date.parse(meta.updated_at));
  });
});

describe('members that an import does not know', () => {
  const { lines } = realmLines();
  const person = (more: Json) => ({ ...lines.user, id: mintId(), ...more });
  const source = [
    { ...lines.realm, links: {}, relationships: { shop: null } },
    person({ phone: 'do-not-repeat-me', meta: { ...meta, origin: 'x' } }),
    person({ phone: null }),
    lines.user,
    lines.passwords,
    { ...lines.name, user_authentication_info_id: lines.user.id, phone: '1' },
  ];

  test('unknown members are counted by name, each line once', async () => {
    const { refusals, ignored } = await runImport(db, source);
    expect([refusals, Object.fromEntries(ignored)]).toEqual([
      [],
      { links: 1, 'relationships.shop': 1, 'meta.origin': 1, phone: 3 },
    ]);
  });

  test('unknown members of a strict import are refused, without their values', async () => {
    const { refusals } = await runImport(db, source, { isStrict: true });
    expect(refusals).toEqual([
      'line 1: links is no member of authentication-realm; relationships.shop is no member of authentication-realm',
      'line 2: phone is no member of user_authentication_info; meta.origin is no member of user_authentication_info',
      'line 3: phone is no member of user_authentication_info',
      'line 6: phone is no member of user_authentication_password_profile_info',
    ]);
  });
});

test.each([
  ['2021-02-03T04:05:06Z', '2021-02-03T04:05:06.000Z'],
  ['2021-02-03t04:05:06.5z', '2021-02-03T04:05:06.500Z'],
  ['2021-02-03T04:05:06.0079999999Z', '2021-02-03T04:05:06.007Z'],
  ['2021-02-28T23:30:00-05:30', '2021-03-01T05:00:00.000Z'],
  ['2020-02-29T00:00:00+14:00', '2020-02-28T10:00:00.000Z'],
  ['2021-02-03T04:05:06-00:00', '2021-02-03T04:05:06.000Z'],
])('the instant %s is imported as %s', async (created_at, stored) => {
  const { ids, lines } = realmLines();
  const owner = { ...lines.user, meta: { created_at, updated_at: '2022-01-01T00:00:00Z' } };
  expect((await runImport(db, [lines.realm, owner])).refusals).toEqual([]);
  const record = await db.engine.records.get(user, [ids.realm, ids.user] as [Uuid, Uuid]);
  expect(new Date(record?.created_at ?? 0).toISOString()).toBe(stored);
});

describe('a username under a profile with username_format email', () => {
  const strict = () => {
    const { lines, ids } = realmLines();
    return { ids, lines: { ...lines, passwords: { ...lines.passwords, username_format: 'email' } } };
  };
  const reason = 'username must be an e-mail address: its password-profile requires it';

  test('a username must be an e-mail address, also in the commit of its profile', async () => {
    const { lines } = strict();
    const names = [lines.name, { ...lines.name, id: mintId(), username: 'j@example.com' }];
    const report = await runImport(db, [lines.realm, lines.passwords, lines.user, ...names]);
    expect(report.counts).toEqual(importCounts(4, 0, 0, 1));
    expect(report.refusals).toEqual([`line 4: ${reason}`]);
  });

  test('people with unusual e-mail addresses are imported with their usernames', async () => {
    const { lines } = strict();
    const people = UNUSUAL_EMAILS.flatMap((address) => {
      const owner = { ...lines.user, id: mintId(), email: address };
      const name = { ...lines.name, id: mintId(), user_authentication_info_id: owner.id, username: address };
      return [owner, name];
    });
    const report = await runImport(db, [lines.realm, lines.passwords, ...people]);
    expect(report.refusals).toEqual([]);
  });

  test('the username_format of a refused profile line does not apply', async () => {
    const { lines } = strict();
    await runImport(db, [lines.realm, lines.user, { ...lines.passwords, username_format: 'any' }]);
    const report = await runImport(db, [lines.passwords, lines.name]);
    expect(report.counts).toEqual(importCounts(1, 0, 0, 1));
    expect(report.refusals).toEqual(['line 1: differs from the stored record in username_format']);
    const replacing = await runImport(db, [lines.passwords, { ...lines.name, id: mintId(), username: 'x' }], {
      isUpsert: true,
    });
    expect(replacing.refusals).toEqual([`line 2: ${reason}`]);
  });

  test('a username line older than the last change of its profile is imported in any format', async () => {
    const { lines, ids } = strict();
    const switched = '2022-06-01T00:00:00.000Z';
    const profile = { ...lines.passwords, meta: { ...meta, updated_at: switched } };
    const name = (updated_at: string | undefined) => ({
      ...lines.name,
      id: mintId(),
      username: mintId(),
      meta: updated_at === undefined ? undefined : { created_at: meta.created_at, updated_at },
    });
    const above = [lines.realm, lines.user, profile];
    for (const names of [[name('2022-05-31T23:59:59.999Z')], [name(switched), name(undefined)]]) {
      for (const source of [[...above, ...names], names]) {
        const { refusals, counts } = await runImport(db, source);
        const isOlder = names.length === 1;
        expect(refusals.every((refusal) => refusal.endsWith(reason))).toBe(true);
        expect([refusals.length, counts.refused]).toEqual(isOlder ? [0, 0] : [2, 2]);
      }
    }
    expect(ids.realm).toBe(lines.realm.id);
  });

  test('a changed username_format does not apply to stored usernames', async () => {
    const { lines } = realmLines();
    await runImport(db, [lines.realm, lines.user, lines.passwords, lines.name]);
    const strictly = { ...lines.passwords, username_format: 'email' };
    expect((await runImport(db, [strictly, lines.name], { isUpsert: true })).counts).toEqual(
      importCounts(0, 1, 1, 0),
    );
  });
});
