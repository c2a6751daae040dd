import { describe, expect, setDefaultTimeout, test } from 'bun:test';
import { NIL_UUID } from '../../src/model/id.ts';
import { user } from '../../src/model/resources.ts';
import { createFixture, insertRecord, startService, userMembers } from '../support/service.ts';

/** Searches of all realms by the beginnings of words, and of all records. */

setDefaultTimeout(300_000);

interface SearchPage {
  readonly data: readonly { readonly id: string; readonly links: { readonly self: string } }[];
  readonly meta: {
    readonly realms: { readonly next: string | null; readonly cut: string | null };
    readonly results?: { readonly total: number };
  };
}

const SCOPES = 'users:read profile-infos:read';

const service = await startService();
const one = await createFixture(service.db, { username: 'Everywhere' });
const two = await createFixture(service.db, { username: 'EVERYWHERE' });
const token = await service.token(SCOPES);

async function search(collection: string, body: object, by = token): Promise<SearchPage> {
  const answer = await service.post(`/v2/${collection}/search`, by, body);
  if (answer.status !== 200) throw new Error(`${answer.status} ${await answer.text()}`);
  return (await answer.json()) as SearchPage;
}

const USERS = 'user-authentication-info';
const PASSWORDS = 'user-authentication-password-profile-info';
const ids = ({ data }: SearchPage) => data.map(({ id }) => id).sort();

describe('search by the beginnings of words', () => {
  const match = (text: string) => ({ filter: `match(text,"${text}")` });

  test('search finds a user by a word of any of its texts, and a username by its username', async () => {
    const made = service.clock.mintId();
    const members = {
      ...userMembers,
      name: 'Dr. Quux',
      email: 'j.doe@corge.example',
      family_name: 'Grault-Doe',
    };
    await insertRecord(service.db, user, [two.realm, made], members);
    for (const text of ['quu', 'CORGE', 'grault', 'doe gra', 'j.doe@cor', 'd quux']) {
      expect([text, ids(await search(USERS, match(text)))]).toEqual([text, [made]]);
    }
    const [found] = (await search(USERS, match('quux'))).data;
    expect(found?.links.self).toContain(`/authentication-realms/${two.realm}/`);
    expect(ids(await search(PASSWORDS, match('everyw')))).toEqual(
      [one.passwordLink, two.passwordLink].sort(),
    );
    const path = `/v2/authentication-realms/${two.realm}/${USERS}`;
    const listed = await service.get(`${path}?filter=match(text,quux)`, token);
    expect(ids((await listed.json()) as SearchPage)).toEqual([made]);
  });

  test('a limited client finds only in its realms, and each kind of record needs its scope', async () => {
    const limited = await service.token(SCOPES, new Set([one.realm]));
    expect(ids(await search(PASSWORDS, match('everywhere'), limited))).toEqual([one.passwordLink]);
    expect(ids(await search(PASSWORDS, { ...match('everywhere'), realms: [two.realm] }, limited))).toEqual(
      [],
    );
    expect(
      ids(await search(PASSWORDS, { ...match('everywhere'), realms: [two.realm.toUpperCase()] })),
    ).toEqual([two.passwordLink]);
    const users = await service.token('users:read');
    expect((await service.post(`/v2/${PASSWORDS}/search`, users, match('everywhere'))).status).toBe(403);
    const links = await service.token('profile-infos:read');
    expect((await service.post(`/v2/${USERS}/search`, links, match('jane'))).status).toBe(403);
  });

  test.each(['李', '김', 'さ'])('a family name of one character is found in all realms: %s', async (name) => {
    const made = service.clock.mintId();
    await insertRecord(service.db, user, [one.realm, made], { ...userMembers, family_name: name });
    expect(ids(await search(USERS, match(name)))).toEqual([made]);
    expect(ids(await search(USERS, match(`${name} qqq`)))).toEqual([]);
  });

  test('a deleted user is not found at the next search', async () => {
    const made = service.clock.mintId();
    await insertRecord(service.db, user, [one.realm, made], { ...userMembers, family_name: 'Waldo' });
    expect(ids(await search(USERS, match('waldo')))).toEqual([made]);
    const writer = await service.token('users:write');
    const path = `/v2/authentication-realms/${one.realm}/${USERS}/${made}`;
    expect((await service.del(path, writer)).status).toBe(204);
    expect(ids(await search(USERS, match('waldo')))).toEqual([]);
  });

  test('match of * lists all users in pages, with their number', async () => {
    const realms = [one.realm, two.realm].sort();
    const seen: string[] = [];
    let page: object = { limit: 2, total: true };
    let total: number | undefined;
    for (let pages = 0; pages < 50; pages += 1) {
      const found = await search(USERS, { filter: 'match(text,*)', realms, page });
      total ??= found.meta.results?.total;
      seen.push(...found.data.map(({ id }) => id));
      const { next, cut } = found.meta.realms;
      if (cut ?? next) page = { limit: 2, after_realm: cut ?? next, ...(cut && { after_id: seen.at(-1) }) };
      else break;
    }
    expect([seen.length, new Set(seen).size]).toEqual([total as number, total as number]);
    expect(total).toBeGreaterThan(2);
    const limited = await service.token(SCOPES, new Set([two.realm]));
    const own = await search(USERS, { filter: 'match(text,*)', page: { total: true } }, limited);
    expect(own.data.every(({ links }) => links.self.includes(two.realm))).toBe(true);
    expect(own.meta.results?.total).toBe(own.data.length);
    const names = await search(PASSWORDS, { filter: 'match(text,*)', page: { total: true } });
    expect([names.data.length, names.meta.results?.total]).toEqual([2, 2]);
    const elsewhere = { page: { after_realm: one.realm, after_id: NIL_UUID } };
    expect(
      (await search(USERS, { filter: 'eq(email,jane@example.com)', ...elsewhere }, limited)).data.length,
    ).toBe(two.realm > one.realm ? 1 : 0);
  });
});
