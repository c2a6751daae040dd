import { describe, expect, test } from 'bun:test';
import {
  createParents,
  createRecord,
  type Data,
  type Form,
  FULL_SCOPE,
  KINDS,
  type Kind,
  OFFLINE,
  PASSWORD,
  type RecordBody,
  rowCounts,
  uniqueWord,
} from '../../support/resource_cases.ts';
import { comparableResponse, errorsOf, startService } from '../../support/service.ts';

/** Invalid values of every member, in POST and PUT. */

const service = await startService(OFFLINE);
const token = await service.token(FULL_SCOPE);
const home = await createParents(service, token);

type InvalidValue = readonly [what: string, value: unknown];

const NOT_STRINGS: readonly InvalidValue[] = [
  ['null', null],
  ['a number', 71234567],
  ['a boolean', true],
  ['an array', ['https://long.example/']],
  ['an object', { toString: 'https://long.example/' }],
];
const FORBIDDEN_TEXTS: readonly InvalidValue[] = [
  ['empty', ''],
  ['blank', '        '],
  ['blank in Unicode', '\u00a0\u2003\u3000'],
  ['NUL', 'long-enough\0'],
  ['a line feed', 'long\nenough'],
  ['DEL', 'long-enough\u007f'],
  ['a control character of Latin-1', 'long-enough\u0085'],
  ['a lone high surrogate', 'long-enough\ud83d'],
  ['a lone low surrogate', '\ude00long-enough'],
];
const WEB = 'https://long.example/';

function tooLong(max: number): readonly InvalidValue[] {
  return [
    ['too long', 'x'.repeat(max + 1)],
    ['too long in code points', '\u{1f600}'.repeat(max + 1)],
  ];
}

/** The invalid values of each form of member. */
const INVALID: { readonly [F in Form['of']]: (form: Extract<Form, { of: F }>) => readonly InvalidValue[] } = {
  text: ({ max, isNullable }) => [
    ...NOT_STRINGS.filter(([what]) => !(isNullable && what === 'null')),
    ...FORBIDDEN_TEXTS,
    ...tooLong(max),
  ],
  email: ({ max }) => [
    ...NOT_STRINGS,
    ...FORBIDDEN_TEXTS,
    ['too long', `${'x'.repeat(max)}@example.com`],
    ...['jane.example.com', 'jane@', '@example.com', 'jane@home@example.com', 'jane doe@example.com'].map(
      (value): InvalidValue => [value, value],
    ),
  ],
  username: ({ max }) => [
    ...NOT_STRINGS,
    ...FORBIDDEN_TEXTS,
    ...tooLong(max),
    ['a right-to-left override', 'jane\u202eenod'],
    ['an isolate', 'jane\u2066doe'],
    ['an Arabic letter mark', 'jane\u061cdoe'],
    ['a private-use character', 'jane\ue000doe'],
    ['an unassigned character', 'jane\u0378doe'],
    ['only invisible characters', '\u200b\u2060\ufeff\u00ad'],
    ['a key of too many bytes', '\ufdfa'.repeat(255)],
  ],
  url: ({ max }) => [
    ...NOT_STRINGS,
    ...FORBIDDEN_TEXTS,
    ['too long', `${WEB}${'x'.repeat(max)}`],
    ['relative', '/.well-known/openid-configuration'],
    ['without scheme', 'login.example.com'],
    ['another scheme', 'ftp://login.example.com/'],
    ['script', 'javascript:alert(document.domain)'],
    ['a space', 'https://login.example.com/a b'],
    ['a backslash', 'https://login.example.com\\@evil.example'],
    ['not ASCII', 'https://löGin.example.com/'],
    ['no host', 'https://'],
    ['an invalid port', 'https://login.example.com:99999/'],
  ],
  issuer: ({ max }) => [
    ...INVALID.url({ of: 'url', max }),
    ['userinfo', 'https://jane:secret@login.example.com/'],
    ['a query', 'https://login.example.com/?tenant=one'],
    ['an empty query', 'https://login.example.com/?'],
    ['a fragment', 'https://login.example.com/#one'],
  ],
  choice: () => [...NOT_STRINGS, ['empty', ''], ['another word', 'disallowed'], ['spaces', ' allowed ']],
  boolean: () => [
    ['null', null],
    ['a number', 1],
    ['a text', 'true'],
    ['an array', [true]],
    ['an object', {}],
  ],
  addresses: () => [
    ['null', null],
    ['a text', 'https://shop.example/'],
    ['an object', { 0: 'https://shop.example/' }],
    ['too many', Array.from({ length: 101 }, (_, index) => `https://shop.example/${index}`)],
    ...NOT_STRINGS.map(
      ([what, value]): InvalidValue => [`${what} among them`, ['https://shop.example/', value]],
    ),
  ],
  reference: () => [
    ...NOT_STRINGS,
    ['empty', ''],
    ['not an ID', 'the-only-profile'],
    ['braces', '{018f3a1e-0000-7000-8000-000000000000}'],
    ['a line feed after it', '018f3a1e-0000-7000-8000-000000000000\n'],
  ],
  password: () => [
    ...NOT_STRINGS,
    ['empty', ''],
    ['seven characters', 'seven77'],
    ['seven code points in fourteen units', '\u{1f600}'.repeat(7)],
    ['eight code points that compose to four', 'e\u0301'.repeat(4)],
    ['1,025 bytes', 'x'.repeat(1025)],
    ['1,025 bytes after normalisation', '\ufdfa'.repeat(32)],
    ['a lone surrogate', 'long-enough\ud83d'],
  ],
};

