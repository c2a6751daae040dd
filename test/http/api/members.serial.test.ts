import { afterAll, beforeAll, describe, expect, test } from 'bun:test';
import {
  type Body,
  type Data,
  type Form,
  FULL_SCOPE,
  type Home,
  KINDS,
  type Kind,
  make,
  OFFLINE,
  PASSWORD,
  rowsOf,
  settle,
  word,
} from '../../support/resource_cases.ts';
import { errorsOf, type Service, seen, startService } from '../../support/service.ts';

/** What no member may be, on both verbs that say members. */

let service: Service;
let token: string;
let home: Home;

beforeAll(async () => {
  service = await startService(OFFLINE);
  token = await service.token(FULL_SCOPE);
  home = await settle(service, token);
});
afterAll(() => service.stop());

type Bad = readonly [what: string, value: unknown];

const NOT_TEXT: readonly Bad[] = [
  ['null', null],
  ['a number', 71234567],
  ['a boolean', true],
  ['an array', ['https://long.example/']],
  ['an object', { toString: 'https://long.example/' }],
];
const FORBIDDEN: readonly Bad[] = [
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

function tooLong(max: number): readonly Bad[] {
  return [
    ['too long', 'x'.repeat(max + 1)],
    ['too long in code points', '\u{1f600}'.repeat(max + 1)],
  ];
}

/** What a member of each form may not be. */
const BAD: { readonly [F in Form['of']]: (form: Extract<Form, { of: F }>) => readonly Bad[] } = {
  text: ({ max, isNullable }) => [
    ...NOT_TEXT.filter(([what]) => !(isNullable && what === 'null')),
    ...FORBIDDEN,
    ...tooLong(max),
  ],
  email: ({ max }) => [
    ...NOT_TEXT,
    ...FORBIDDEN,
    ['too long', `${'x'.repeat(max)}@example.com`],
    ...['jane.example.com', 'jane@', '@example.com', 'jane@example', 'jane doe@example.com'].map(
      (value): Bad => [value, value],
    ),
  ],
  username: ({ max }) => [
    ...NOT_TEXT,
    ...FORBIDDEN,
    ...tooLong(max),
    ['a right-to-left override', 'jane\u202eenod'],
    ['an isolate', 'jane\u2066doe'],
    ['an Arabic letter mark', 'jane\u061cdoe'],
    ['a private-use character', 'jane\ue000doe'],
    ['an unassigned character', 'jane\u0378doe'],
    ['nothing but invisible characters', '\u200b\u2060\ufeff\u00ad'],
    ['a key of too many bytes', '\ufdfa'.repeat(255)],
  ],
  url: ({ max }) => [
    ...NOT_TEXT,
    ...FORBIDDEN,
    ['too long', `${WEB}${'x'.repeat(max)}`],
    ['relative', '/.well-known/openid-configuration'],
    ['without scheme', 'login.example.com'],
    ['another scheme', 'ftp://login.example.com/'],
    ['script', 'javascript:alert(document.domain)'],
    ['a space', 'https://login.example.com/a b'],
    ['a backslash', 'https://login.example.com\\@evil.example'],
    ['no ASCII', 'https://löGin.example.com/'],
    ['no host', 'https://'],
    ['a port that is none', 'https://login.example.com:99999/'],
  ],
  issuer: ({ max }) => [
    ...BAD.url({ of: 'url', max }),
    ['userinfo', 'https://jane:secret@login.example.com/'],
    ['a query', 'https://login.example.com/?tenant=one'],
    ['an empty query', 'https://login.example.com/?'],
    ['a fragment', 'https://login.example.com/#one'],
  ],
  choice: () => [...NOT_TEXT, ['empty', ''], ['another word', 'disallowed'], ['spaces', ' allowed ']],
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
    ...NOT_TEXT.map(([what, value]): Bad => [`${what} among them`, ['https://shop.example/', value]]),
  ],
  reference: () => [
    ...NOT_TEXT,
    ['empty', ''],
    ['no ID', 'the-only-profile'],
    ['braces', '{018f3a1e-0000-7000-8000-000000000000}'],
    ['a line feed behind it', '018f3a1e-0000-7000-8000-000000000000\n'],
  ],
  password: () => [
    ...NOT_TEXT,
    ['empty', ''],
    ['seven characters', 'seven77'],
    ['seven code points in fourteen units', '\u{1f600}'.repeat(7)],
    ['eight code points that compose to four', 'e\u0301'.repeat(4)],
    ['1,025 bytes', 'x'.repeat(1025)],
    ['1,025 bytes after normalisation', '\ufdfa'.repeat(32)],
    ['a lone surrogate', 'long-enough\ud83d'],
  ],
};

