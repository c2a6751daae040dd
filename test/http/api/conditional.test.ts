import { describe, expect, test } from 'bun:test';
import { etags } from '../../../src/http/pipeline/present.ts';
import { changeOf } from '../../../src/model/log/change.ts';
import type { Key, Resource } from '../../../src/model/resource.ts';
import { oidcProfileInfo, passwordProfileInfo } from '../../../src/model/resources.ts';
import { systemClock } from '../../../src/ops/process/clock.ts';
import {
  comparableResponse,
  createFixture,
  LOOKUPS,
  PASSWORD_HASH,
  startService,
} from '../../support/service.ts';

const service = await startService();
const fixture = await createFixture(service.db);
const token = await service.token('profile-infos:read');

const STRONG = /^"[0-9a-f]{16}-[A-Za-z0-9_-]{8}"$/;

describe.each(LOOKUPS)('$name', ({ path, id }) => {
  async function etagOf(): Promise<string> {
    return (await service.get(path(fixture), token)).headers.get('etag') ?? '';
  }

  test('a record response has Cache-Control private, no-cache and a strong, stable ETag', async () => {
    const answer = await service.get(path(fixture), token);
    expect(answer.headers.get('cache-control')).toBe('private, no-cache');
    expect(answer.headers.get('etag')).toMatch(STRONG);
    for (const spelling of [path(fixture), `${path(fixture)}/`, `/${path(fixture)}`]) {
      expect(await comparableResponse(await service.get(spelling, token))).toBe(
        await comparableResponse(await service.get(path(fixture), token)),
      );
    }
  });

  test('HEAD of a record has the headers of GET and no body', async () => {
    for (const address of [path(fixture), `${path(fixture)}/`]) {
      const get = await service.get(address, token);
      const head = await fetch(service.url + address, {
        method: 'HEAD',
        headers: { Authorization: `Bearer ${token}` },
      });
      expect(await head.text()).toBe('');
      const visible = ({ headers }: Response) =>
        [...headers].filter(([name]) => !['date', 'x-request-id'].includes(name)).sort();
      expect(visible(head)).toEqual(visible(get));
      expect(Number(head.headers.get('content-length'))).toBe((await get.arrayBuffer()).byteLength);
    }
  });

  test('HEAD of an absent record and HEAD without a right have the status of GET', async () => {
    const absent = path({ ...fixture, [id]: systemClock.mintId() });
    for (const [address, bearer] of [
      [absent, token],
      [path(fixture), 'nobody'],
    ] as const) {
      const get = await service.get(address, bearer);
      const head = await fetch(service.url + address, {
        method: 'HEAD',
        headers: { Authorization: `Bearer ${bearer}` },
      });
      expect([head.status, await head.text()]).toEqual([get.status, '']);
      expect(head.headers.get('content-length')).toBe(get.headers.get('content-length'));
    }
  });

  const MATCHING: [string, (etag: string) => string][] = [
    ['exactly', (etag) => etag],
    ['weakly', (etag) => `W/${etag}`],
    ['in a list', (etag) => `"one", ${etag}, "two"`],
    ['in a list without spaces', (etag) => `"one",W/${etag}`],
    ['after a foreign one with a comma', (etag) => `"a,b", ${etag}`],
    ['after empty list elements', (etag) => `, ,${etag},`],
    ['by a star', () => '*'],
  ];
  test.each(MATCHING)('GET is 304 if If-None-Match names the ETag %s', async (_name, spell) => {
    const etag = await etagOf();
    const answer = await service.get(path(fixture), token, { 'If-None-Match': spell(etag) });
    expect(answer.status).toBe(304);
    expect(await answer.text()).toBe('');
    expect(answer.headers.get('etag')).toBe(etag);
    expect(answer.headers.get('cache-control')).toBe('private, no-cache');
    expect(answer.headers.get('content-type')).toBeNull();
  });

  const NOT_MATCHING: [string, (etag: string) => string][] = [
    ['another ETag', () => '"0000000000000000-AAAAAAAA"'],
    ['a list of other ETags', () => '"one", "two"'],
    ['its revision alone', (etag) => `${etag.slice(0, 17)}"`],
    ['unquoted', (etag) => etag.slice(1, -1)],
    ['half-quoted', (etag) => etag.slice(0, -1)],
    ['within other text', (etag) => `x${etag}y`],
    ['within another ETag', (etag) => `"x${etag.slice(1)}`],
    ['a weak star', () => 'W/*'],
    ['a star in quotes', () => '"*"'],
    ['lower-case weakness', (etag) => `w/${etag}`],
    ['garbage', () => ',,;"";W/'],
  ];
  test.each(NOT_MATCHING)('GET is 200 if If-None-Match is not its ETag: %s', async (_name, spell) => {
    const answer = await service.get(path(fixture), token, { 'If-None-Match': spell(await etagOf()) });
    expect(answer.status).toBe(200);
    expect((await answer.text()).length).toBeGreaterThan(0);
  });

  test('HEAD is 304 if If-None-Match names the ETag', async () => {
    const headers = { Authorization: `Bearer ${token}`, 'If-None-Match': await etagOf() };
    expect((await fetch(service.url + path(fixture), { method: 'HEAD', headers })).status).toBe(304);
  });

  test('a matching If-None-Match is checked after 401, 403 and 404', async () => {
    const named = { 'If-None-Match': '*' };
    const other = await service.token('users:read');
    const absent = path({ ...fixture, [id]: systemClock.mintId() });
    expect((await service.get(path(fixture), undefined, named)).status).toBe(401);
    expect((await service.get(path(fixture), other, named)).status).toBe(403);
    expect((await service.get(absent, token, named)).status).toBe(404);
  });
});

