import { afterAll, describe, expect, test } from 'bun:test';
import fc from 'fast-check';
import { bearerToken } from '../../src/http/pipeline/bearer.ts';
import { matchesEtag } from '../../src/http/pipeline/present.ts';
import { normalise, openRouter, pathOf, type Route } from '../../src/http/server/router.ts';
import { startServer } from '../../src/http/server/server.ts';
import { parseUuid } from '../../src/model/id.ts';
import { parseScopes, SCOPE_WORDS, SCOPES } from '../../src/model/principal.ts';
import { createFixture, LOOKUPS, startService } from '../support/service.ts';

const HEX = [...'0123456789abcdefABCDEF'];
const hex = (length: number) =>
  fc.string({ unit: fc.constantFrom(...HEX), minLength: length, maxLength: length });
const uuid = fc.tuple(hex(8), hex(4), hex(4), hex(4), hex(12)).map((groups) => groups.join('-'));
const anything = fc.string({ unit: 'binary', maxLength: 80 });

function holds<T>(arbitrary: fc.Arbitrary<T>, property: (value: T) => void, numRuns = 500): void {
  fc.assert(fc.property(arbitrary, property), { numRuns });
}

describe('parseUuid', () => {
  test('parseUuid reads 8-4-4-4-12 hex in any case, and returns it in lower case', () => {
    holds(uuid, (raw) => expect<string | undefined>(parseUuid(raw)).toBe(raw.toLowerCase()));
  });

  test('parseUuid returns undefined for any other text', () => {
    const near = fc
      .tuple(uuid, fc.nat(35), anything)
      .map(([id, at, put]) => id.slice(0, at) + put + id.slice(at + 1));
    holds(fc.oneof(anything, near), (raw) => {
      const isId = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/i.test(raw) && /^[\x2d-\x66]{36}$/.test(raw);
      expect(parseUuid(raw) !== undefined).toBe(isId);
    });
  });
});

/** Routes of every kind, each of which returns its pattern and its parameters. */
const PATTERNS = ['/', '/a', '/a/:id', '/a/:id/b', '/a/b', '/v2/a/:realm_id/b/:id', '/a/:realm_id/:id/c'];
const echoing: readonly Route[] = PATTERNS.map((pattern) => ({
  pattern,
  answers: {
    GET: ({ params }) => ({
      status: 200,
      headers: {},
      body: JSON.stringify({ pattern, params: readable(params) }),
    }),
  },
}));

/** The two routers pass on invalid escapes differently: only parameters that are IDs are compared. */
function readable(params: Readonly<Record<string, string>>): Record<string, string | undefined> {
  return Object.fromEntries(Object.entries(params).map(([name, value]) => [name, parseUuid(value)]));
}

const ID_LIKE = fc.oneof(
  { weight: 3, arbitrary: uuid },
  { weight: 2, arbitrary: uuid.map((id) => id.replace('-', '%2D')) },
  { weight: 1, arbitrary: fc.webSegment() },
  {
    weight: 2,
    arbitrary: fc.constantFrom('%', '%zz', '%00', '%2F', '%ff', '...', 'A', '%61', ':id', ';', '@', 'b'),
  },
);
const segment = fc.oneof(fc.constantFrom('a', 'b', 'c', 'v2'), ID_LIKE);
const slashes = fc.constantFrom('/', '/', '/', '//', '///');
const end = fc.constantFrom('', '', '/', '//');

/** Paths that follow a pattern closely, and paths that follow none. */
const following = fc.constantFrom(...PATTERNS).chain((pattern) =>
  fc.tuple(
    ...pattern
      .split('/')
      .slice(1)
      .map((part) => fc.tuple(slashes, part.startsWith(':') ? ID_LIKE : fc.constant(part))),
  ),
);
const path = fc
  .tuple(
    fc.oneof({ weight: 3, arbitrary: following }, fc.array(fc.tuple(slashes, segment), { maxLength: 6 })),
    end,
  )
  .map(([parts, last]) => parts.flat().join('') + last)
  .filter((text) => text.startsWith('/'));

