import { describe, expect, test } from 'bun:test';
import { LIMITS } from '../../../src/model/limits.ts';
import { oidcProfileInfo, passwordProfileInfo, user } from '../../../src/model/resources.ts';
import { systemClock } from '../../../src/ops/process/clock.ts';
import {
  comparableResponse,
  createFixture,
  errorsOf,
  type Fixture,
  ISSUER,
  insertRecord,
  startService,
  userMembers,
} from '../../support/service.ts';

interface Item {
  readonly id: string;
  readonly type: string;
}

interface Document {
  readonly data: object;
  readonly included?: readonly Item[];
  readonly links: Readonly<Record<string, string>>;
}

const BOTH = 'oidc_profile_infos,password_profile_infos';

const service = await startService();
const fixture = await createFixture(service.db);
const token = await service.token('users:read users:write profile-infos:read');
for (const subject of ['second', 'third']) await addOidcLink(fixture, subject);

const userPath = (of: Pick<Fixture, 'realm' | 'user'>) =>
  `/v2/authentication-realms/${of.realm}/user-authentication-info/${of.user}`;

function addOidcLink(of: Fixture, subject: string) {
  return insertRecord(service.db, oidcProfileInfo, [of.realm, of.user, systemClock.mintId()], {
    subject,
    issuer: ISSUER,
    oidc_profile_id: of.oidcProfile,
  });
}

async function addUser(): Promise<Fixture> {
  const added = { ...fixture, user: systemClock.mintId() };
  await insertRecord(service.db, user, [added.realm, added.user], userMembers);
  return added;
}

async function read(path: string): Promise<Document> {
  const answer = await service.get(path, token);
  expect(answer.status).toBe(200);
  return (await answer.json()) as Document;
}

const including = (of: Pick<Fixture, 'realm' | 'user'>, include = BOTH) =>
  read(`${userPath(of)}?include=${include}`);

/** The items of both lists of a user, in their order. */
async function listed(of: Fixture): Promise<readonly object[]> {
  const lists = [oidcProfileInfo, passwordProfileInfo].map(async ({ collection }) => {
    const { data } = await read(`${userPath(of)}/${collection}?page[limit]=100`);
    return data as object[];
  });
  return (await Promise.all(lists)).flat();
}