function badOf(form: Form): readonly Bad[] {
  return (BAD[form.of] as (form: Form) => readonly Bad[])(form);
}

/** Tries the same `data` on both verbs; the errors of each, each about this member and no other. */
async function refusals(kind: Kind, path: string, data: Data, about: string) {
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

describe.each([...KINDS])('$name', (kind) => {
  let path: string;
  beforeAll(async () => {
    ({ path } = await make(service, token, { kind, home }));
  });

  describe.each(Object.entries(kind.forms))('%s', (name, form) => {
    // Whoever refers to a profile stays with it: a PUT ignores the member (docs/wire.md#updates).
    const isIgnored = form.of === 'reference';
    test('is refused, and nothing is written', async () => {
      const before = await rowsOf(service);
      const record = await seen(await service.get(path, token));
      for (const [what, value] of badOf(form)) {
        const statuses = await refusals(kind, path, { [name]: value }, name);
        expect([what, statuses]).toEqual([what, [400, isIgnored ? 200 : 400]]);
      }
      if (isIgnored) return;
      expect(await rowsOf(service)).toEqual(before);
      expect(await seen(await service.get(path, token))).toBe(record);
    });

    test('missing: a complaint where a POST must say it, else its default', async () => {
      const { [name]: _, ...data } = kind.fresh(home);
      const answer = await service.post(kind.collection(home), token, { data });
      const isAsked = kind.asked.includes(name);
      expect(answer.status).toBe(isAsked ? 400 : 201);
      if (!isAsked) return;
      expect(await errorsOf(answer)).toEqual([
        {
          status: '400',
          title: 'Bad Request',
          detail: `data.${name}: is missing`,
          source: { pointer: `/data/${name}` },
        },
      ]);
    });
  });

  test('type: missing, and everything it is not', async () => {
    const other = KINDS.find(({ resource }) => !kind.resource.type.includes(resource.type)) as Kind;
    const { type } = kind.resource;
    const wrong = [null, '', 7, [type], {}, `${type} `, type.toUpperCase(), other.resource.type];
    const swapped = type.includes('_') ? type.replaceAll('_', '-') : type.replaceAll('-', '_');
    for (const value of [undefined, ...wrong, swapped]) {
      const statuses = await refusals(kind, path, { type: value }, 'type');
      expect([value, statuses]).toEqual([value, [400, 400]]);
    }
  });

  test('all complaints come at once', async () => {
    const answer = await service.post(kind.collection(home), token, { data: {} });
    const pointers = (await errorsOf(answer)).map(({ source }) => source?.pointer);
    expect(pointers.sort()).toEqual(['type', ...kind.asked].map((name) => `/data/${name}`).sort());
  });

  test('relationships: nothing is fine, anything but an object is not', async () => {
    for (const relationships of [null, {}, { origin: null }]) {
      const data = { ...kind.fresh(home), relationships };
      expect((await service.post(kind.collection(home), token, { data })).status).toBe(201);
      const put = { data: { type: kind.resource.type, relationships } };
      expect((await service.put(path, token, put)).status).toBe(200);
    }
    for (const relationships of ['realm-of-mine', 7, [], true]) {
      expect(await refusals(kind, path, { relationships }, 'relationships')).toEqual([400, 400]);
    }
  });

  test('members that are nobody’s to say, and those that nobody knows, are ignored', async () => {
    const odd =
      JSON.parse(`{"__proto__": {"name": "polluted", "type": "polluted"}, "constructor": {"prototype": 1},
      "hasOwnProperty": 1, "toString": null, "usernameFormat": "email", "preset": true, "password_hash": "x",
      "password_normalised": true, "revision": "x", "realm_id": "x", "issuer_key": "x", "": 1,
      "meta": {"created_at": "2001-01-01T00:00:00.000Z", "issuer": "https://meta.example", "creation_status": "no"},
      "created_at": 1, "creation_status": "IN_PROGRESS", "links": []}`);
    const made = await make(service, token, { kind, home, data: { ...odd, id: '' } });
    const plain = await make(service, token, { kind, home });
    const shape = ({ data: { meta, ...data } }: Body) => [Object.keys(data), Object.keys(meta)];
    expect(shape(made.body)).toEqual(shape(plain.body));
    expect(made.id).not.toBe('');
    expect(JSON.stringify(made.body)).not.toMatch(/polluted|2001-|meta\.example|IN_PROGRESS/);
    // As a client spells it who builds its body by hand: JSON.stringify would drop what stands in the prototype.
    const text = `{"data":{"__proto__":{"type":"x"},"constructor":"x","type":"${kind.resource.type}"}}`;
    expect((await service.put(made.path, token, text)).status).toBe(200);
  });
});

test('the longest of everything is taken as it is, on both verbs', async () => {
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
    const made = await make(service, token, { kind, home, data: LONGEST[kind.name] as Data });
    expect(made.body.data).toMatchObject(longest);
    const put = { data: { type: kind.resource.type, ...LONGEST[kind.name] } };
    expect((await service.put(made.path, token, put)).status).toBe(200);
  }
});

