import { describe, expect, test } from 'bun:test';
import { OVERLOAD_CAUSES } from '../../src/model/fault.ts';
import type { Uuid } from '../../src/model/id.ts';
import { LIMITS } from '../../src/model/limits.ts';
import { realm, user } from '../../src/model/resources.ts';
import type { Write } from '../../src/model/store.ts';
import { systemClock } from '../../src/ops/process/clock.ts';
import { removeRecord } from '../records/contract/store_fixtures.ts';
import { testInProcess } from '../support/program_service.ts';
import {
  buildRecord,
  createFixture,
  errorsOf,
  type Fixture,
  insertOf,
  insertRecord,
  oidcPath,
  PASSWORD_HASH,
  realmMembers,
  type Service,
  startService,
  userMembers,
} from '../support/service.ts';
import { startReader } from '../support/started_reader.ts';

interface Body {
  readonly data: readonly (Record<string, unknown> & { readonly id: Uuid })[];
  readonly meta: { readonly results: { readonly total: number } };
  readonly links: Readonly<Record<string, string | null>>;
}

const READ = 'realms:read profiles:read users:read profile-infos:read';

const service = await startService();
const fixture = await createFixture(service.db);
const token = await service.token(READ);

const REALMS = '/v2/authentication-realms';
const realmPath = ({ realm: id }: Fixture) => `${REALMS}/${id}`;
const userPath = (at: Fixture) => `${realmPath(at)}/user-authentication-info/${at.user}`;

/** Every collection, with its path and the ID of its record. */
const COLLECTIONS: readonly (readonly [string, (at: Fixture) => string, (at: Fixture) => Uuid])[] = [
  ['authentication-realms', () => REALMS, (at) => at.realm],
  ['oidc-profiles', (at) => `${realmPath(at)}/oidc-profiles`, (at) => at.oidcProfile],
  ['password-profiles', (at) => `${realmPath(at)}/password-profiles`, (at) => at.passwordProfile],
  ['user-authentication-info', (at) => `${realmPath(at)}/user-authentication-info`, (at) => at.user],
  [
    'user-authentication-oidc-profile-info',
    (at) => `${userPath(at)}/user-authentication-oidc-profile-info`,
    (at) => at.oidcLink,
  ],
  [
    'user-authentication-password-profile-info',
    (at) => `${userPath(at)}/user-authentication-password-profile-info`,
    (at) => at.passwordLink,
  ],
];

async function bodyOf(path: string, as = token, at = service): Promise<Body> {
  const answer = await at.get(path, as);
  if (answer.status !== 200) throw new Error(`${answer.status}: ${await answer.text()}`);
  return (await answer.json()) as Body;
}

const idsOf = ({ data }: Body) => data.map(({ id }) => id);

describe('every collection', () => {
  for (const [name, pathOf, idOf] of COLLECTIONS) {
    test(`in the list of ${name} an item is the record as GET returns it, with its links inside, each with /v2`, async () => {
      const path = pathOf(fixture);
      const answer = await service.get(path, token);
      expect([answer.headers.get('cache-control'), answer.headers.get('etag')]).toEqual([
        'private, no-cache',
        null,
      ]);
      const text = await answer.text();
      expect(text).not.toContain(PASSWORD_HASH);
      const { data, meta, links } = JSON.parse(text) as Body;
      expect(meta.results).toEqual({ total: 1 });
      expect(links.current).toBe(`${service.url}${path}?page%5Blimit%5D=25&page%5Boffset%5D=0`);
      const single = await service.get(`${path}/${idOf(fixture)}`, token);
      const { data: record, links: own } = (await single.json()) as { data: object; links: { self: string } };
      expect(data).toEqual([
        { ...record, links: { ...own, self: `${service.url}${path}/${idOf(fixture)}` } } as never,
      ]);
    });
  }

  for (const [name, pathOf, idOf] of COLLECTIONS.filter(([each]) => each !== 'user-authentication-info')) {
    test(`the list of ${name} ignores filter, sort and include`, async () => {
      const ignored = await bodyOf(`${pathOf(fixture)}?filter=%ff)((&sort=nothing&include=x&filter=twice`);
      expect(idsOf(ignored)).toEqual([idOf(fixture)]);
      expect(ignored.links.current).not.toContain('filter');
    });
  }

  test('the further links of an OIDC profile are in its list item', async () => {
    const path = `${realmPath(fixture)}/oidc-profiles`;
    const [item] = (await bodyOf(path)).data;
    const store = await service.db.engine.access.storeId();
    const signIn = `${service.url}/oidc-idp`;
    const at = `stores/${store}/authentication-realms/${fixture.realm}`;
    expect(item?.links).toEqual({
      self: `${service.url}${path}/${fixture.oidcProfile}`,
      'authorization-endpoint': `${signIn}/login/${at}?elasticpath_commerce_cloud_profile_id=${fixture.oidcProfile}`,
      'callback-endpoint': `${signIn}/callback/${at}/oidc-profiles/${fixture.oidcProfile}`,
      'client-discovery-url': `${signIn}/${at}/.well-known/openid-configuration`,
    });
  });

  test('a page of 100 users has every user', async () => {
    const id = systemClock.mintId();
    await insertRecord(service.db, realm, [id], realmMembers);
    const ids = Array.from({ length: 100 }, () => systemClock.mintId());
    for (const each of ids) await insertRecord(service.db, user, [id, each], userMembers);
    const page = await bodyOf(`${REALMS}/${id}/user-authentication-info?page[limit]=100&sort=id`);
    expect(idsOf(page)).toEqual(ids);
  });
});

