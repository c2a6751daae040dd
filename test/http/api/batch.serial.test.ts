import { describe, expect, test } from 'bun:test';
import { LIMITS } from '../../../src/model/limits.ts';
import { oidcProfileInfo, passwordProfileInfo, user } from '../../../src/model/resources.ts';
import { systemClock } from '../../../src/ops/process/clock.ts';
import { type JsonObject, openSchemaValidator } from '../../support/json_schema.ts';
import {
  createParents,
  createRecord,
  type Data,
  FULL_SCOPE,
  kindOf,
  OFFLINE,
  rowCounts,
} from '../../support/resource_cases.ts';
import { comparableResponse, errorsOf, startService } from '../../support/service.ts';

const service = await startService(OFFLINE);
const document = (await (await service.get('/openapi.json')).json()) as JsonObject;
const token = await service.token(`${FULL_SCOPE} changes:read`);
const home = await createParents(service, token);

/** The differences between a record and the schema of its resource. */
function recordErrors(body: JsonObject): readonly string[] {
  const { type } = body.data as { readonly type: string };
  return openSchemaValidator(document)({ $ref: `#/components/schemas/${type}` }, body);
}

const base = () => `/v2/authentication-realms/${home.realm}`;
const users = () => `${base()}/user-authentication-info`;
const OIDC = 'user-authentication-oidc-profile-info';

const freshUser = (more: Data = {}): Data => ({ ...kindOf(user).fresh(home), ...more });
const oidcLink = (more: Data = {}): Data => ({ ...kindOf(oidcProfileInfo).fresh(home), ...more });
const passwordLink = (): Data => kindOf(passwordProfileInfo).fresh(home);

const post = (path: string, data: Data, more: object = {}) => ({
  method: 'POST',
  path,
  body: { data, ...more },
});
const put = (path: string, data: Data, more: object = {}) => ({
  method: 'PUT',
  path,
  body: { data },
  ...more,
});
const del = (path: string, more: object = {}) => ({ method: 'DELETE', path, ...more });
const rename = (name: string): Data => ({ type: user.type, name });

const batch = (requests: unknown, bearer = token, headers: Record<string, string> = {}) =>
  service.post(`${base()}/batch`, bearer, { requests }, headers);

interface ItemResponse {
  readonly status: number;
  readonly location?: string;
  readonly etag?: string;
  readonly body?: {
    readonly data: { readonly id: string; readonly name?: string };
    readonly included?: object[];
  };
}

/** The responses of a batch. Each record must match the schema of its resource, because that of a batch leaves records open. */
async function responsesOf(answer: Promise<Response> | Response): Promise<readonly ItemResponse[]> {
  const response = await answer;
  const text = await response.text();
  expect([response.status, response.status === 200 ? '' : text]).toEqual([200, '']);
  const { responses } = JSON.parse(text) as { responses: readonly ItemResponse[] };
  for (const { body } of responses) if (body) expect(recordErrors(body as unknown as JsonObject)).toEqual([]);
  return responses;
}

/** The status and the pointers of a refused batch, which must have written nothing. */
async function refused(answer: () => Promise<Response>): Promise<[number, ...(string | undefined)[]]> {
  const before = await rowCounts(service);
  const response = await answer();
  expect(await rowCounts(service)).toEqual(before);
  return [response.status, ...(await errorsOf(response)).map(({ source }) => source?.pointer)];
}

async function newUser(): Promise<{ readonly path: string; readonly etag: string }> {
  return createRecord(service, token, { kind: kindOf(user), home });
}

async function eventsAfter(seq: number): Promise<readonly string[]> {
  const changes = await service.db.engine.records.changes(home.realm as never, seq, 1_000);
  return changes.map(({ event }) => event.replace('user-authentication-', ''));
}

async function lastSeq(): Promise<number> {
  const changes = await service.db.engine.records.changes(home.realm as never, 0, 100_000);
  return changes.at(-1)?.seq ?? 0;
}

