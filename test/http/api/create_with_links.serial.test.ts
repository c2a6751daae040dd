import { describe, expect, test } from 'bun:test';
import { LIMITS } from '../../../src/model/limits.ts';
import { oidcProfileInfo, passwordProfileInfo, user } from '../../../src/model/resources.ts';
import { systemClock } from '../../../src/ops/process/clock.ts';
import {
  createParents,
  type Data,
  FULL_SCOPE,
  kindOf,
  OFFLINE,
  rowCounts,
} from '../../support/resource_cases.ts';
import { comparableResponse, errorsOf, ISSUER, startService } from '../../support/service.ts';

const BOTH = 'include=oidc_profile_infos,password_profile_infos';

const service = await startService(OFFLINE);
const token = await service.token(`${FULL_SCOPE} changes:read`);
const home = await createParents(service, token);

const users = () => `/v2/authentication-realms/${home.realm}/user-authentication-info`;
const freshUser = () => kindOf(user).fresh(home);
const oidcLink = (more: Data = {}): Data => ({ ...kindOf(oidcProfileInfo).fresh(home), ...more });
const passwordLink = (more: Data = {}): Data => ({ ...kindOf(passwordProfileInfo).fresh(home), ...more });

const create = (
  included: unknown,
  bearer = token,
  headers: Record<string, string> = {},
  data = freshUser(),
) => service.post(users(), bearer, { data, included }, headers);

interface Created {
  readonly data: { readonly id: string; readonly meta: Readonly<Record<string, string>> };
  readonly included: readonly { readonly id: string; readonly type: string }[];
}

async function created(answer: Promise<Response>): Promise<Created> {
  const response = await answer;
  const text = await response.text();
  expect([response.status, response.status === 201 ? '' : text]).toEqual([201, '']);
  return JSON.parse(text) as Created;
}

/** The status and the pointers of a refused create, which must have written nothing. */
async function refused(answer: () => Promise<Response>): Promise<[number, ...(string | undefined)[]]> {
  const before = await rowCounts(service);
  const response = await answer();
  expect(await rowCounts(service)).toEqual(before);
  return [response.status, ...(await errorsOf(response)).map(({ source }) => source?.pointer)];
}

describe('a user that is created with its links', () => {
  test('creating a user with links returns what GET with include does, and GET of each link', async () => {
    const answer = await create([oidcLink(), passwordLink(), oidcLink()]);
    const [status, text] = [answer.status, await answer.text()];
    const { data, included } = JSON.parse(text) as Created;
    const location = answer.headers.get('location') ?? '';
    const read = await service.get(`${location}?${BOTH}`, token);
    expect([status, text]).toEqual([201, await read.text()]);
    expect(answer.headers.get('etag')).toBe(read.headers.get('etag') ?? '');
    expect(location).toBe(`${service.url}${users()}/${data.id}`);
    expect(included.map(({ type }) => type)).toEqual([
      oidcProfileInfo.type,
      oidcProfileInfo.type,
      passwordProfileInfo.type,
    ]);
    expect(data.meta.updated_at).toBe(data.meta.created_at as string);
    for (const { id, type } of included) {
      const { collection } = type === oidcProfileInfo.type ? oidcProfileInfo : passwordProfileInfo;
      const { links, ...item } = included.find((each) => each.id === id) as unknown as Record<string, object>;
      const single = await (await service.get(`${users()}/${data.id}/${collection}/${id}`, token)).json();
      expect((single as { data: object }).data).toEqual(item);
    }
  });

  test('a user created with links has one change per record, and the revision of its creation', async () => {
    const answer = await create([oidcLink(), passwordLink()]);
    const { id } = ((await answer.json()) as Created).data;
    const feed = `/v2/changes/search?realm=${home.realm}&user=${id}`;
    const found = (await (await service.get(feed, token)).json()) as {
      data: { type: string; sequence: string; data: { revision: string; request_id: string } }[];
    };
    const data = found.data.toReversed();
    expect(data.map(({ type }) => type.replace(/.*user-authentication-/, ''))).toEqual([
      'info.created',
      'oidc-profile-info.created',
      'password-profile-info.created',
    ]);
    const sequences = data.map(({ sequence }) => Number(sequence));
    expect(sequences.map((each) => each - (sequences[0] ?? 0))).toEqual([0, 1, 2]);
    expect(new Set(data.map(({ data: { request_id } }) => request_id)).size).toBe(1);
    expect(answer.headers.get('etag')?.split('-')[0]).toBe(`"${data[0]?.data.revision}`);
  });

  test('creating a user returns included only if the request has it, even if it is empty', async () => {
    const plain = (await (await service.post(users(), token, { data: freshUser() })).json()) as object;
    expect(Object.keys(plain)).toEqual(['data', 'links']);
    const { included } = await created(create([]));
    expect(included).toEqual([]);
  });

  test('creating a user with recordsPerRequestMax links succeeds; with one more it is 400', async () => {
    const most = LIMITS.recordsPerRequestMax;
    const links = Array.from({ length: most + 1 }, () => oidcLink({ subject: systemClock.mintId() }));
    expect(await refused(() => create(links))).toEqual([400, '/included']);
    const { data, included } = await created(create(links.slice(1)));
    expect(included).toHaveLength(most);
    const read = (await (await service.get(`${users()}/${data.id}?${BOTH}`, token)).json()) as Created;
    expect(read.included).toEqual(included);
  });

  test('a user with more than passwordsPerRequestMax passwords is 400 and names the others', async () => {
    const links = Array.from({ length: LIMITS.passwordsPerRequestMax + 2 }, () => passwordLink());
    expect(await refused(() => create(links))).toEqual([400, '/included/4/password', '/included/5/password']);
    const { included } = await created(create(links.slice(2)));
    expect(included).toHaveLength(LIMITS.passwordsPerRequestMax);
  });
});

