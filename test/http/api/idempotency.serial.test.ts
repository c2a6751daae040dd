import { describe, expect, test } from 'bun:test';
import { changeClient } from '../../../src/access/clients/clients.ts';
import type { Uuid } from '../../../src/model/id.ts';
import { LIMITS } from '../../../src/model/limits.ts';
import { parseScopes } from '../../../src/model/principal.ts';
import { systemClock } from '../../../src/ops/process/clock.ts';
import { testInProcess } from '../../support/program_service.ts';
import {
  createParents,
  createRecord,
  type Data,
  FULL_SCOPE,
  KINDS,
  type Kind,
  OFFLINE,
  type ParentIds,
  type RecordBody,
  rowCounts,
  uniqueWord,
  userPath,
} from '../../support/resource_cases.ts';
import { comparableResponse, errorsOf, startService } from '../../support/service.ts';

/** Idempotency-Key: a repeated POST creates one record. */

const service = await startService(OFFLINE);
const token = await service.token(FULL_SCOPE);
const home = await createParents(service, token);

const [realms, , , users, identities, usernames] = KINDS;

interface PostOptions {
  readonly kind: Kind;
  readonly data: Data;
  readonly key: string;
  readonly where?: ParentIds;
  readonly bearer?: string;
}

function post({ kind, data, key, where = home, bearer = token }: PostOptions): Promise<Response> {
  return service.post(kind.collection(where), bearer, { data }, { 'Idempotency-Key': key });
}

/** The status and the code of an error response. */
async function refusalOf(response: Response): Promise<readonly [string | undefined, string | undefined]> {
  const [error] = await errorsOf(response);
  return [error?.status, error?.code];
}

describe.each([...KINDS])('$name', (kind) => {
  test(`a repeated POST of a ${kind.name} with its key returns the record as it is now, 404 once it is deleted, and creates nothing`, async () => {
    const request = { kind, data: kind.fresh(home), key: uniqueWord('key') };
    const first = await post(request);
    expect(first.status).toBe(201);
    const { data } = (await first.clone().json()) as RecordBody;
    const answer = await comparableResponse(first);
    expect(answer).toContain('"location"');
    expect(answer).toContain('"etag"');
    const before = await rowCounts(service);
    expect(await comparableResponse(await post(request))).toBe(answer);

    const path = `${kind.collection(home)}/${data.id}`;
    const change = { type: kind.resource.type, ...kind.changes() };
    expect((await service.put(path, token, { data: change })).status).toBe(200);
    const [again, present] = [await post(request), await service.get(path, token)];
    expect([again.status, again.headers.get('location')]).toEqual([201, first.headers.get('location')]);
    expect(again.headers.get('etag')).toBe(present.headers.get('etag'));
    expect(again.headers.get('etag')).not.toBe(first.headers.get('etag'));
    expect(await again.json()).toEqual(await present.json());

    expect((await service.del(path, token)).status).toBe(204);
    for (let round = 0; round < 2; round += 1)
      expect(await refusalOf(await post(request))).toEqual(['404', 'not_found']);
    const after = await rowCounts(service);
    expect(after[kind.resource.table]).toBe((before[kind.resource.table] ?? 0) - 1);
    expect(after.idempotency).toBe(before.idempotency ?? 0);
  });

  test(`a POST of a ${kind.name} with a used key and another body is 422, and nothing is written`, async () => {
    const request = { kind, data: kind.fresh(home), key: uniqueWord('key') };
    const answer = await comparableResponse(await post(request));
    const before = await rowCounts(service);
    for (const data of [kind.fresh(home), {}, { ...request.data, more: 1 }]) {
      const other = await post({ ...request, data });
      expect([other.status, (await errorsOf(other))[0]?.detail]).toEqual([
        422,
        'This Idempotency-Key was used with another body',
      ]);
    }
    expect(await rowCounts(service)).toEqual(before);
    expect(await comparableResponse(await post(request))).toBe(answer);
  });

  test(`a rejected POST of a ${kind.name} is stored, and replayed by its code`, async () => {
    const missing = { ...kind.fresh(home), [kind.required[0] ?? '']: undefined };
    const request = { kind, data: missing, key: uniqueWord('key') };
    const refused = await refusalOf(await post(request));
    expect(refused[0]).toBe('400');
    const before = await rowCounts(service);
    expect(await refusalOf(await post(request))).toEqual(refused);
    expect((await post({ ...request, data: kind.fresh(home) })).status).toBe(422);
    expect(await rowCounts(service)).toEqual(before);
    expect(before.idempotency).toBeGreaterThan(0);
  });
});