describe('a batch', () => {
  test('a batch creates, changes and deletes in order, and returns each record as GET does', async () => {
    const [kept, gone] = [await newUser(), await newUser()];
    const seq = await lastSeq();
    const responses = await responsesOf(
      batch([
        post(users(), freshUser()),
        put(kept.path, rename('Renamed')),
        post(`${kept.path}/${OIDC}/`, oidcLink()),
        del(gone.path),
      ]),
    );
    expect(responses.map(({ status }) => status)).toEqual([201, 200, 201, 204]);
    const [created, changed, linked, deleted] = responses;
    expect(deleted).toEqual({ status: 204 });
    for (const [response, address] of [
      [created, created?.location],
      [changed, kept.path],
      [linked, linked?.location],
    ] as const) {
      const read = await service.get(address ?? '', token);
      expect([response?.etag, response?.body]).toEqual([
        read.headers.get('etag'),
        await read.json(),
      ] as never);
    }
    expect(changed?.body?.data.name).toBe('Renamed');
    expect((await service.get(gone.path, token)).status).toBe(404);
    expect(await eventsAfter(seq)).toEqual([
      'info.created',
      'info.updated',
      'oidc-profile-info.created',
      'info.updated',
      'info.deleted',
    ]);
  });

  test('a batch creates users with their links, and returns both as GET with include does', async () => {
    const included = [oidcLink(), passwordLink()];
    const [first, second] = await responsesOf(
      batch([post(users(), freshUser(), { included }), post(users(), freshUser(), { included: [] })]),
    );
    const both = 'include=oidc_profile_infos,password_profile_infos';
    const read = await service.get(`${first?.location}?${both}`, token);
    expect(first?.body).toEqual((await read.json()) as never);
    expect(first?.body?.included).toHaveLength(2);
    expect(second?.body?.included).toEqual([]);
  });

  test('a batch that writes a record twice returns its final state twice, no body if deleted', async () => {
    const { path, etag } = await newUser();
    const responses = await responsesOf(
      batch([put(path, rename('First'), { if_match: etag }), put(path, rename('Second'))]),
    );
    expect(responses.map(({ body }) => body?.data.name)).toEqual(['Second', 'Second']);
    const [gone] = await responsesOf(batch([put(path, rename('Third')), del(path)]));
    expect(gone).toEqual({ status: 200 });
  });

  test('a batch writes up to recordsPerRequestMax records and links; with more it is 400', async () => {
    const most = LIMITS.recordsPerRequestMax;
    const requests = Array.from({ length: most + 1 }, () => post(users(), freshUser()));
    expect(await refused(() => batch(requests))).toEqual([400, '/requests']);
    expect(await responsesOf(batch(requests.slice(1)))).toHaveLength(most);
    const included = Array.from({ length: most / 2 }, () => oidcLink());
    const withLinks = [1, 2].map(() => post(users(), freshUser(), { included }));
    expect(await refused(() => batch(withLinks))).toEqual([400, '/requests']);
  });

  test('a batch with more than passwordsPerRequestMax passwords is 400 and names the others', async () => {
    const { path } = await newUser();
    const requests = Array.from({ length: LIMITS.passwordsPerRequestMax + 1 }, () =>
      post(`${path}/${passwordProfileInfo.collection}`, passwordLink()),
    );
    expect(await refused(() => batch(requests))).toEqual([400, '/requests/4/body/data/password']);
    const included = [1, 2, 3].map(passwordLink);
    const mixed = [...requests.slice(0, 2), post(users(), freshUser(), { included })];
    expect(await refused(() => batch(mixed))).toEqual([400, '/requests/2/body/included/2/password']);
    expect(await responsesOf(batch(requests.slice(1)))).toHaveLength(LIMITS.passwordsPerRequestMax);
  });

  test('a batch ignores included in a PUT: it requires no scope and counts as no record', async () => {
    const { path } = await newUser();
    const included = Array.from({ length: LIMITS.recordsPerRequestMax }, passwordLink);
    const request = { ...put(path, rename('Kept')), body: { data: rename('Kept'), included } };
    const [changed] = await responsesOf(batch([request], await service.token('users:write')));
    expect(changed).toMatchObject({ status: 200, body: { data: { name: 'Kept' } } });
  });

  test('a batch looks up at most discoveriesPerRealmMax providers; with more it is 400', async () => {
    const profile = () => post(`${base()}/oidc-profiles`, { ...profileData, name: systemClock.mintId() });
    const profileData = {
      type: 'oidc-profile',
      discovery_url: 'https://login.example.com/.well-known/openid-configuration',
      client_id: 'shop',
      client_secret: 'of-a-provider-and-nobody-else',
    };
    const requests = Array.from({ length: LIMITS.discoveriesPerRealmMax + 1 }, profile);
    expect(await refused(() => batch(requests))).toEqual([400, '/requests/2/body/data/discovery_url']);
    expect(await responsesOf(batch(requests.slice(1)))).toHaveLength(LIMITS.discoveriesPerRealmMax);
  });
});