function invalidValuesOf(form: Form): readonly InvalidValue[] {
  return (INVALID[form.of] as (form: Form) => readonly InvalidValue[])(form);
}

/** Sends the same `data` by POST and PUT; returns the statuses. Every error must be about this member. */
async function statusesOf(kind: Kind, path: string, data: Data, about: string) {
  const answers = [
    await service.post(kind.collection(home), token, { data: { ...kind.fresh(home), ...data } }),
    await service.put(path, token, { data: { type: kind.resource.type, ...data } }),
  ];
  for (const answer of answers.filter(({ ok }) => !ok)) {
    for (const { source, detail } of await errorsOf(answer)) {
      expect(source?.pointer).toMatch(new RegExp(`^/data/${about}(/\\d+)?$`));
      expect(detail).toMatch(/^data\.[a-z_0-9.]+: (is|must|has) /);
    }
  }
  return answers.map(({ status }) => status);
}

describe.each([...KINDS])('$name', async (kind) => {
  const { path } = await createRecord(service, token, { kind, home });

  describe.each(Object.entries(kind.forms))('%s', (name, form) => {
    // The reference to a profile cannot change: a PUT ignores the member (docs/wire.md#updates).
    const isIgnored = form.of === 'reference';
    test(`an invalid ${name} of a ${kind.name} is 400, and nothing is written`, async () => {
      const before = await rowCounts(service);
      const record = await comparableResponse(await service.get(path, token));
      for (const [what, value] of invalidValuesOf(form)) {
        const statuses = await statusesOf(kind, path, { [name]: value }, name);
        expect([what, statuses]).toEqual([what, [400, isIgnored ? 200 : 400]]);
      }
      if (isIgnored) return;
      expect(await rowCounts(service)).toEqual(before);
      expect(await comparableResponse(await service.get(path, token))).toBe(record);
    });

    test(`a missing ${name} of a new ${kind.name} is 400 if it is required, otherwise it has its default`, async () => {
      const { [name]: _, ...data } = kind.fresh(home);
      const answer = await service.post(kind.collection(home), token, { data });
      const isRequired = kind.required.includes(name);
      expect(answer.status).toBe(isRequired ? 400 : 201);
      if (!isRequired) return;
      expect(await errorsOf(answer)).toEqual([
        {
          status: '400',
          title: 'Bad Request',
          detail: `data.${name}: is missing`,
          code: 'invalid',
          source: { pointer: `/data/${name}` },
        },
      ]);
    });
  });

  test(`a missing or wrong type of a ${kind.name} is 400`, async () => {
    const other = KINDS.find(({ resource }) => !kind.resource.type.includes(resource.type)) as Kind;
    const { type } = kind.resource;
    const wrong = [null, '', 7, [type], {}, `${type} `, type.toUpperCase(), other.resource.type];
    const swapped = type.includes('_') ? type.replaceAll('_', '-') : type.replaceAll('-', '_');
    for (const value of [undefined, ...wrong, swapped]) {
      const statuses = await statusesOf(kind, path, { type: value }, 'type');
      expect([value, statuses]).toEqual([value, [400, 400]]);
    }
  });

  test(`a POST of an empty ${kind.name} reports every missing member`, async () => {
    const answer = await service.post(kind.collection(home), token, { data: {} });
    const pointers = (await errorsOf(answer)).map(({ source }) => source?.pointer);
    expect(pointers.sort()).toEqual(['type', ...kind.required].map((name) => `/data/${name}`).sort());
  });

  test(`relationships of a ${kind.name} may be null or an object, otherwise 400`, async () => {
    for (const relationships of [null, {}, { origin: null }]) {
      const data = { ...kind.fresh(home), relationships };
      expect((await service.post(kind.collection(home), token, { data })).status).toBe(201);
      const put = { data: { type: kind.resource.type, relationships } };
      expect((await service.put(path, token, put)).status).toBe(200);
    }
    for (const relationships of ['realm-of-mine', 7, [], true]) {
      expect(await statusesOf(kind, path, { relationships }, 'relationships')).toEqual([400, 400]);
    }
  });

  test(`read-only and unknown members of a ${kind.name} are ignored`, async () => {
    const ignored =
      JSON.parse(`{"__proto__": {"name": "polluted", "type": "polluted"}, "constructor": {"prototype": 1},
      "hasOwnProperty": 1, "toString": null, "usernameFormat": "email", "preset": true, "password_hash": "x",
      "password_normalised": true, "revision": "x", "realm_id": "x", "issuer_key": "x", "": 1,
      "meta": {"created_at": "2001-01-01T00:00:00.000Z", "issuer": "https://meta.example", "creation_status": "no"},
      "created_at": 1, "creation_status": "IN_PROGRESS", "links": []}`);
    const created = await createRecord(service, token, { kind, home, data: { ...ignored, id: '' } });
    const plain = await createRecord(service, token, { kind, home });
    const shape = ({ data: { meta, ...data } }: RecordBody) => [Object.keys(data), Object.keys(meta)];
    expect(shape(created.body)).toEqual(shape(plain.body));
    expect(created.id).not.toBe('');
    expect(JSON.stringify(created.body)).not.toMatch(/polluted|2001-01-01|meta\.example|IN_PROGRESS/);
    // As text, because JSON.stringify would omit a member of the prototype.
    const text = `{"data":{"__proto__":{"type":"x"},"constructor":"x","type":"${kind.resource.type}"}}`;
    expect((await service.put(created.path, token, text)).status).toBe(200);
  });
});

