import { describe, expect, setDefaultTimeout, test } from 'bun:test';
import { parseFilter } from '../../src/model/filter/filter.ts';
import type { Uuid } from '../../src/model/id.ts';
import { LIMITS } from '../../src/model/limits.ts';
import {
  oidcProfileInfo,
  passwordProfile,
  passwordProfileInfo,
  realm,
  user,
} from '../../src/model/resources.ts';
import { openRealmSearches } from '../../src/records/store/lists/realm_search.ts';
import { POSTGRES, postgresStatements } from '../../src/records/store/postgres/dialect.ts';
import { SQLITE, sqliteStatements } from '../../src/records/store/sqlite/dialect.ts';
import type { SingleStatement } from '../../src/sql/transaction_work.ts';
import { createFixture, insertRecord, realmMembers, startService, userMembers } from '../support/service.ts';

/** Searches of many realms, and of realms with many profiles or links. */

setDefaultTimeout(300_000);

interface SearchPage {
  readonly data: readonly { readonly id: string }[];
  readonly meta: { readonly realms: { readonly next: string | null; readonly cut: string | null } };
}

const USERS = 'user-authentication-info';
const SUBJECTS = 'user-authentication-oidc-profile-info';
const PASSWORDS = 'user-authentication-password-profile-info';

describe('search of many realms', async () => {
  const count = LIMITS.searchRealmsMax + 30;
  const name = 'Everywhere the same';
  const order: Uuid[] = [];

  const many = await startService();
  for (let made = 0; made < count; made += 1) order.push(many.clock.mintId());
  order.sort();
  // A write may wait for 4 seconds.
  for (let start = 0; start < count; start += 25) {
    await Promise.all(
      order.slice(start, start + 25).map(async (id) => {
        await insertRecord(many.db, realm, [id], realmMembers);
        await insertRecord(many.db, user, [id, id], { ...userMembers, name });
      }),
    );
  }
  const all = await many.token('users:read');

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
    const first = await search({ filter });
    expect([first.data, first.meta.realms.next]).toEqual([[], order[LIMITS.searchRealmsMax - 1] as string]);
    const rest = await search({ filter, page: { after_realm: first.meta.realms.next } });
    expect([rest.data.map(({ id }) => id), rest.meta.realms.next]).toEqual([[order.at(-1) as string], null]);
  });

  test('searches without an index beyond their queue are 503, and a lookup is answered before them', async () => {
    const [first] = order;
    const ended: number[] = [];
    const isFull = Promise.withResolvers<void>();
    const body = { filter: `eq(name,"${name}")`, page: { limit: 100 } };
    const searches = Array.from({ length: LIMITS.listsWaitingMax * 3 }, async () => {
      const answer = await many.withoutRetry.post(`/v2/${USERS}/search`, all, body);
      await answer.arrayBuffer();
      ended.push(answer.status);
      if (answer.status === 503) isFull.resolve();
    });
    await Promise.race([isFull.promise, Promise.all(searches)]);
    const path = `/v2/authentication-realms/${first}/${USERS}/${first}`;
    const lookup = await many.withoutRetry.get(path, all);
    expect([lookup.status, ended.filter((status) => status === 200).length < LIMITS.listsWaitingMax]).toEqual(
      [200, true],
    );
    await Promise.all(searches);
    expect([...new Set(ended)].sort()).toEqual([200, 503]);
  });

  test('a search by a username that more realms have than fit into one turn finds each once', async () => {
    const username = 'The same everywhere';
    for (let start = 0; start < count; start += 25) {
      await Promise.all(
        order.slice(start, start + 25).map(async (id) => {
          const profile = {
            name: 'Passwords',
            username_format: 'any',
            enable_one_time_password_token: false,
          };
          await insertRecord(many.db, passwordProfile, [id, id], profile);
          await insertRecord(many.db, passwordProfileInfo, [id, id, id], {
            username,
            password_profile_id: id,
          });
        }),
      );
    }
    expect(count).toBeGreaterThan(LIMITS.listRecordsInlineMax);
    const by = await many.token('profile-infos:read');
    const found: string[] = [];
    let after: string | null = null;
    do {
      const page: object = { limit: 100, ...(after === null ? {} : { after_realm: after }) };
      const answer = await many.post(`/v2/${PASSWORDS}/search`, by, {
        filter: `eq(username,"${username}")`,
        page,
      });
      const { data, meta } = (await answer.json()) as SearchPage;
      found.push(...data.map(({ id }) => id));
      after = meta.realms.next;
    } while (after !== null);
    expect(found).toEqual(order);
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
  const profiles = Array.from({ length: 101 }, () => clock.mintId()).sort();
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

test('a search of all realms by a username reads an index without the realm', async () => {
  const { database, db, clock } = await startService();
  const { realm, user: of, passwordProfile: profile } = await createFixture(db);
  for (let link = 0; link < 500; link += 1) {
    const members = { username: `several ${link}`, password_profile_id: profile };
    await insertRecord(db, passwordProfileInfo, [realm, of, clock.mintId()], members);
  }
  await database.tamper('analyze');
  const isSqlite = database.address.engine === 'sqlite';
  const [explain, index] = isSqlite
    ? ['explain query plan', 'password_profile_info_username_crc']
    : ['explain', 'password_profile_info_username_hash'];
  const text = `${explain} ${searchText('eq(username,several 7)', isSqlite)}`;
  const { ask, close } = database.connect();
  // Citus shows one shard by default, which may have no rows.
  if (!isSqlite) await ask('set citus.explain_all_tasks = on');
  expect(JSON.stringify(await ask(text))).toContain(index);
  await close();
});

/** The statement that a search of all realms sends, with its values. */
function searchText(text: string, isSqlite: boolean): string {
  const { byHash } = isSqlite
    ? openRealmSearches(sqliteStatements, SQLITE)
    : openRealmSearches(postgresStatements, POSTGRES);
  const filter = parseFilter(text, passwordProfileInfo.searchAllRealms?.filterables ?? {});
  const work = byHash(passwordProfileInfo, { filter, only: undefined, after: undefined, limit: 9 });
  const sent = work?.next().value as SingleStatement;
  return sent.values.reduce<string>(
    (part, value) => part.replace('?', () => (typeof value === 'number' ? `${value}` : `'${value}'`)),
    sent.text,
  );
}

test('a search by a subject finds it at the issuer of a realm that is after a hundred others', async () => {
  const { db, clock, token, post, stop } = await startService();
  const { realm, user: of, oidcProfile: profile } = await createFixture(db);
  const link = async (subject: string, issuer: string) => {
    const id = clock.mintId();
    await insertRecord(db, oidcProfileInfo, [realm, of, id], { subject, issuer, oidc_profile_id: profile });
    return id;
  };
  for (let issuer = 100; issuer < 250; issuer += 1)
    await link(`of ${issuer}`, `https://login${issuer}.example.com/`);
  const made = await link('behind every issuer', 'https://z.example.com/');
  const body = { filter: 'eq(subject,"behind every issuer")' };
  const answer = await post(`/v2/${SUBJECTS}/search`, await token('profile-infos:read'), body);
  expect(((await answer.json()) as SearchPage).data.map(({ id }) => id)).toEqual([made]);
  await stop();
});