describe('a refused batch writes nothing', () => {
  test('a batch with a taken link is 422, names the request with it and writes nothing', async () => {
    const { path } = await newUser();
    const link = oidcLink();
    await responsesOf(batch([post(`${path}/${OIDC}`, link)]));
    const requests = [post(users(), freshUser()), put(path, rename('Undone')), post(`${path}/${OIDC}`, link)];
    expect(await refused(() => batch(requests))).toEqual([
      422,
      '/requests/2/body/data/issuer',
      '/requests/2/body/data/subject',
    ]);
    const nested = post(users(), freshUser(), { included: [oidcLink(), link] });
    expect(await refused(() => batch([nested]))).toEqual([
      422,
      '/requests/0/body/included/1/issuer',
      '/requests/0/body/included/1/subject',
    ]);
    const read = await (await service.get(path, token)).json();
    expect((read as { data: { name: string } }).data.name).not.toBe('Undone');
  });

  test('a batch with invalid members is 400, names all of them and writes nothing', async () => {
    const { path } = await newUser();
    const requests = [
      post(users(), freshUser({ email: 'none' })),
      put(path, { type: 'other' }),
      { method: 'POST', path: users(), body: {} },
      post(users(), freshUser(), { included: [{ type: 'none' }] }),
      put(path, { ...rename('x'), given_name: 7 }),
    ];
    expect(await refused(() => batch(requests))).toEqual([
      400,
      '/requests/0/body/data/email',
      '/requests/1/body/data/type',
      '/requests/2/body/data',
      '/requests/3/body/included/0/type',
      '/requests/4/body/data/given_name',
    ]);
  });

  test('a batch is 404 for an absent record, 412 for a stale if_match, and names the request', async () => {
    const { path, etag } = await newUser();
    const absent = `${users()}/${systemClock.mintId()}`;
    for (const request of [put(absent, rename('x')), del(absent), post(`${absent}/${OIDC}`, oidcLink())])
      expect(await refused(() => batch([put(path, rename('x')), request]))).toEqual([
        404,
        '/requests/1/path',
      ]);
    for (const if_match of ['"0000000000000000-00000000"', `W/${etag}`, 'none', ''])
      expect(await refused(() => batch([del(path, { if_match })]))).toEqual([412, '/requests/0/if_match']);
    const twice = [1, 2].map(() => put(path, rename('x'), { if_match: etag }));
    expect(await refused(() => batch(twice))).toEqual([412, '/requests/1/if_match']);
    await responsesOf(batch([put(path, rename('x'), { if_match: etag }), del(path, { if_match: '*' })]));
  });

  const OTHER = '01900000-0000-7000-8000-000000000000';
  const SHAPES: [string, () => unknown, ...string[]][] = [
    ['no requests member', () => undefined, '/requests'],
    ['an object as requests', () => ({}), '/requests'],
    ['an empty list of requests', () => [], '/requests'],
    ['requests that are not objects', () => [7, null, []], '/requests/0', '/requests/1', '/requests/2'],
    ['a request without members', () => [{}], '/requests/0/method', '/requests/0/path', '/requests/0/body'],
    ['a GET request', () => [{ method: 'GET', path: users(), body: {} }], '/requests/0/method'],
    ['a PUT of a collection', () => [put(users(), rename('x'))], '/requests/0/method'],
    ['a POST to a record', () => [post(`${users()}/${OTHER}`, freshUser())], '/requests/0/method'],
    [
      'a PUT of the realm itself',
      () => [put(base(), { type: 'authentication-realm', name: 'x' })],
      '/requests/0/path',
    ],
    ['a POST to a search', () => [post(`${users()}/search`, freshUser())], '/requests/0/path'],
    ['an unknown path', () => [post('/v2/none', freshUser())], '/requests/0/path'],
    ['a query in a path', () => [del(`${users()}/${OTHER}?a=b`)], '/requests/0/path'],
    [
      'a path in another realm',
      () => [post(users().replace(home.realm, OTHER), freshUser())],
      '/requests/0/path',
    ],
    ['if_match in a POST', () => [{ ...post(users(), freshUser()), if_match: '*' }], '/requests/0/if_match'],
    ['a numeric if_match', () => [del(`${users()}/${OTHER}`, { if_match: 1 })], '/requests/0/if_match'],
  ];
  test.each(SHAPES)('a batch with %s is 400 and writes nothing', async (_, requests, ...pointers) => {
    expect(await refused(() => batch(requests()))).toEqual([400, ...pointers]);
  });

  test('a batch with requests for two realms is 400 and names those for the other realm', async () => {
    const there = await createParents(service, token);
    const theirs = users().replace(home.realm, there.realm);
    const requests = [post(users(), freshUser()), post(theirs, freshUser())];
    expect(await refused(() => batch(requests))).toEqual([400, '/requests/1/path']);
  });
});

