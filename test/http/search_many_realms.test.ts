import { afterAll, beforeAll, describe, expect, setDefaultTimeout, test } from 'bun:test';
import type { Store } from '../../src/directory/store.ts';
import type { Uuid } from '../../src/domain/id.ts';
import { LIMITS } from '../../src/domain/limits.ts';
import {
  oidcProfileInfo,
  passwordProfile,
  passwordProfileInfo,
  realm,
  user,
} from '../../src/domain/resources.ts';
import { systemClock } from '../../src/platform/clock.ts';
import type { Engine } from '../../src/store/open.ts';
import { nextValueText } from '../../src/store/records/records.ts';
import {
  createFixture,
  insertRecord,
  realmMembers,
  type Service,
  startService,
  userMembers,
} from '../support/service.ts';

/** Searches of many realms, and of realms with many profiles or links. */

setDefaultTimeout(300_000);

interface SearchPage {
  readonly data: readonly { readonly id: string }[];
  readonly meta: { readonly realms: { readonly searched: number; readonly next: string | null } };
}

const USERS = 'user-authentication-info';
const SUBJECTS = 'user-authentication-oidc-profile-info';
const PASSWORDS = 'user-authentication-password-profile-info';

describe('search of many realms', () => {
  let many: Service;
  let all: string;
  const count = LIMITS.searchRealmsMax + 30;
  const name = 'Everywhere the same';
  const order: Uuid[] = [];

  beforeAll(async () => {
    many = await startService({}, (engine) => ({
      ...engine,
      records: { ...engine.records, get: blocking(engine) },
    }));
    for (let made = 0; made < count; made += 1) order.push(many.clock.mintId());
    order.sort();
    for (let start = 0; start < count; start += 100) {
      await Promise.all(
        order.slice(start, start + 100).map(async (id) => {
          await insertRecord(many.db, realm, [id], realmMembers);
          await insertRecord(many.db, user, [id, id], { ...userMembers, name });
        }),
      );
    }
    all = await many.token('users:read');
  }, 300_000);
  afterAll(() => many.stop());

  const blockedId = systemClock.mintId();
  const release = Promise.withResolvers<void>();
  let blockedCount = 0;

  /** Blocks reads of one record until `release` is resolved. */
  function blocking({ records }: Engine): Store['get'] {
    return async (resource, key) => {
      if (key.at(-1) === blockedId) {
        blockedCount += 1;
        await release.promise;
      }
      return records.get(resource, key);
    };
  }

  const search = async (body: object) => {
    const answer = await many.post(`/v2/${USERS}/search`, all, body);
    if (answer.status !== 200) throw new Error(`${answer.status} ${await answer.text()}`);
    return (await answer.json()) as SearchPage;
  };

  test('pages of a search along after_realm search every realm once', async () => {
    const found: string[] = [];
    const pages: number[] = [];
    let after: string | undefined;
    do {
      const page: object = { limit: 100, ...(after === undefined ? {} : { after_realm: after }) };
      const { data, meta } = await search({ filter: `eq(name,"${name}")`, page });
      found.push(...data.map(({ id }) => id));
      pages.push(data.length);
      after = meta.realms.next ?? undefined;
    } while (after !== undefined);
    expect(found).toEqual(order);
    expect(Math.max(...pages)).toBe(100);
  });

  test('one search covers at most searchRealmsMax realms, and names the realm to continue after', async () => {
    const filter = `eq(id,${order.at(-1)})`;
    let searchedRealms = 0;
    let after: string | undefined;
    let data: SearchPage['data'] = [];
    do {
      const found: SearchPage = await search({
        filter,
        page: after === undefined ? {} : { after_realm: after },
      });
      expect(found.meta.realms.searched).toBeLessThanOrEqual(LIMITS.searchRealmsMax);
      searchedRealms += found.meta.realms.searched;
      after = found.meta.realms.next ?? undefined;
      data = found.data;
    } while (after !== undefined);
    expect([searchedRealms, data.map(({ id }) => id)]).toEqual([count, [order.at(-1) as string]]);
  });

  test('a search beyond searchesAtOnceMax concurrent ones is 503, and lookups are not delayed', async () => {
    const filter = `eq(id,${blockedId})`;
    const searches = Array.from({ length: LIMITS.searchesAtOnceMax }, () => search({ filter }));
    while (blockedCount < LIMITS.searchesAtOnceMax) await Bun.sleep(1);
    try {
      const refused = await many.withoutRetry.post(`/v2/${USERS}/search`, all, { filter });
      expect([refused.status, refused.headers.get('retry-after')]).toEqual([503, '1']);
      const lookupPath = `/v2/authentication-realms/${order[0]}/${USERS}/${order[0]}`;
      expect((await many.withoutRetry.get(lookupPath, all)).status).toBe(200);
    } finally {
      release.resolve();
    }
    for (const { meta } of await Promise.all(searches)) expect(meta.realms.searched).toBeGreaterThan(0);
    expect((await search({ filter })).data).toEqual([]);
  });
});