describe('a user with include', () => {
  test('a user with include has its links as their lists return them, and is otherwise unchanged byte for byte', async () => {
    const plain = await service.get(userPath(fixture), token);
    const answer = await service.get(`${userPath(fixture)}?include=${BOTH}`, token);
    const [text, plainText] = [await answer.text(), await plain.text()];
    const { included, ...rest } = JSON.parse(text) as Document;
    expect(included).toHaveLength(4);
    expect(included).toEqual((await listed(fixture)) as Item[]);
    expect(JSON.stringify(rest)).toBe(plainText);
    const data = plainText.slice(0, plainText.indexOf(',"links":{"self":'));
    expect(text.startsWith(`${data},"included":[`)).toBe(true);
    for (const name of ['etag', 'cache-control', 'content-type']) {
      expect([name, answer.headers.get(name)]).toEqual([name, plain.headers.get(name)]);
    }
  });

  test('a user with include has only links of the named kinds, in any order and spelling of the query', async () => {
    const types = async (query: string) => {
      const { included } = await read(`${userPath(fixture)}?${query}`);
      return included && [...new Set(included.map(({ type }) => type))];
    };
    const [oidc, password] = [oidcProfileInfo.type, passwordProfileInfo.type];
    expect(await types('include=oidc_profile_infos')).toEqual([oidc]);
    expect(await types('include=password_profile_infos')).toEqual([password]);
    expect(await types('include=password_profile_infos%2Coidc_profile_infos')).toEqual([oidc, password]);
    expect(await types('a=1&%69nclude=password_profile_infos,&b=2')).toEqual([password]);
    expect(await types('include=password_profile_infos,password_profile_infos')).toEqual([password]);
  });

  test('include ignores unknown values, and without a known one the answer is the plain user', async () => {
    const { included } = await including(fixture, 'addresses,password_profile_infos,');
    expect(included?.map(({ id }) => id)).toEqual([fixture.passwordLink]);
    const plain = await comparableResponse(await service.get(userPath(fixture), token));
    for (const query of ['include=', 'include=addresses', 'included=oidc_profile_infos', 'filter=x(']) {
      const answer = await service.get(`${userPath(fixture)}?${query}`, token);
      expect([query, await comparableResponse(answer)]).toEqual([query, plain]);
    }
  });

  test('a user is 400 if include is given twice or cannot be decoded', async () => {
    for (const query of ['include=oidc_profile_infos&include=password_profile_infos', 'include=%ff']) {
      const answer = await service.get(`${userPath(fixture)}?${query}`, token);
      expect([answer.status, (await errorsOf(answer))[0]?.source]).toEqual([400, { parameter: 'include' }]);
    }
  });

  test('a user with include is 403 without the scope of each named kind, with and without links', async () => {
    const oidcOnly = await service.token('users:read oidc-profile-infos:read');
    const empty = await addUser();
    for (const of of [fixture, empty]) {
      const answer = await service.get(`${userPath(of)}?include=${BOTH}`, oidcOnly);
      expect([answer.status, answer.headers.get('www-authenticate')]).toEqual([
        403,
        'Bearer realm="authrealm", error="insufficient_scope", scope="password-profile-infos:read"',
      ]);
      const own = await service.get(`${userPath(of)}?include=oidc_profile_infos`, oidcOnly);
      expect(own.status).toBe(200);
    }
    const linksOnly = await service.token('profile-infos:read');
    expect((await service.get(`${userPath(fixture)}?include=${BOTH}`, linksOnly)).status).toBe(403);
  });

  test('a user with include is 404 as without it: an absent user, a malformed ID, a realm outside the list', async () => {
    const limited = await service.token('users:read profile-infos:read', new Set([systemClock.mintId()]));
    const cases: [string, string][] = [
      [userPath({ ...fixture, user: fixture.oidcLink }), token],
      [userPath({ ...fixture, user: 'none' as never }), token],
      [userPath({ ...fixture, realm: systemClock.mintId() }), token],
      [userPath(fixture), limited],
    ];
    for (const [path, bearer] of cases) {
      const [plain, with_] = [
        await service.get(path, bearer),
        await service.get(`${path}?include=${BOTH}`, bearer),
      ];
      expect(with_.status).toBe(404);
      expect(await comparableResponse(with_)).toBe(await comparableResponse(plain));
    }
  });

  test('a user without links has an empty included', async () => {
    expect((await including(await addUser())).included).toEqual([]);
  });

  test('a user with include is never 304, because an import adds links without a new revision of the user', async () => {
    const here = await addUser();
    const path = `${userPath(here)}?include=${BOTH}`;
    const etag = (await service.get(path, token)).headers.get('etag') ?? '';
    await addOidcLink(here, 'imported');
    for (const condition of [etag, '*']) {
      const answer = await service.get(path, token, { 'If-None-Match': condition });
      expect(answer.status).toBe(200);
      expect(((await answer.json()) as Document).included).toHaveLength(1);
    }
    expect((await service.get(userPath(here), token, { 'If-None-Match': etag })).status).toBe(304);
  });

  test('a user with include has the ETag that If-Match needs to change the user', async () => {
    const here = await addUser();
    const etag = (await service.get(`${userPath(here)}?include=${BOTH}`, token)).headers.get('etag') ?? '';
    const data = { type: user.type, name: 'Janet' };
    const put = () => service.put(userPath(here), token, { data }, { 'If-Match': etag });
    expect([(await put()).status, (await put()).status]).toEqual([200, 412]);
  });

  test('a user with more than a hundred links of a kind has a URL for the rest of that kind alone', async () => {
    const here = await addUser();
    const most = LIMITS.includedRecordsMax;
    for (let index = 0; index < most; index += 1) await addOidcLink(here, `many-${index}`);
    const full = await including(here);
    expect([full.included?.length, Object.keys(full.links)]).toEqual([most, ['self']]);
    await addOidcLink(here, 'one more');
    const { included = [], links } = await including(here);
    expect([included.length, Object.keys(links)]).toEqual([most, ['self', 'oidc_profile_infos']]);
    const { data } = await read(links.oidc_profile_infos ?? '');
    expect([...included, ...(data as Item[])].map(({ id }) => id)).toEqual(
      (await allOidcLinks(here)).map(({ id }) => id),
    );
    expect(data).toHaveLength(1);
  });

  test('concurrent requests with include each get their own user and links', async () => {
    const users = await Promise.all(
      Array.from({ length: 20 }, async (_, index) => {
        const here = await addUser();
        if (index % 2 === 0) await addOidcLink(here, `of ${index}`);
        return here;
      }),
    );
    const found = await Promise.all([...users, ...users].map((here) => including(here)));
    expect(found.map(({ data, included }) => [(data as Item).id, included?.length])).toEqual(
      [...users, ...users].map((here, index) => [here.user, index % 2 === 0 ? 1 : 0]),
    );
  });
});

async function allOidcLinks(of: Fixture): Promise<readonly Item[]> {
  const path = `${userPath(of)}/${oidcProfileInfo.collection}?page[limit]=100&page[offset]=`;
  const pages = await Promise.all([0, 100].map((offset) => read(`${path}${offset}`)));
  return pages.flatMap(({ data }) => data as Item[]);
}
