import { describe, expect, test } from 'bun:test';
import type { Key, Resource } from '../../../src/model/resource.ts';
import { systemClock } from '../../../src/ops/process/clock.ts';
import type { Engine } from '../../../src/ops/store/open.ts';
import {
  comparableResponse,
  createFixture,
  type Fixture,
  LOOKUPS,
  startService,
} from '../../support/service.ts';

/** Every record that the service reads from the store, in order. */
const storeReads: [Resource, Key][] = [];

function recordingReads(engine: Engine): Engine {
  const { records } = engine;
  return {
    ...engine,
    records: {
      ...records,
      get: (resource, key) => {
        storeReads.push([resource, key]);
        return records.get(resource, key);
      },
    },
  };
}

const service = await startService({}, recordingReads);
const here = await createFixture(service.db);
const otherFixture = await createFixture(service.db);
const token = await service.token('profile-infos:read');
const limited = await service.token('profile-infos:read', new Set([here.realm]));

/** Sends a GET; returns the response and the records read from the store for it. */
async function readWithCount(path: string, bearer: string) {
  storeReads.length = 0;
  return { answer: await comparableResponse(await service.get(path, bearer)), reads: [...storeReads] };
}

const NOT_FOUND = JSON.stringify([
  404,
  [
    ['cache-control', 'no-store'],
    ['content-length', '98'],
    ['content-type', 'application/json'],
  ],
  '{"errors":[{"status":"404","title":"Not Found","detail":"Resource not found","code":"not_found"}]}',
]);

const mint = systemClock.mintId;

/** Well-formed paths of absent records. Each costs one read if the caller may access the realm. */
const ABSENT: [string, (of: { here: Fixture; otherFixture: Fixture }, id: LinkName) => Partial<Fixture>][] = [
  ['an absent record', (_, id) => ({ [id]: mint() })],
  ["a record under another user's path", ({ otherFixture }) => ({ user: otherFixture.user })],
  ["another user's record", ({ otherFixture }, id) => ({ [id]: otherFixture[id] })],
  ['a record under another realm', ({ otherFixture }) => ({ realm: otherFixture.realm })],
  [
    'a record with the user and the ID of another realm',
    ({ otherFixture }, id) => pick(otherFixture, 'user', id),
  ],
  ['an unknown realm', () => ({ realm: mint() })],
  ['an unknown user', () => ({ user: mint() })],
  [
    'a record of the other resource',
    ({ here }, id) => ({ [id]: here[id === 'oidcLink' ? 'passwordLink' : 'oidcLink'] }),
  ],
];

type LinkName = 'oidcLink' | 'passwordLink';

function pick(from: Fixture, ...names: (keyof Fixture)[]): Partial<Fixture> {
  return Object.fromEntries(names.map((name) => [name, from[name]]));
}

describe.each(LOOKUPS)('404 $name', ({ path, id }) => {
  test.each(ABSENT)(
    '%s is the same 404 as a record that never existed, after one read',
    async (_name, change) => {
      const address = { ...here, ...change({ here, otherFixture }, id) };
      const absent = await readWithCount(path({ ...here, [id]: mint() }), token);
      const found = await readWithCount(path(address), token);
      expect(found.answer).toBe(NOT_FOUND);
      expect(found.answer).toBe(absent.answer);
      expect(found.reads).toHaveLength(1);
      expect(absent.reads).toHaveLength(1);
      expect(found.reads[0]?.[0]).toBe(absent.reads[0]?.[0] as Resource);
      expect(found.reads[0]?.[1]).toEqual([address.realm, address.user, address[id]]);
    },
  );

  test("a record in a realm outside the token's list is 404 without a read, whether it exists or not", async () => {
    const otherRealm = await readWithCount(path(otherFixture), limited);
    const absentRealm = await readWithCount(path({ ...otherFixture, realm: mint() }), limited);
    expect([otherRealm, absentRealm]).toEqual([
      { answer: NOT_FOUND, reads: [] },
      { answer: NOT_FOUND, reads: [] },
    ]);
    expect((await service.get(path(here), limited)).status).toBe(200);
  });

  test.each(['realm', 'user', id] as const)('a malformed %s ID is 404 without a read', async (place) => {
    for (const [name, spell] of MALFORMED) {
      for (const ending of ['', '/']) {
        const address = path({ ...here, [place]: '@' }).replace('@', spell(here[place])) + ending;
        expect([name, await readWithCount(address, token)]).toEqual([name, { answer: NOT_FOUND, reads: [] }]);
      }
    }
  });

  test('a path with IDs in upper or mixed case returns the same bytes as in lower case', async () => {
    const lower = await readWithCount(path(here), token);
    const upper = { ...here, realm: here.realm.toUpperCase(), user: here.user.toUpperCase() } as Fixture;
    const mixed = { ...here, [id]: here[id].replace(/[a-f]/, (letter) => letter.toUpperCase()) };
    for (const address of [upper, mixed, { ...upper, [id]: here[id].toUpperCase() }]) {
      expect(await readWithCount(path(address), token)).toEqual(lower);
    }
    expect(lower.answer).toStartWith('[200,');
  });

  test('a path with a percent-encoded ID returns the same record', async () => {
    const plain = await readWithCount(path(here), token);
    for (const spelled of [here[id].replace('-', '%2D'), here[id].replace('-', '%2d')]) {
      expect(await readWithCount(path({ ...here, [id]: spelled }), token)).toEqual(plain);
    }
  });
});

/** Malformed IDs, made from a valid one. None is a dot segment, because those change the path. */
const MALFORMED: [string, (id: string) => string][] = [
  ['too short', (id) => id.slice(1)],
  ['too long', (id) => `${id}0`],
  ['twice', (id) => id + id],
  ['braces', (id) => `{${id}}`],
  ['escaped braces', (id) => `%7B${id}%7D`],
  ['urn', (id) => `urn:uuid:${id}`],
  ['no hyphens', (id) => id.replaceAll('-', '')],
  ['hyphens elsewhere', (id) => `${id.slice(1, 9)}${id[0]}${id.slice(9)}`],
  ['not hexadecimal', (id) => `g${id.slice(1)}`],
  ['NUL', () => '%00'],
  ['NUL after it', (id) => `${id}%00`],
  ['NUL within it', (id) => `${id.slice(0, 35)}%00`],
  ['line feed after it', (id) => `${id}%0A`],
  ['space before it', (id) => `%20${id}`],
  ['plus', (id) => `+${id.slice(1)}`],
  ['escaped slash after it', (id) => `${id}%2F`],
  ['escaped slash before it', (id) => `%2F${id}`],
  ['escaped slash within it', (id) => `${id.slice(0, 8)}%2F${id.slice(9)}`],
  ['escaped dots and slash', (id) => `..%2F${id}`],
  ['dots that are not a dot segment', (id) => `...${id}`],
  ['escaped twice', (id) => `%25${id.slice(1)}`],
  ['half an escape', () => '%'],
  ['invalid escape', () => '%zz'],
  ['invalid UTF-8', () => '%ff'],
  ['overlong UTF-8', () => '%c0%af'],
  ['unicode', () => 'ü'],
  [
    'full-width digits',
    (id) => encodeURIComponent(id.replace(/\d/g, (digit) => String.fromCodePoint(0xff10 + Number(digit)))),
  ],
  ['a letter whose lower case is ASCII', (id) => encodeURIComponent(`\u212A${id.slice(1)}`)],
  ['semicolon', (id) => `${id};v=1`],
  ['a parameter name of the route', () => ':id'],
  ['a property of every object', () => '__proto__'],
  ['SQL', () => "'%20or%20'1'='1"],
];