describe('the rights of a batch', () => {
  test('a batch without the scope of a request or link is 403 before its members are validated', async () => {
    const { path } = await newUser();
    const challenge = (answer: Response) => [answer.status, answer.headers.get('www-authenticate')];
    const insufficient = (scope: string) => [
      403,
      `Bearer realm="authrealm", error="insufficient_scope", scope="${scope}"`,
    ];
    const writer = await service.token('users:write');
    const invalid = post(users(), { type: 'none' });
    expect(challenge(await batch([invalid, post(`${path}/${OIDC}`, oidcLink())], writer))).toEqual(
      insufficient('oidc-profile-infos:write'),
    );
    const nested = post(users(), freshUser(), { included: [passwordLink()] });
    expect(challenge(await batch([nested], writer))).toEqual(insufficient('password-profile-infos:write'));
    expect(await refused(() => batch([post(users(), freshUser()), nested], writer))).toEqual([
      403,
      undefined,
    ]);
    await responsesOf(batch([post(users(), freshUser())], writer));
    const reader = await service.token('users:read profile-infos:read realms:write');
    expect((await batch([], reader)).status).toBe(403);
  });

  test('a batch in a realm outside the list of the client is 404, as in an unknown realm', async () => {
    const limited = await service.token(FULL_SCOPE, new Set([systemClock.mintId()]));
    const outside = await batch([post(users(), freshUser())], limited);
    const path = `${base().replace(home.realm, systemClock.mintId())}/batch`;
    const requests = [post(path.replace('batch', user.collection), freshUser())];
    const unknown = await service.post(path, token, { requests });
    expect(outside.status).toBe(404);
    expect(await comparableResponse(unknown)).toBe(await comparableResponse(outside));
  });
});

describe('an Idempotency-Key of a batch', () => {
  const keyed = () => ({ 'Idempotency-Key': crypto.randomUUID() });

  test('a batch is executed once per key and returns the same again; other requests are 422', async () => {
    const headers = keyed();
    const requests = [post(users(), freshUser(), { included: [oidcLink()] }), post(users(), freshUser())];
    const before = await rowCounts(service);
    const first = await batch(requests, token, headers);
    const counts = await rowCounts(service);
    expect(first.status).toBe(200);
    expect((counts.idempotency ?? 0) - (before.idempotency ?? 0)).toBe(1);
    expect(await comparableResponse(await batch(requests, token, headers))).toBe(
      await comparableResponse(first),
    );
    expect(await rowCounts(service)).toEqual(counts);
    expect((await batch(requests.slice(1), token, headers)).status).toBe(422);
  });

  test('a batch sent again with its key returns current records, and no body for deleted ones', async () => {
    const headers = keyed();
    const requests = [1, 2].map(() => post(users(), freshUser()));
    const [kept, gone] = await responsesOf(batch(requests, token, headers));
    await service.put(kept?.location ?? '', token, { data: rename('Later') });
    await service.del(gone?.location ?? '', token);
    const [now, absent] = await responsesOf(batch(requests, token, headers));
    expect(now?.body?.data).toMatchObject({ id: kept?.body?.data.id, name: 'Later' });
    expect(absent).toEqual({ status: 201, location: gone?.location as string });
  });

  test('a batch with a key that is in use is 409 until the first request ends', async () => {
    for (let round = 0; round < 20; round += 1) {
      const headers = keyed();
      const requests = [post(users(), freshUser())];
      const answers = await Promise.all(Array.from({ length: 8 }, () => batch(requests, token, headers)));
      const texts = await Promise.all(
        answers.filter(({ status }) => status === 200).map((answer) => answer.text()),
      );
      expect(new Set(texts).size).toBe(1);
      if (answers.some(({ status }) => status === 409)) return;
    }
    throw new Error('no 409 in 20 rounds');
  });

  test('a refused batch that is sent again with its key is refused with the same code', async () => {
    const headers = keyed();
    const requests = [post(users(), freshUser()), del(`${users()}/${systemClock.mintId()}`)];
    const first = await batch(requests, token, headers);
    const again = await batch(requests, token, headers);
    expect([first.status, again.status]).toEqual([404, 404]);
    expect((await errorsOf(again))[0]?.code).toBe('not_found');
  });
});
