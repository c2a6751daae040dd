import { describe, expect, test } from 'bun:test';
import { systemClock } from '../../../src/ops/process/clock.ts';
import {
  createParents,
  createRecord,
  FULL_SCOPE,
  KINDS,
  OFFLINE,
  type RecordBody,
  rowCounts,
} from '../../support/resource_cases.ts';
import { comparableResponse, startService } from '../../support/service.ts';

/** If-Match in PUT and DELETE (RFC 9110, 13.1.1). */

const service = await startService(OFFLINE);
const token = await service.token(FULL_SCOPE);
const home = await createParents(service, token);

/** Conditions that hold for the record with this ETag. */
const MET: [what: string, spell: (etag: string) => string][] = [
  ['the ETag itself', (etag) => etag],
  ['among others', (etag) => `"one", ${etag}, "0000000000000000-AAAAAAAA"`],
  ['in a list without spaces', (etag) => `"one",${etag}`],
  ['after empty list elements', (etag) => `, ,${etag},`],
  ['a star', () => '*'],
];

/** Conditions that do not hold. Comparison is strong: a weak ETag matches nothing. */
const UNMET: [what: string, spell: (etag: string) => string][] = [
  ['another ETag', () => '"0000000000000000-AAAAAAAA"'],
  ['a foreign ETag', () => '"one"'],
  ['a list of other ETags', () => '"one", "0000000000000000-AAAAAAAA"'],
  ['the ETag among others of this service', (etag) => `${etag}, "0000000000000000${etag.slice(17)}`],
  ['weak', (etag) => `W/${etag}`],
  ['weak in a list', (etag) => `"one", W/${etag}`],
  ['its revision with another end', (etag) => `${etag.slice(0, 18)}AAAAAAAA"`],
  ['its revision alone', (etag) => `${etag.slice(0, 17)}"`],
  ['unquoted', (etag) => etag.slice(1, -1)],
  ['another letter case', (etag) => (etag === etag.toUpperCase() ? etag.toLowerCase() : etag.toUpperCase())],
  ['a star in quotes', () => '"*"'],
  ['a star in a list', () => '"one", *x'],
  ['an empty header', () => ''],
  ['garbage', () => ',,;"";W/'],
];

describe.each([...KINDS])('$name', (kind) => {
  const { type } = kind.resource;
  const etagAt = async (path: string) => (await service.get(path, token)).headers.get('etag') ?? '';
  const put = (path: string, condition?: string) =>
    service.put(path, token, { data: { type } }, condition === undefined ? {} : { 'If-Match': condition });
  const del = (path: string, condition: string) => service.del(path, token, { 'If-Match': condition });

  test(`PUT and DELETE of a ${kind.name} succeed if If-Match holds`, async () => {
    const { path, etag } = await createRecord(service, token, { kind, home });
    let last = etag;
    for (const [what, spell] of MET) {
      const answer = await put(path, spell(last));
      expect([what, answer.status]).toEqual([what, 200]);
      last = answer.headers.get('etag') ?? '';
    }
    for (const [what, spell] of MET) {
      const made = await createRecord(service, token, { kind, home });
      expect([what, (await del(made.path, spell(made.etag))).status]).toEqual([what, 204]);
    }
  });

  test(`PUT and DELETE of a ${kind.name} are 412 if If-Match does not hold, and nothing is written`, async () => {
    const { path, etag } = await createRecord(service, token, { kind, home });
    const stale = etag;
    await put(path);
    const state = await comparableResponse(await service.get(path, token));
    const before = await rowCounts(service);
    const current = await etagAt(path);
    for (const [what, spell] of [...UNMET, ['stale', () => stale] as const]) {
      for (const answer of [await put(path, spell(current)), await del(path, spell(current))]) {
        expect([what, answer.status, answer.headers.get('etag')]).toEqual([what, 412, null]);
      }
    }
    expect(await rowCounts(service)).toEqual(before);
    expect(await comparableResponse(await service.get(path, token))).toBe(state);
  });

  test(`PUT and DELETE of an absent ${kind.name} are 404 with any If-Match`, async () => {
    const { path, etag } = await createRecord(service, token, { kind, home });
    const absentPath = path.replace(/[^/]+$/, systemClock.mintId());
    const absence = await comparableResponse(await service.get(absentPath, token));
    await service.del(path, token);
    for (const address of [absentPath, path]) {
      for (const condition of ['*', etag, `${etag}, "one"`, '"one"', '"one", "two"', 'garbage']) {
        for (const answer of [await put(address, condition), await del(address, condition)]) {
          expect([condition, await comparableResponse(answer)]).toEqual([condition, absence]);
        }
      }
    }
  });

  test(`PUT of a ${kind.name} with a stale If-Match is 401, 403, 400 or 415 before 412`, async () => {
    const { path } = await createRecord(service, token, { kind, home });
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

test('concurrent PUT requests without If-Match all succeed, and the last one remains', async () => {
  const kind = KINDS[3];
  const { path } = await createRecord(service, token, { kind, home });
  const names = Array.from({ length: 20 }, (_, index) => `Writer ${index}`);
  const answers = await Promise.all(
    names.map((name) => service.put(path, token, { data: { type: kind.resource.type, name } })),
  );
  expect(new Set(answers.map(({ status }) => status))).toEqual(new Set([200]));
  // Every response has its own write, and the record equals one of them.
  const bodies = (await Promise.all(answers.map((answer) => answer.json()))) as RecordBody[];
  expect(bodies.map(({ data }) => data.name)).toEqual(names);
  const last = await service.get(path, token);
  const etags = answers.map(({ headers }) => headers.get('etag'));
  expect(new Set(etags).size).toBe(names.length);
  const winner = etags.indexOf(last.headers.get('etag'));
  expect(((await last.json()) as RecordBody).data.name).toBe(names[winner]);
});

test('a write with If-None-Match is 412, or 404 for a missing record, and changes nothing', async () => {
  const kind = KINDS[3];
  const { path } = await createRecord(service, token, { kind, home });
  const etag = (await service.get(path, token)).headers.get('etag') ?? '';
  const body = { data: { type: kind.resource.type } };
  for (const named of ['*', etag, `W/${etag}`, '"x"']) {
    const headers = { 'If-None-Match': named };
    expect([named, (await service.put(path, token, body, headers)).status]).toEqual([named, 412]);
    expect([named, (await service.del(path, token, headers)).status]).toEqual([named, 412]);
  }
  expect((await service.get(path, token)).headers.get('etag')).toBe(etag);
  const absentPath = path.replace(/[^/]+$/, systemClock.mintId());
  expect((await service.put(absentPath, token, body, { 'If-None-Match': '*' })).status).toBe(404);
});