test('a stored 400, 404 or 422 is replayed, even if the request would succeed now', async () => {
  const headers = () => ({ 'Idempotency-Key': uniqueWord('key') });
  const collection = users.collection(home);
  const broken = headers();
  const malformed = await refusalOf(await service.post(collection, token, '{', broken));
  expect(malformed[0]).toBe('400');
  expect(await refusalOf(await service.post(collection, token, '{', broken))).toEqual(malformed);

  const request = { kind: identities, data: identities.fresh(home), key: uniqueWord('key') };
  const unknownUser = { ...home, user: systemClock.mintId() };
  const absent = await refusalOf(await post({ ...request, where: unknownUser }));
  expect(absent).toEqual(['404', 'not_found']);
  expect(await refusalOf(await post({ ...request, where: unknownUser }))).toEqual(absent);
  const unknownRealm = { ...home, realm: systemClock.mintId() };
  for (let round = 0; round < 2; round += 1)
    expect(await refusalOf(await post({ ...request, where: unknownRealm }))).toEqual(absent);

  const { path, body } = await createRecord(service, token, { kind: identities, home });
  const taken = {
    kind: identities,
    data: { ...identities.fresh(home), subject: body.data.subject },
    key: uniqueWord('key'),
  };
  const conflict = ['422', 'conflict'] as const;
  expect(await refusalOf(await post(taken))).toEqual(conflict);
  await service.del(path, token);
  expect(await refusalOf(await post(taken))).toEqual(conflict);
  expect((await post({ ...taken, key: uniqueWord('key') })).status).toBe(201);
});

test('an idempotency key is scoped to its client, its realm and its path', async () => {
  const key = uniqueWord('key');
  const otherHome = await createParents(service, token);
  const user = (await createRecord(service, token, { kind: users, home })).id;
  const data = users.fresh(home);
  const answers = [
    await post({ kind: users, data, key }),
    await post({ kind: users, data, key, bearer: await service.token(FULL_SCOPE) }),
    await post({ kind: users, data, key, where: otherHome }),
    await post({ kind: identities, data: identities.fresh(home), key }),
    await post({ kind: identities, data: identities.fresh(home), key, where: { ...home, user } }),
    await post({ kind: usernames, data: usernames.fresh(home), key }),
    await post({ kind: realms, data: realms.fresh(home), key }),
  ];
  expect(answers.map(({ status }) => status)).toEqual(answers.map(() => 201));
  const ids = await Promise.all(answers.map(async (answer) => ((await answer.json()) as RecordBody).data.id));
  expect(new Set(ids).size).toBe(answers.length);
  // Another spelling of the path is the same path.
  const again = await service.post(
    `/${users.collection(home)}/`,
    token,
    { data },
    { 'Idempotency-Key': key },
  );
  expect(((await again.json()) as RecordBody).data.id).toBe(ids[0] as string);
  const upper = users.collection({ ...home, realm: home.realm.toUpperCase() });
  const upperCase = await service.post(upper, token, { data }, { 'Idempotency-Key': key });
  expect(((await upperCase.json()) as RecordBody).data.id).toBe(ids[0] as string);
});

test('an idempotency key has 1 to 255 visible ASCII characters, otherwise 400', async () => {
  const before = await rowCounts(service);
  // The spaces around a header value are removed, so ' ' is an empty key.
  for (const key of ['', ' ', 'two words', 'a\tb', 'k'.repeat(256), 'schlüssel', '\x80']) {
    const answer = await post({ kind: users, data: users.fresh(home), key });
    expect([key, answer.status]).toEqual([key, 400]);
    expect(await errorsOf(answer)).toEqual([
      {
        status: '400',
        title: 'Bad Request',
        detail: 'Idempotency-Key: must be 1 to 255 visible ASCII characters',
        code: 'invalid_query',
        source: { parameter: 'Idempotency-Key' },
      },
    ]);
  }
  expect(await rowCounts(service)).toEqual(before);
  for (const key of [
    '!',
    '~',
    'k'.repeat(255),
    '"a,b;c=d"',
    '%00',
    "'; drop table idempotency --".replaceAll(' ', '_'),
  ]) {
    expect((await post({ kind: users, data: users.fresh(home), key })).status).toBe(201);
  }
});