describe('paths', async () => {
  const route = openRouter(echoing);

  test('pathOf is the path of every URL, absolute or not, and never throws', () => {
    const url = fc.webUrl({
      withQueryParameters: true,
      withFragments: true,
      validSchemes: ['http', 'https'],
    });
    holds(url, (given) => {
      const { href, pathname, search, hash } = new URL(given);
      expect(pathOf(href)).toBe(pathname);
      if (!pathname.startsWith('//')) expect(pathOf(pathname + search + hash)).toBe(pathname);
    });
    holds(anything, (raw) => expect(pathOf(raw)).toBeString());
  });

  test('normalise is idempotent, and leaves no doubled and no last slash', () => {
    holds(fc.oneof(path, anything), (raw) => {
      const once = normalise(raw);
      expect(normalise(once)).toBe(once);
      expect(once).not.toContain('//');
      expect(once === '/' || !once.endsWith('/')).toBe(true);
    });
  });

  test('the router answers the same for any number of slashes, and never throws', () => {
    holds(fc.tuple(path, fc.nat(3)), ([raw, more]) => {
      const spelled = raw.replaceAll('/', '/'.repeat(1 + more));
      expect(route(spelled)).toEqual(route(raw));
      expect(route(`${raw}/`)).toEqual(route(raw));
    });
    holds(anything, (raw) => expect(() => route(raw)).not.toThrow());
  });
  const settings = {
    host: '127.0.0.1',
    port: 0,
    tls: undefined,
    isShared: false,
    trustedProxies: [],
    corsOrigins: [],
  };
  const log = { write: () => undefined };
  const server = await startServer({ ...settings, requestLogging: 'off' }, log, async () => echoing);
  afterAll(() => server.stop());

  test('the native routes and the router match alike', async () => {
    let found = 0;
    const property = fc.asyncProperty(path, async (raw) => {
      const answer = await fetch(server.url + raw);
      const match = route(pathOf(new URL(server.url + raw).href));
      expect(answer.status).toBe(match ? 200 : 404);
      if (!match) return;
      found += 1;
      expect(await answer.json()).toEqual({
        pattern: match.route.pattern,
        params: readable(match.params),
      });
    });
    await fc.assert(property, { numRuns: 1_000 });
    expect(found).toBeGreaterThan(400);
  });

  test.each([
    ['/a/b', '/a/b'],
    ['/a/c', '/a/:id'],
    ['/a/b/b', '/a/:id/b'],
    ['/a/b/c/c', '/a/:realm_id/:id/c'],
  ])('the path %s matches %s: literal segments take precedence over parameters', async (raw, pattern) => {
    for (const spelling of [raw, `${raw}/`]) {
      expect(route(spelling)?.route.pattern).toBe(pattern);
      expect(await (await fetch(server.url + spelling)).json()).toMatchObject({ pattern });
    }
  });

  test('native routes and the router read the same IDs from a path with escaped hyphens', async () => {
    const keys = fc.tuple(uuid, uuid);
    const property = fc.asyncProperty(keys, async ([realm, id]) => {
      const plain = `/v2/a/${realm}/b/${id}`;
      const expected = { realm_id: realm.toLowerCase(), id: id.toLowerCase() };
      for (const spelling of [
        plain,
        `${plain}/`,
        plain.replaceAll('-', '%2D'),
        `${plain.replaceAll('-', '%2d')}/`,
      ]) {
        const { params } = (await (await fetch(server.url + spelling)).json()) as { params: object };
        expect(params).toEqual(expected);
      }
    });
    await fc.assert(property, { numRuns: 100 });
  });
});