describe('users', () => {
  const path = () => `${realmPath(fixture)}/user-authentication-info`;

  test('the list of users is filtered and sorted as requested', async () => {
    const other = systemClock.mintId();
    await insertRecord(service.db, user, [fixture.realm, other], {
      ...userMembers,
      email: 'Max@Example.com',
      given_name: null,
    });
    const rows = [
      ['filter=eq(email,JANE@example.com)', [fixture.user]],
      ['filter=like(email,*@example.com)', [other, fixture.user]],
      ['filter=like(email,*@example.com)&sort=created_at', [fixture.user, other]],
      ["filter=is_null('given_name')", [other]],
      [
        'filter=(eq(email,max@example.com)|eq(given_name,jane)):ilike(name,J*)&sort=-id',
        [other, fixture.user],
      ],
      [`filter=eq(id,${fixture.user})`, [fixture.user]],
      ['filter=gt(created_at,2030-01-01)', []],
    ] as const;
    for (const [query, ids] of rows) expect(idsOf(await bodyOf(`${path()}?${query}`))).toEqual([...ids]);
    await removeRecord(service.db.engine.records, {
      resource: user,
      key: [fixture.realm, other],
      origin: { actor: 'test', requestId: undefined, address: undefined, at: systemClock.now() },
      mintRevision: systemClock.mintRevision,
    });
  });

  test('a list of users of an absent realm is 404 for every shape of filter', async () => {
    const absent = path().replace(fixture.realm, systemClock.mintId());
    for (const filter of ['eq(email,x)', 'ilike(email,*x*)', 'ge(created_at,2026-01-01)', 'match(text,x)']) {
      expect((await service.get(`${absent}?filter=${filter}`, token)).status).toBe(404);
    }
  });

  test('the list of users is 400 for an invalid parameter, and names it', async () => {
    const rows = [
      ['filter=eq(email', 'filter'],
      ['filter=eq(password,x)', 'filter'],
      ['filter=gt(name,x)', 'filter'],
      ['filter=', 'filter'],
      ['filter=a&filter=b', 'filter'],
      ['sort=name', 'sort'],
      ['page[limit]=1000', 'page[limit]'],
      ['page[offset]=-1', 'page[offset]'],
      ['page[after]=xyz', 'page[after]'],
    ] as const;
    for (const [query, parameter] of rows) {
      const answer = await service.get(`${path()}?${query}`, token);
      expect(answer.status).toBe(400);
      const [error] = await errorsOf(answer);
      expect(error).toMatchObject({ status: '400', title: 'Bad Request', source: { parameter } });
    }
  });
});

test('a client with a list of realms sees only those in lists and totals', async () => {
  const [one, two] = [await createFixture(service.db), await createFixture(service.db)];
  const limited = await service.token(READ, new Set([one.realm, two.realm, systemClock.mintId()]));
  const page = await bodyOf(`${REALMS}?page[limit]=1`, limited);
  expect([idsOf(page), page.meta.results.total]).toEqual([[two.realm], 2]);
  expect(idsOf(await bodyOf(page.links.next as string, limited))).toEqual([one.realm]);
  const firstPage = await bodyOf(`${REALMS}?page[limit]=1&page[after]=`, limited);
  expect(idsOf(await bodyOf(firstPage.links.next as string, limited))).toEqual([one.realm]);
  const noRealms = await bodyOf(REALMS, await service.token(READ, new Set([systemClock.mintId()])));
  expect([noRealms.data, noRealms.meta.results.total]).toEqual([[], 0]);
  expect((await bodyOf(REALMS)).meta.results.total).toBeGreaterThan(2);
});