describe('a refused user with links', () => {
  test('creating an invalid user with invalid links is 400 and names every error', async () => {
    const { subject: _, ...noSubject } = oidcLink();
    const bad = [noSubject, { type: 'addresses' }, 7, passwordLink({ password: 'short' }), oidcLink()];
    const data = { ...freshUser(), email: 'none' };
    expect(await refused(() => create(bad, token, {}, data))).toEqual([
      400,
      '/data/email',
      '/included/0/subject',
      '/included/1/type',
      '/included/2',
      '/included/3/password',
    ]);
    for (const included of [{}, null, 'none', true]) {
      expect(await refused(() => create(included))).toEqual([400, '/included']);
    }
    expect(await refused(() => service.post(users(), token, { included: [noSubject] }))).toEqual([
      400,
      '/data',
      '/included/0/subject',
    ]);
  });

  test('creating a user with a link that another user or the same request has is 422', async () => {
    const taken = oidcLink();
    await created(create([taken]));
    const pointers = ['/included/1/issuer', '/included/1/subject'];
    expect(await refused(() => create([oidcLink(), taken]))).toEqual([422, ...pointers]);
    const twice = oidcLink();
    expect(await refused(() => create([twice, twice]))).toEqual([422, ...pointers]);
    const name = passwordLink();
    expect(await refused(() => create([oidcLink(), oidcLink(), name, name]))).toEqual([
      422,
      '/included/3/password_profile_id',
      '/included/3/username',
    ]);
  });

  test('creating a user with a link is 422 if its profile is unknown or rejects its username', async () => {
    const unknown = oidcLink({ oidc_profile_id: systemClock.mintId() });
    expect(await refused(() => create([oidcLink(), unknown]))).toEqual([422, '/included/1/oidc_profile_id']);
    const profiles = `/v2/authentication-realms/${home.realm}/password-profiles`;
    const data = { type: 'password_profile', name: 'Mail', username_format: 'email' };
    const made = (await (await service.post(profiles, token, { data })).json()) as Created;
    const link = passwordLink({ password_profile_id: made.data.id });
    expect(await refused(() => create([link]))).toEqual([422, '/included/0/username']);
  });

  test('creating a user with links is 403 without the scope of a link, before validation', async () => {
    const writer = await service.token('users:write oidc-profile-infos:write');
    const answer = await create([oidcLink(), { type: passwordProfileInfo.type }], writer);
    expect([answer.status, answer.headers.get('www-authenticate')]).toEqual([
      403,
      'Bearer realm="authrealm", error="insufficient_scope", scope="password-profile-infos:write"',
    ]);
    expect(await refused(() => create([passwordLink()], writer))).toEqual([403, undefined]);
    expect((await create([oidcLink()], writer)).status).toBe(201);
    const linker = await service.token('profile-infos:write');
    expect((await create([oidcLink()], linker)).status).toBe(403);
  });

  test('creating a user with links is 404 in an unknown realm, as it is without links', async () => {
    const path = users().replace(home.realm, systemClock.mintId());
    const plain = await service.post(path, token, { data: freshUser() });
    const withLinks = await service.post(path, token, { data: freshUser(), included: [oidcLink()] });
    expect(withLinks.status).toBe(404);
    expect(await comparableResponse(withLinks)).toBe(await comparableResponse(plain));
  });
});

describe('an Idempotency-Key of a user with links', () => {
  test('a user with links is created once per key, and is 404 once it is deleted', async () => {
    const headers = { 'Idempotency-Key': crypto.randomUUID() };
    const body = { data: freshUser(), included: [oidcLink(), passwordLink()] };
    const post = (sent: object) => service.post(users(), token, sent, headers);
    const first = await post(body);
    const { id } = ((await first.clone().json()) as Created).data;
    const counts = await rowCounts(service);
    expect(await comparableResponse(await post(body))).toBe(await comparableResponse(first));
    expect((await post({ ...body, included: [oidcLink()] })).status).toBe(422);
    expect(await rowCounts(service)).toEqual(counts);
    expect((await service.del(`${users()}/${id}`, token)).status).toBe(204);
    expect((await post(body)).status).toBe(404);
  });

  test('a refused user with links that is sent again with its key is refused with the same code', async () => {
    const taken = oidcLink();
    await created(create([taken]));
    const headers = { 'Idempotency-Key': crypto.randomUUID() };
    const body = { data: freshUser(), included: [oidcLink(), taken] };
    const first = await service.post(users(), token, body, headers);
    const again = await service.post(users(), token, body, headers);
    expect([first.status, again.status]).toEqual([422, 422]);
    expect((await errorsOf(again))[0]?.code).toBe('conflict');
  });
});

test('resources without links ignore included, like every unknown member, also when the request is repeated', async () => {
  const data = { type: 'password_profile', name: 'Plain' };
  const path = `/v2/authentication-realms/${home.realm}/password-profiles`;
  const headers = { 'Idempotency-Key': crypto.randomUUID() };
  const body = { data, included: [{ type: oidcProfileInfo.type, issuer: ISSUER }] };
  for (let round = 0; round < 2; round += 1) {
    const answer = await service.post(path, token, body, headers);
    expect([answer.status, Object.keys((await answer.json()) as object)]).toEqual([201, ['data', 'links']]);
  }
});