describe('bearerToken', () => {
  const token = fc.stringMatching(/^[A-Za-z0-9._~+/-]{1,60}=?$/);

  test('bearerToken returns the token after the scheme in any letter case', () => {
    const scheme = fc.constantFrom('Bearer', 'bearer', 'BEARER', 'bEaReR');
    holds(fc.tuple(scheme, token), ([name, value]) => expect(bearerToken(`${name} ${value}`)).toBe(value));
  });

  test('bearerToken returns undefined for another scheme or no token, and never throws', () => {
    holds(
      fc.constantFrom('', 'Bearer', 'Bearer ', 'bearer   ', 'Basic YTpi', 'Bearer\tx', 'Bearertoken'),
      (raw) => expect(bearerToken(raw)).toBeUndefined(),
    );
    holds(anything, (raw) => expect(raw).toEndWith(bearerToken(raw) ?? ''));
  });
});

describe('a token', async () => {
  const service = await startService({ badTokenRate: 'off' });
  const address = LOOKUPS[0].path(await createFixture(service.db));
  const token = await service.token('profile-infos:read');

  const LETTERS = [...'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_.=+/~'];
  const status = async (bearer: string) => (await service.get(address, bearer)).status;

  test('a token with one character changed, removed or inserted is 401', async () => {
    expect(await status(token)).toBe(200);
    const position = fc.nat(token.length - 1);
    const property = fc.asyncProperty(
      position,
      fc.constantFrom(...LETTERS),
      fc.nat(2),
      async (at, letter, edit) => {
        const rest = token.slice(at + (edit === 1 ? 0 : 1));
        const other = token.slice(0, at) + (edit === 2 ? '' : letter) + rest;
        fc.pre(other !== token);
        expect(await status(other)).toBe(401);
      },
    );
    await fc.assert(property, { numRuns: 600 });
  });

  test('a token with another last character or one more character is 401', async () => {
    for (const letter of LETTERS) {
      for (const other of [token.slice(0, -1) + letter, token + letter]) {
        if (other !== token) expect([letter, await status(other)]).toEqual([letter, 401]);
      }
    }
  });
});

describe('parseScopes', () => {
  test('parseScopes reads lists of every scope word in any order, and returns full scopes', () => {
    holds(fc.array(fc.constantFrom(...SCOPE_WORDS)), (words) => {
      const scopes = parseScopes(words.join(' '));
      expect(scopes).toEqual(parseScopes([...words].reverse().join('  ')));
      for (const scope of scopes ?? ['none']) expect(SCOPES).toContain(scope);
      for (const word of words) {
        if (SCOPES.includes(word)) expect(scopes?.has(word)).toBe(true);
      }
    });
  });

  test('parseScopes rejects a list with an unknown word, whatever the word', () => {
    const words = new Set(SCOPE_WORDS);
    const members = fc.constantFrom(...Object.getOwnPropertyNames(Object.prototype));
    const unknownWord = fc
      .oneof(anything, members)
      .filter((word) => word !== '' && !/ /.test(word) && !words.has(word));
    holds(
      fc.tuple(unknownWord, fc.array(fc.constantFrom(...SCOPE_WORDS)), fc.nat(5)),
      ([word, others, at]) => {
        expect(parseScopes(others.toSpliced(at, 0, word).join(' '))).toBeUndefined();
      },
    );
  });
});

describe('matchesEtag', () => {
  const revision = fc
    .tuple(hex(16), fc.stringMatching(/^[\w-]{8}$/))
    .map(([left, right]) => `"${left}-${right}"`);
  const other = fc.stringMatching(/^"[a-z ,;]{0,12}"$/);

  test('matchesEtag finds an ETag at any position of a list, strong or weak', () => {
    const list = fc.tuple(revision, fc.array(other, { maxLength: 4 }), fc.nat(4), fc.constantFrom('', 'W/'));
    holds(list, ([etag, others, at, weakness]) => {
      const header = others.toSpliced(at, 0, weakness + etag).join(', ');
      expect(matchesEtag(header, etag)).toBe(true);
      expect(matchesEtag(others.join(', '), etag)).toBe(false);
    });
  });

  test('matchesEtag finds nothing in other text but *, and never throws', () => {
    holds(fc.tuple(anything, revision), ([header, etag]) => {
      expect(matchesEtag(header, etag)).toBe(header.trim() === '*');
    });
  });
});
