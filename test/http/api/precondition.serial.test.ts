import { afterAll, beforeAll, describe, expect, test } from 'bun:test';
import { systemClock } from '../../../src/platform/clock.ts';
import {
  type Body,
  FULL_SCOPE,
  type Home,
  KINDS,
  type Kind,
  make,
  OFFLINE,
  rowsOf,
  settle,
} from '../../support/resource_cases.ts';
import { type Service, seen, startService } from '../../support/service.ts';

/** If-Match on the verbs that change a record (RFC 9110, 13.1.1; issue 4, point 3). */

let service: Service;
let token: string;
let home: Home;

beforeAll(async () => {
  service = await startService(OFFLINE);
  token = await service.token(FULL_SCOPE);
  home = await settle(service, token);
});
afterAll(() => service.stop());

/** Conditions that the record of this ETag meets. */
const MET: [what: string, spell: (etag: string) => string][] = [
  ['the ETag itself', (etag) => etag],
  ['among others', (etag) => `"one", ${etag}, "0000000000000000-AAAAAAAA"`],
  ['in a list without spaces', (etag) => `"one",${etag}`],
  ['behind empty list elements', (etag) => `, ,${etag},`],
  ['a star', () => '*'],
];

/** Conditions that it does not meet. Comparison is strong: a weak ETag names nothing. */
const UNMET: [what: string, spell: (etag: string) => string][] = [
  ['another one', () => '"0000000000000000-AAAAAAAA"'],
  ['a foreign one', () => '"one"'],
  ['a list of others', () => '"one", "0000000000000000-AAAAAAAA"'],
  ['weak', (etag) => `W/${etag}`],
  ['weak in a list', (etag) => `"one", W/${etag}`],
  ['its revision with another end', (etag) => `${etag.slice(0, 18)}AAAAAAAA"`],
  ['its revision alone', (etag) => `${etag.slice(0, 17)}"`],
  ['unquoted', (etag) => etag.slice(1, -1)],
  ['upper case', (etag) => etag.toUpperCase()],
  ['a star in quotes', () => '"*"'],
  ['a star in a list', () => '"one", *x'],
  ['nothing', () => ''],
  ['garbage', () => ',,;"";W/'],
];

describe.each([...KINDS])('$name', (kind) => {
  const { type } = kind.resource;
  const etagAt = async (path: string) => (await service.get(path, token)).headers.get('etag') ?? '';
  const put = (path: string, condition?: string) =>
    service.put(path, token, { data: { type } }, condition === undefined ? {} : { 'If-Match': condition });
  const del = (path: string, condition: string) => service.del(path, token, { 'If-Match': condition });

  test('If-Match that holds: the write succeeds', async () => {
    const { path, etag } = await make(service, token, { kind, home });
    let last = etag;
    for (const [what, spell] of MET) {
      const answer = await put(path, spell(last));
      expect([what, answer.status]).toEqual([what, 200]);
      last = answer.headers.get('etag') ?? '';
    }
    for (const [what, spell] of MET) {
      const made = await make(service, token, { kind, home });
      expect([what, (await del(made.path, spell(made.etag))).status]).toEqual([what, 204]);
    }
  });

  test('If-Match that does not hold: 412, and nothing is written', async () => {
    const { path, etag } = await make(service, token, { kind, home });
    const stale = etag;
    await put(path);
    const state = await seen(await service.get(path, token));
    const before = await rowsOf(service);
    const current = await etagAt(path);
    for (const [what, spell] of [...UNMET, ['stale', () => stale] as const]) {
      for (const answer of [await put(path, spell(current)), await del(path, spell(current))]) {
        expect([what, answer.status, answer.headers.get('etag')]).toEqual([what, 412, null]);
      }
    }
    expect(await rowsOf(service)).toEqual(before);
    expect(await seen(await service.get(path, token))).toBe(state);
  });

  test('an absent record is absent, whatever the condition', async () => {
    const { path, etag } = await make(service, token, { kind, home });
    const nowhere = path.replace(/[^/]+$/, systemClock.mintId());
    const absence = await seen(await service.get(nowhere, token));
    await service.del(path, token);
    for (const address of [nowhere, path]) {
      for (const condition of ['*', etag, `${etag}, "one"`, '"one"', '"one", "two"', 'garbage']) {
        for (const answer of [await put(address, condition), await del(address, condition)]) {
          expect([condition, await seen(answer)]).toEqual([condition, absence]);
        }
      }
    }
  });

  test('401, 403, 400 and 422 come before 412', async () => {
    const { path } = await make(service, token, { kind, home });
    const reader = await service.token(`${kind.resource.scope}:read`);
    const stale = { 'If-Match': '"0000000000000000-AAAAAAAA"' };
    const data = { type };
    expect((await service.put(path, 'nobody', { data }, stale)).status).toBe(401);
    expect((await service.put(path, reader, { data }, stale)).status).toBe(403);
    expect((await service.put(path, token, { data: {} }, stale)).status).toBe(400);
    expect((await service.put(path, token, '{', stale)).status).toBe(400);
    expect((await service.put(path, token, '{', { ...stale, 'Content-Type': 'text/plain' })).status).toBe(
      415,
    );
  });
});

test('without a condition the last write wins', async () => {
  const kind = KINDS[3] as Kind;
  const { path } = await make(service, token, { kind, home });
  const names = Array.from({ length: 20 }, (_, index) => `Writer ${index}`);
  const answers = await Promise.all(
    names.map((name) => service.put(path, token, { data: { type: kind.resource.type, name } })),
  );
  expect(new Set(answers.map(({ status }) => status))).toEqual(new Set([200]));
  // Every answer shows its own write, and the record is what one of them left.
  const bodies = (await Promise.all(answers.map((answer) => answer.json()))) as Body[];
  expect(bodies.map(({ data }) => data.name)).toEqual(names);
  const last = await service.get(path, token);
  const etags = answers.map(({ headers }) => headers.get('etag'));
  expect(new Set(etags).size).toBe(names.length);
  const winner = etags.indexOf(last.headers.get('etag'));
  expect(((await last.json()) as Body).data.name).toBe(names[winner]);
});

test('If-None-Match refuses a write on the record it names, and only that', async () => {
  const kind = KINDS[3] as Kind;
  const { path } = await make(service, token, { kind, home });
  const etag = (await service.get(path, token)).headers.get('etag') ?? '';
  const body = { data: { type: kind.resource.type } };
  for (const named of ['*', etag, `"x", ${etag}`, `W/${etag}`]) {
    const headers = { 'If-None-Match': named };
    expect([named, (await service.put(path, token, body, headers)).status]).toEqual([named, 412]);
    expect([named, (await service.del(path, token, headers)).status]).toEqual([named, 412]);
  }
  expect((await service.get(path, token)).headers.get('etag')).toBe(etag);
  expect((await service.put(path, token, body, { 'If-None-Match': 'x' })).status).toBe(200);
  const headers = { 'If-None-Match': '*' };
  expect((await service.put(`${path.slice(0, -4)}ffff`, token, body, headers)).status).toBe(404);
});