/** Creates a realm with more users than are listed in the serving process. */
async function createLargeRealm(at: Service): Promise<string> {
  const id = systemClock.mintId();
  const users = Array.from({ length: LIMITS.listRecordsInlineMax + 500 }, () => systemClock.mintId());
  const writes: Write[] = [
    insertOf(realm, [id], buildRecord([id], realmMembers)),
    ...users.map((each): Write => {
      const key = [id, each] as const;
      return insertOf(user, key, buildRecord(key, userMembers));
    }),
  ];
  expect(await at.db.engine.records.commit(writes)).toEqual({ kind: 'written' });
  return `${REALMS}/${id}/user-authentication-info`;
}

function loggedRejections({ log }: Service): number {
  return log.reduce((sum, each) => sum + (each.event === 'overloaded' ? each.count : 0), 0);
}

describe('lists that are read in worker processes', () => {
  testInProcess(
    'large lists beyond the queue are 503 at once, the others succeed, and lookups are not delayed',
    async () => {
      const fresh = await startService();
      const path = await createLargeRealm(fresh);
      const at = await createFixture(fresh.db);
      const as = await fresh.token(READ);
      const early = await startReader(fresh, as);
      const capacity = LIMITS.readersMax + LIMITS.listsWaitingMax;
      const pending = Array.from({ length: 3 * capacity }, (_, place) =>
        fresh.withoutRetry.get(`${path}?filter=ilike(email,*e*):lt(created_at,${3000 + place}-01-01)`, as),
      );
      expect((await fresh.withoutRetry.get(oidcPath(at), as)).status).toBe(200);
      const answers = await Promise.all(pending);
      const refused = answers.filter(({ status }) => status === 503);
      const good = answers.filter(({ status }) => status === 200);
      expect(good.length + refused.length).toBe(3 * capacity);
      const details: (string | undefined)[] = [];
      for (const answer of refused) {
        expect(answer.headers.get('retry-after')).toBe('1');
        details.push((await errorsOf(answer))[0]?.detail);
      }
      const { QUEUE_FULL, DEADLINE_EXCEEDED } = OVERLOAD_CAUSES;
      expect(details.filter((each) => each !== QUEUE_FULL && each !== DEADLINE_EXCEEDED)).toEqual([]);
      expect(details).toContain(QUEUE_FULL);
      // On a busy machine some of those that waited are not read in time.
      const late = details.filter((each) => each === DEADLINE_EXCEEDED).length;
      expect(good.length).toBeGreaterThan(0);
      expect(good.length + late).toBeGreaterThanOrEqual(LIMITS.listsWaitingMax);
      for (const answer of good) expect(((await answer.json()) as Body).meta.results.total).toBe(1_500);
      // A list that an index bounds does not wait in the queue.
      expect((await fresh.get(`${path}?page[after]=`, as)).status).toBe(200);
      // Rejections are logged as sums, one line a second.
      const rejections = early + refused.length;
      while (loggedRejections(fresh) < rejections) await Bun.sleep(20);
      expect(loggedRejections(fresh)).toBe(rejections);
      expect(fresh.log.filter(({ event }) => event === 'fault')).toEqual([]);
    },
  );

  test('a large list contains records that were committed before the request', async () => {
    const path = await createLargeRealm(service);
    const id = path.split('/')[3] as Uuid;
    for (let round = 0; round < 20; round += 1) {
      const late = systemClock.mintId();
      const name = `Late ${round} of all`;
      await insertRecord(service.db, user, [id, late], { ...userMembers, name });
      const page = await bodyOf(`${path}?filter=ilike(name,*${round}+of*)`);
      expect(idsOf(page)).toContain(late);
    }
  });

  testInProcess('a database in memory, which has no workers, answers large lists as well', async () => {
    const inMemory = await startService({ database: 'sqlite::memory:' });
    const path = await createLargeRealm(inMemory);
    const as = await inMemory.token(READ);
    const deep = await bodyOf(
      `${path}?page[offset]=1450&page[limit]=100&filter=ilike(email,*e*)`,
      as,
      inMemory,
    );
    expect([deep.data.length, deep.meta.results.total]).toEqual([50, 1_500]);
  });
});