test('what the contract leaves to the caller is kept letter for letter', async () => {
  const [, , , user, oidc, password] = KINDS as readonly Kind[] as [Kind, Kind, Kind, Kind, Kind, Kind];
  const subject = ` e\u0301\u200bÉ ＡＢ "\\/ 'or 1=1' \u202e${word('s')} `;
  expect((await make(service, token, { kind: oidc, home, data: { subject } })).body.data.subject).toBe(
    subject,
  );
  const username = ` Jane\u200bE\u0301 ${word('u')} `;
  const named = await make(service, token, { kind: password, home, data: { username, password: PASSWORD } });
  expect(named.body.data.username).toBe(username);
  const email = `JANE+${word('e')}@EXAMPLE.com`;
  expect((await make(service, token, { kind: user, home, data: { email } })).body.data.email).toBe(email);
});

test('null clears the three parts of a name, and nothing else', async () => {
  const kind = KINDS[3] as Kind;
  const parts = { given_name: 'Jane', middle_name: 'M.', family_name: 'Doe' };
  const { path, body } = await make(service, token, { kind, home, data: parts });
  expect(body.data).toMatchObject(parts);
  const cleared = { given_name: null, middle_name: null, family_name: null };
  const answer = await service.put(path, token, { data: { type: kind.resource.type, ...cleared } });
  expect(((await answer.json()) as Body).data).toMatchObject({ ...cleared, name: body.data.name });
});

test('a policy for e-mail addresses is read in any letter case, and answered in one', async () => {
  const kind = KINDS[0] as Kind;
  for (const [said, shown] of [
    ['API_ONLY', 'api_only'],
    ['Allowed', 'allowed'],
  ] as const) {
    const made = await make(service, token, { kind, home, data: { duplicate_email_policy: said } });
    expect(made.body.data.duplicate_email_policy).toBe(shown);
  }
});