/** Writes the same members again with a new revision. */
async function rewrite(resource: Resource, key: Key): Promise<void> {
  const { records } = service.db.engine;
  const found = await records.get(resource, key);
  if (!found) throw new Error('no record to write again');
  const secret = resource === passwordProfileInfo ? { password_hash: PASSWORD_HASH } : {};
  const record = { ...found, ...secret, revision: systemClock.mintRevision() };
  const origin = { actor: 'test', requestId: undefined, address: undefined, at: systemClock.now() };
  const change = changeOf(resource, 'updated', { key, revision: record.revision, members: [] }, origin);
  const result = await records.commit([{ op: 'replace', resource, key, record, change }]);
  expect(result).toEqual({ kind: 'written' });
}

test.each([
  ['OIDC', oidcProfileInfo, LOOKUPS[0]],
  ['password', passwordProfileInfo, LOOKUPS[1]],
] as const)(
  'a write of an %s profile info changes its ETag, even if no byte changes',
  async (_name, resource, lookup) => {
    const address = lookup.path(fixture);
    const before = await service.get(address, token);
    const old = before.headers.get('etag') as string;
    expect((await service.get(address, token, { 'If-None-Match': old })).status).toBe(304);
    await rewrite(resource, [fixture.realm, fixture.user, fixture[lookup.id]]);
    const after = await service.get(address, token, { 'If-None-Match': old });
    expect(after.status).toBe(200);
    expect(after.headers.get('etag')).not.toBe(old);
    expect(await after.text()).toBe(await before.text());
  },
);

test('the ETag of a record depends on the base URL, which is in its links', async () => {
  const otherService = await startService({ baseUrl: 'https://id.example' });
  const otherFixture = await createFixture(otherService.db);
  const answer = await otherService.get(
    LOOKUPS[0].path(otherFixture),
    await otherService.token('profile-infos:read'),
  );
  const here = await service.get(LOOKUPS[0].path(fixture), token);
  const tail = (of: Response) => of.headers.get('etag')?.slice(17);
  expect(tail(answer)).toMatch(/^-/);
  expect(tail(answer)).not.toBe(tail(here));
});

test('an ETag depends on the revision and the base URL only, not on values of the record', () => {
  const id = systemClock.mintId();
  const revision = systemClock.mintRevision();
  const stamps = { created_at: 0, updated_at: 0, revision };
  const etagOf = etags('https://id.example');
  expect(etagOf({ id, ...stamps, subject: 'one', username: 'one' })).toBe(
    etagOf({ id: systemClock.mintId(), ...stamps, updated_at: 1, subject: 'two', username: 'two' }),
  );
  expect(etagOf({ id, ...stamps })).not.toBe(etags('https://id.example/auth')({ id, ...stamps }));
  expect(etagOf({ id, ...stamps })).not.toBe(etagOf({ id, ...stamps, revision: systemClock.mintRevision() }));
});