test('members of the maximum length are accepted unchanged, in POST and PUT', async () => {
  const wide = '\u{1f600}';
  const LONGEST: { readonly [kind: string]: Data } = {
    realm: {
      name: wide.repeat(255),
      redirect_uris: Array.from({ length: 20 }, (_, i) => `https://x.example/${i}/`.padEnd(2048, 'x')),
    },
    'OIDC profile': { name: wide.repeat(255), client_id: 'c'.repeat(1024), client_secret: 's'.repeat(4096) },
    'password profile': { name: ` ${'x'.repeat(253)} ` },
    user: { name: wide.repeat(255), given_name: wide.repeat(255), family_name: 'e\u0301'.repeat(127) },
    'OIDC profile info': {
      subject: wide.repeat(255),
      issuer: `https://x.example/${'x'.repeat(1006)}`,
    },
    'password profile info': { username: 'ü'.repeat(255), password: 'x'.repeat(1024) },
  };
  for (const kind of KINDS) {
    const { client_secret, password, ...longest } = LONGEST[kind.name] as Data;
    const created = await createRecord(service, token, { kind, home, data: LONGEST[kind.name] as Data });
    expect(created.body.data).toMatchObject(longest);
    const put = { data: { type: kind.resource.type, ...LONGEST[kind.name] } };
    expect((await service.put(created.path, token, put)).status).toBe(200);
  }
});

test('subject, username and e-mail address are stored unchanged', async () => {
  const [, , , user, oidc, password] = KINDS;
  const subject = ` e\u0301\u200bÉ ＡＢ "\\/ 'or 1=1' \u202e${uniqueWord('s')} `;
  expect(
    (await createRecord(service, token, { kind: oidc, home, data: { subject } })).body.data.subject,
  ).toBe(subject);
  const username = ` Jane\u200bE\u0301 ${uniqueWord('u')} `;
  const named = await createRecord(service, token, {
    kind: password,
    home,
    data: { username, password: PASSWORD },
  });
  expect(named.body.data.username).toBe(username);
  const email = `JANE+${uniqueWord('e')}@EXAMPLE.com`;
  expect((await createRecord(service, token, { kind: user, home, data: { email } })).body.data.email).toBe(
    email,
  );
});

test('null clears the three parts of a name and no other member', async () => {
  const kind = KINDS[3];
  const parts = { given_name: 'Jane', middle_name: 'M.', family_name: 'Doe' };
  const { path, body } = await createRecord(service, token, { kind, home, data: parts });
  expect(body.data).toMatchObject(parts);
  const cleared = { given_name: null, middle_name: null, family_name: null };
  const answer = await service.put(path, token, { data: { type: kind.resource.type, ...cleared } });
  expect(((await answer.json()) as RecordBody).data).toMatchObject({ ...cleared, name: body.data.name });
});

test('duplicate_email_policy is accepted in any letter case, and returned in lower case', async () => {
  const kind = KINDS[0];
  for (const [sent, shown] of [
    ['API_ONLY', 'api_only'],
    ['Allowed', 'allowed'],
  ] as const) {
    const created = await createRecord(service, token, {
      kind,
      home,
      data: { duplicate_email_policy: sent },
    });
    expect(created.body.data.duplicate_email_policy).toBe(shown);
  }
});