test('Idempotency-Key has no effect on other methods', async () => {
  const headers = { 'Idempotency-Key': 'two words' };
  const { path } = await createRecord(service, token, { kind: users, home });
  const put = { data: { type: users.resource.type } };
  expect((await service.put(path, token, put, headers)).status).toBe(200);
  expect((await service.put(path, token, { data: { ...put.data, name: 'Other' } }, headers)).status).toBe(
    200,
  );
  expect((await service.get(path, token, headers)).status).toBe(200);
  expect((await service.del(path, token, headers)).status).toBe(204);
});

test('a replay requires a valid token, the scope and the realm; 401 and 403 are not stored', async () => {
  const { clientId, secret } = await service.client('users:write users:read');
  const getToken = () => service.grant({ clientId, secret });
  const bearer = await getToken();
  const { access } = service.db.engine;
  const change = async (patch: Parameters<typeof changeClient>[2]) => {
    await changeClient(access, clientId, patch, service.clock);
    service.clock.advance(LIMITS.accessTableAgeMsMax + 100);
  };
  const request = { kind: users, data: users.fresh(home), key: uniqueWord('key'), bearer };
  expect((await post({ ...request, bearer: 'nobody' })).status).toBe(401);
  await change({ scopes: parseScopes('users:read') as Set<string> });
  expect((await post(request)).status).toBe(403);
  await change({ scopes: parseScopes('users:read users:write') as Set<string> });
  const first = await post(request);
  expect(first.status).toBe(201);
  const answer = await comparableResponse(first);

  await change({ scopes: parseScopes('users:read') as Set<string> });
  expect((await post(request)).status).toBe(403);
  await change({
    scopes: parseScopes('users:write') as Set<string>,
    realms: new Set([systemClock.mintId()]),
  });
  expect((await post(request)).status).toBe(404);
  await change({ realms: new Set([home.realm as Uuid]) });
  expect(await comparableResponse(await post(request))).toBe(answer);
  await change({ disabledAt: service.clock.now() });
  expect((await post(request)).status).toBe(401);
  await change({ disabledAt: undefined });
  // Another token of the same client is the same client.
  expect(await comparableResponse(await post({ ...request, bearer: await getToken() }))).toBe(answer);
});

describe('idempotency records in the database', () => {
  test('an idempotency record has no key, body or response in clear text', async () => {
    const [key, note] = [uniqueWord('a-key-to-look-for'), uniqueWord('a-note-to-look-for')];
    const data = { ...users.fresh(home), email: `${uniqueWord('stored')}@example.com`, note };
    expect((await post({ kind: users, data, key })).status).toBe(201);
    const refused = { ...users.fresh(home), email: uniqueWord('an-email-to-look-for') };
    expect((await post({ kind: users, data: refused, key: `${key}-2` })).status).toBe(400);
    const secrets = [key, note, refused.email, service.url, '"links":', 'must be an e-mail', 'Location'];
    expect(await service.database.findPlaintext([...secrets, data.email])).toEqual([data.email]);
  });

  test('a repeated request whose user or realm was deleted is 404 and creates nothing', async () => {
    const where = await createParents(service, token);
    const request = { kind: users, data: users.fresh(where), key: uniqueWord('key'), where };
    const { id } = ((await (await post(request)).json()) as RecordBody).data;
    const child = {
      kind: identities,
      data: identities.fresh(where),
      key: uniqueWord('key'),
      where: { ...where, user: id },
    };
    expect((await post(child)).status).toBe(201);
    const expectGone = async () => {
      for (const each of [request, child])
        expect(await refusalOf(await post(each))).toEqual(['404', 'not_found']);
    };
    await service.del(userPath({ ...where, user: id }), token);
    const before = await rowCounts(service);
    await expectGone();
    expect(await rowCounts(service)).toEqual(before);
    expect((await service.del(`/v2/authentication-realms/${where.realm}`, token)).status).toBe(204);
    await expectGone();
  });
});

testInProcess('an idempotency record expires after a day, not before', async () => {
  const { clientId, secret } = await service.client(FULL_SCOPE);
  const getToken = () => service.grant({ clientId, secret });
  const request = { kind: users, data: users.fresh(home), key: uniqueWord('key') };
  const answer = await comparableResponse(await post({ ...request, bearer: await getToken() }));
  service.clock.advance(LIMITS.idempotencyMsMax - 60_000);
  const bearer = await getToken();
  expect(await comparableResponse(await post({ ...request, bearer }))).toBe(answer);
  service.clock.advance(60_000);
  const later = await post({ ...request, bearer });
  expect(later.status).toBe(201);
  expect(await comparableResponse(later)).not.toBe(answer);
  expect(await comparableResponse(await post({ ...request, bearer }))).not.toBe(answer);
});