test('search finds a username in every profile of a realm with many profiles', async () => {
  const { db, clock, token, post, stop } = await startService();
  const { realm, user: of } = await createFixture(db);
  const username = 'Several Profiles';
  const link = async (profile: Uuid, name: string) => {
    const id = clock.mintId();
    await insertRecord(db, passwordProfileInfo, [realm, of, id], {
      username: name,
      password_profile_id: profile,
    });
    return id;
  };
  const profiles = Array.from({ length: LIMITS.searchIssuersMax + 1 }, () => clock.mintId()).sort();
  for (const profile of profiles) {
    const members = { name: 'Passwords', username_format: 'any', enable_one_time_password_token: false };
    await insertRecord(db, passwordProfile, [realm, profile], members);
    await link(profile, `user of ${profile}`);
  }
  const made = await Promise.all(profiles.slice(-2).map((profile) => link(profile, username)));
  const body = { filter: `eq(username,"${username}")` };
  const answer = await post(`/v2/${PASSWORDS}/search`, await token('profile-infos:read'), body);
  const { data } = (await answer.json()) as SearchPage;
  expect(data.map(({ id }) => id).sort()).toEqual(made.sort());
  await stop();
});

test('search by subject covers the first searchIssuersMax issuers of a realm; later ones need the issuer', async () => {
  const { db, clock, token, post, stop } = await startService();
  const { realm, user: of, oidcProfile } = await createFixture(db);
  const subject = 'several issuers';
  const numbers = Array.from({ length: LIMITS.searchIssuersMax + 1 }, (_, at) => at);
  // Before the issuer of the fixture.
  const issuers = numbers.map((at) => `https://a-${String(at).padStart(3, '0')}.example/`);
  const made: Uuid[] = [];
  for (const [at, issuer] of issuers.entries()) {
    const id = clock.mintId();
    made.push(id);
    const isLast = at >= LIMITS.searchIssuersMax - 1;
    const members = { subject: isLast ? subject : `another ${at}`, issuer, oidc_profile_id: oidcProfile };
    await insertRecord(db, oidcProfileInfo, [realm, of, id], members);
  }
  const by = await token('profile-infos:read');
  const search = async (filter: string) => {
    const answer = await post(`/v2/${SUBJECTS}/search`, by, { filter });
    return ((await answer.json()) as SearchPage).data.map(({ id }) => id);
  };
  expect(await search(`eq(subject,"${subject}")`)).toEqual(made.slice(-2, -1));
  expect(await search(`eq(issuer,"${issuers.at(-1)}"):eq(subject,"${subject}")`)).toEqual(made.slice(-1));
  await stop();
});

test('the distinct issuers of a realm are read by an index', async () => {
  const { database, db, stop } = await startService();
  const fixture = await createFixture(db);
  for (let link = 0; link < 500; link += 1) {
    const members = {
      subject: `s-${link}`,
      issuer: `https://${link % 5}.example`,
      oidc_profile_id: fixture.oidcProfile,
    };
    await insertRecord(
      db,
      oidcProfileInfo,
      [fixture.realm, fixture.user, crypto.randomUUID() as Uuid],
      members,
    );
  }
  const issuers = await db.engine.records.distinctValues(oidcProfileInfo, fixture.realm, 'issuer', 4);
  expect(issuers).toEqual([0, 1, 2, 3].map((each) => `https://${each}.example`));
  const text = nextValueText(oidcProfileInfo, 'issuer').replace('?', `'${fixture.realm}'`).replace('?', "''");
  await database.tamper('analyze');
  const isSqlite = database.address.engine === 'sqlite';
  const plan = await database.query<Record<string, unknown>>(
    `${isSqlite ? 'explain query plan' : 'explain'} ${text}`,
  );
  expect(JSON.stringify(plan)).toContain('oidc_profile_info_identity');
  await stop();
});
