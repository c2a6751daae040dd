import { afterAll, beforeAll, describe, expect, test } from 'bun:test';
import type { Key, Resource } from '../../../src/domain/resource.ts';
import { systemClock } from '../../../src/platform/clock.ts';
import type { Engine } from '../../../src/store/open.ts';
import { LOOKUPS, type Planted, plant, type Service, seen, startService } from '../../support/service.ts';

/** Every question the service puts to the store, in order. */
const asked: [Resource, Key][] = [];

function counted(engine: Engine): Engine {
  const { records } = engine;
  return {
    ...engine,
    records: {
      ...records,
      get: (resource, key) => {
        asked.push([resource, key]);
        return records.get(resource, key);
      },
    },
  };
}

let service: Service;
let here: Planted;
let neighbour: Planted;
let token: string;
let limited: string;

beforeAll(async () => {
  service = await startService({}, counted);
  here = await plant(service.db);
  neighbour = await plant(service.db);
  token = await service.token('profile-infos:read');
  limited = await service.token('profile-infos:read', new Set([here.realm]));
});
afterAll(() => service.stop());

/** Asks, and tells what came back and what the store was asked for it. */
async function ask(path: string, bearer: string) {
  asked.length = 0;
  return { answer: await seen(await service.get(path, bearer)), questions: [...asked] };
}

const NOT_FOUND = JSON.stringify([
  404,
  [
    ['cache-control', 'no-store'],
    ['content-length', '79'],
    ['content-type', 'application/json'],
  ],
  '{"errors":[{"status":"404","title":"Not Found","detail":"Resource not found"}]}',
]);

const mint = systemClock.mintId;

/** Well-formed addresses that lead nowhere: each costs one question, as long as the realm is the caller's. */
const ELSEWHERE: [string, (of: { here: Planted; neighbour: Planted }, id: LinkName) => Partial<Planted>][] = [
  ['an absent record', (_, id) => ({ [id]: mint() })],
  ["a record under another user's address", ({ neighbour }) => ({ user: neighbour.user })],
  ["another user's record", ({ neighbour }, id) => ({ [id]: neighbour[id] })],
  ['a record under another realm', ({ neighbour }) => ({ realm: neighbour.realm })],
  ['a record whose user and ID are of another realm', ({ neighbour }, id) => pick(neighbour, 'user', id)],
  ['an unknown realm', () => ({ realm: mint() })],
  ['an unknown user', () => ({ user: mint() })],
  [
    'the record of the other kind',
    ({ here }, id) => ({ [id]: here[id === 'oidcLink' ? 'passwordLink' : 'oidcLink'] }),
  ],
];

type LinkName = 'oidcLink' | 'passwordLink';

function pick(from: Planted, ...names: (keyof Planted)[]): Partial<Planted> {
  return Object.fromEntries(names.map((name) => [name, from[name]]));
}

describe.each(LOOKUPS)('404 $name', ({ path, id }) => {
  test.each(ELSEWHERE)('%s answers as one that never existed, after one question', async (_name, change) => {
    const address = { ...here, ...change({ here, neighbour }, id) };
    const absent = await ask(path({ ...here, [id]: mint() }), token);
    const found = await ask(path(address), token);
    expect(found.answer).toBe(NOT_FOUND);
    expect(found.answer).toBe(absent.answer);
    expect(found.questions).toHaveLength(1);
    expect(absent.questions).toHaveLength(1);
    expect(found.questions[0]?.[0]).toBe(absent.questions[0]?.[0] as Resource);
    expect(found.questions[0]?.[1]).toEqual([address.realm, address.user, address[id]]);
  });

  test("a realm outside the token's list costs no question, whether its record exists or not", async () => {
    const theirs = await ask(path(neighbour), limited);
    const nobodys = await ask(path({ ...neighbour, realm: mint() }), limited);
    expect([theirs, nobodys]).toEqual([
      { answer: NOT_FOUND, questions: [] },
      { answer: NOT_FOUND, questions: [] },
    ]);
    expect((await service.get(path(here), limited)).status).toBe(200);
  });

  test.each(['realm', 'user', id] as const)(
    'a malformed %s is absence, and costs no question',
    async (place) => {
      for (const [name, spell] of MALFORMED) {
        for (const ending of ['', '/']) {
          const address = path({ ...here, [place]: '@' }).replace('@', spell(here[place])) + ending;
          expect([name, await ask(address, token)]).toEqual([name, { answer: NOT_FOUND, questions: [] }]);
        }
      }
    },
  );

  test('an ID in upper or mixed case is the lower-case record, with the same bytes', async () => {
    const lower = await ask(path(here), token);
    const upper = { ...here, realm: here.realm.toUpperCase(), user: here.user.toUpperCase() } as Planted;
    const mixed = { ...here, [id]: here[id].replace(/[a-f]/, (letter) => letter.toUpperCase()) };
    for (const address of [upper, mixed, { ...upper, [id]: here[id].toUpperCase() }]) {
      expect(await ask(path(address), token)).toEqual(lower);
    }
    expect(lower.answer).toStartWith('[200,');
  });

  test('an escaped spelling of an ID is the ID', async () => {
    const plain = await ask(path(here), token);
    for (const spelled of [here[id].replace('-', '%2D'), here[id].replace('-', '%2d')]) {
      expect(await ask(path({ ...here, [id]: spelled }), token)).toEqual(plain);
    }
  });
});

/** What is no ID, made of one that is. None is a dot segment: those are part of the path, not of a segment. */
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
  ['NUL behind it', (id) => `${id}%00`],
  ['NUL within it', (id) => `${id.slice(0, 35)}%00`],
  ['line feed behind it', (id) => `${id}%0A`],
  ['space before it', (id) => `%20${id}`],
  ['plus', (id) => `+${id.slice(1)}`],
  ['escaped slash behind it', (id) => `${id}%2F`],
  ['escaped slash before it', (id) => `%2F${id}`],
  ['escaped slash within it', (id) => `${id.slice(0, 8)}%2F${id.slice(9)}`],
  ['escaped dots and slash', (id) => `..%2F${id}`],
  ['dots that are no dot segment', (id) => `...${id}`],
  ['escaped twice', (id) => `%25${id.slice(1)}`],
  ['half an escape', () => '%'],
  ['no escape', () => '%zz'],
  ['no UTF-8', () => '%ff'],
  ['overlong UTF-8', () => '%c0%af'],
  ['unicode', () => 'ü'],
  [
    'full-width digits',
    (id) => encodeURIComponent(id.replace(/\d/g, (digit) => String.fromCodePoint(0xff10 + Number(digit)))),
  ],
  ['a letter that lowers to ASCII', (id) => encodeURIComponent(`\u212A${id.slice(1)}`)],
  ['semicolon', (id) => `${id};v=1`],
  ['a name of the pattern', () => ':id'],
  ['a name of every object', () => '__proto__'],
  ['SQL', () => "'%20or%20'1'='1"],
];
