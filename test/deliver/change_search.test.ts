import { describe, expect, test } from 'bun:test';
import { createFixture, errorsOf, startService } from '../support/service.ts';

/** The search of changes: over realms, by conditions, in pages, with values before and after. */

const service = await startService();
const [here, there] = [await createFixture(service.db), await createFixture(service.db)];
const writer = await service.client('users:write profile-infos:write');
const write = await service.grant(writer);
const userPath = ({ realm, user }: typeof here) =>
  `/v2/authentication-realms/${realm}/user-authentication-info/${user}`;

/** Changes of both realms in turn. */
for (const [index, shop] of [here, there, here, there].entries()) {
  service.clock.advance(1_000);
  const data = { type: 'user_authentication_info', name: `Name ${index}` };
  expect((await service.put(userPath(shop), write, { data })).status).toBe(200);
}
const token = await service.token('changes:read');

interface Found {
  readonly type: string;
  readonly time: string;
  readonly sequence: string;
  readonly data: {
    readonly realm_id: string;
    readonly record_id: string;
    readonly client_id: string;
    readonly detail?: unknown;
    readonly personal?: unknown;
    readonly record?: unknown;
  };
}

interface Page {
  readonly data: readonly Found[];
  readonly meta: { readonly searched_to: string | null };
  readonly links: { readonly next: string | null };
}

async function search(query: Readonly<Record<string, string>> = {}, by = token): Promise<Page> {
  const answer = await service.get(`/v2/changes/search?${new URLSearchParams(query)}`, by);
  expect(answer.status).toBe(200);
  return (await answer.json()) as Page;
}

async function allPages(query: Readonly<Record<string, string>>): Promise<readonly Page[]> {
  const pages = [await search(query)];
  for (let next = pages[0]?.links.next; next; next = pages.at(-1)?.links.next)
    pages.push((await (await service.get(next, token)).json()) as Page);
  return pages;
}

const placeOf = ({ data, sequence }: Found) => `${data.realm_id} ${Number(sequence)}`;
const places = ({ data }: Page) => data.map(placeOf);

test('a search returns the changes of all realms, newest first, and says that all of them were searched', async () => {
  const { data, meta, links } = await search();
  expect(data.map(({ time }) => time)).toEqual(
    data
      .map(({ time }) => time)
      .toSorted()
      .reverse(),
  );
  expect(data.slice(0, 4).map(({ data }) => data.realm_id)).toEqual([
    there.realm,
    here.realm,
    there.realm,
    here.realm,
  ]);
  expect(data).toHaveLength(16);
  expect(meta).toEqual({ searched_to: null });
  expect(links.next).toBeNull();
});

test.each([1, 2, 3, 5])(
  'a search in pages of %d returns each change once, in the order of one page',
  async (limit) => {
    const pages = await allPages({ limit: String(limit) });
    expect(pages.flatMap(places)).toEqual(places(await search()));
    for (const { data, links, meta } of pages) {
      expect(data.length).toBeLessThanOrEqual(limit);
      expect(meta.searched_to === null).toBe(links.next === null);
    }
  },
);

test('a search in pages keeps its place when realms change between two pages', async () => {
  const { realm } = await createFixture(service.db);
  const first = await search({ limit: '3', realm });
  const fresh = await createFixture(service.db, { realm });
  const rest = (await (await service.get(first.links.next ?? '', token)).json()) as Page;
  const all = [...places(first), ...places(rest)];
  expect(all).toEqual([...new Set(all)]);
  expect(rest.data.some(({ data }) => data.record_id === fresh.user)).toBe(false);
});

describe('the conditions of a search', () => {
  const every = async (query: Readonly<Record<string, string>>, holds: (found: Found) => boolean) => {
    const { data } = await search(query);
    expect(data.length).toBeGreaterThan(0);
    const all = await search();
    expect(data.map(placeOf)).toEqual(all.data.filter(holds).map(placeOf));
  };

  test('a search finds the changes of a realm, a kind, an event, an actor and a record', async () => {
    await every({ realm: there.realm }, ({ data }) => data.realm_id === there.realm);
    await every({ kind: 'oidc-profile' }, ({ type }) => type === 'oidc-profile.created');
    await every({ event: 'updated' }, ({ type }) => type.endsWith('.updated'));
    await every({ actor: writer.clientId }, ({ data }) => data.client_id === writer.clientId);
    await every({ record: here.oidcLink }, ({ data }) => data.record_id === here.oidcLink);
    await every(
      { event: 'created', realm: here.realm, kind: 'oidc-profile' },
      ({ type, data }) => type === 'oidc-profile.created' && data.realm_id === here.realm,
    );
  });

  test('a search finds the changes of a user and of its links', async () => {
    const { data } = await search({ realm: here.realm, user: here.user });
    expect(data.map(({ type }) => type.split('.')[1])).toEqual([
      'updated',
      'updated',
      'created',
      'created',
      'created',
    ]);
    const pages = await allPages({ realm: here.realm, user: here.user, limit: '2' });
    expect(pages.flatMap(({ data }) => data.map(placeOf))).toEqual(data.map(placeOf));
  });

  test('a search finds the changes of a time, with its bounds', async () => {
    const [, second, third] = (await search({ actor: writer.clientId })).data.map(({ time }) => time);
    await every(
      { actor: writer.clientId, from: third ?? '', to: second ?? '' },
      ({ time, data }) => data.client_id === writer.clientId && (time === second || time === third),
    );
    expect((await search({ from: '2999-01-01T00:00:00+02:00' })).data).toEqual([]);
    expect((await search({ to: '1999-01-01T00:00:00Z' })).data).toEqual([]);
  });

  test('a search rejects a condition that is invalid, and names it', async () => {
    const foreign = Buffer.from('[-1]').toString('base64url');
    const wrong = {
      realm: 'x',
      kind: 'user',
      event: 'read',
      actor: '',
      user: 'x',
      from: '2026-02-30T00:00:00Z',
      to: 'today',
      after: foreign,
      limit: '101',
    };
    for (const [name, value] of Object.entries(wrong)) {
      const query = new URLSearchParams({ [name]: value });
      const answer = await service.get(`/v2/changes/search?${query}`, token);
      expect([name, answer.status]).toEqual([name, 400]);
      expect((await errorsOf(answer))[0]?.detail).toContain(name);
    }
  });
});

test('a search finds nothing of a realm that the token may not read, by no condition', async () => {
  const limited = await service.token('changes:read history:read', new Set([here.realm]));
  const { data } = await search({}, limited);
  expect(new Set(data.map((each) => each.data.realm_id))).toEqual(new Set([here.realm]));
  const unknown = await search({ realm: crypto.randomUUID() }, limited);
  expect(await search({ realm: there.realm }, limited)).toEqual(unknown);
  expect(unknown).toEqual({ data: [], meta: { searched_to: null }, links: { next: null } });
  expect((await search({ record: there.user }, limited)).data).toEqual([]);
});

describe('the values of a search', () => {
  const query = { realm: there.realm, user: there.user, event: 'updated' };

  test('a search has the values before and after with the scope history:read, and no value without it', async () => {
    const historian = await service.token('changes:read history:read');
    const [last, first] = (await search(query, historian)).data.map(({ data }) => data);
    expect(last?.personal).toMatchObject({ before: { name: 'Name 1' }, after: { name: 'Name 3' } });
    expect(first?.personal).toMatchObject({ before: { name: 'Jane Doe' }, after: { name: 'Name 1' } });
    const text = JSON.stringify(await search(query));
    expect(text).not.toMatch(/Name|Jane|"detail"|"personal"/);
    expect((await service.get('/v2/changes/search', await service.token('history:read'))).status).toBe(403);
  });

  test('a search says that the values of an erased user are gone', async () => {
    const gone = await createFixture(service.db, { realm: there.realm });
    const data = { realm_id: gone.realm, user_id: gone.user };
    const admin = await service.token('admin');
    expect((await service.post('/admin/v1/erasures', admin, { data })).status).toBe(201);
    const historian = await service.token('changes:read history:read');
    const found = (await search({ realm: gone.realm, user: gone.user }, historian)).data;
    const created = found.find(({ data, type }) => data.record_id === gone.user && type.endsWith('.created'));
    expect(created?.data.personal).toBe('erased');
    expect(JSON.stringify(found)).not.toContain('Jane Doe');
  });
});

test('a search ends at the changes that retention has left', async () => {
  const short = await createFixture(service.db);
  await service.db.engine.log.trim(short.realm, service.clock.now() + 60_000);
  const { data, links } = await search({ realm: short.realm });
  expect(data).toHaveLength(1);
  expect(links.next).toBeNull();
});

test.each([60_000, 1, 0, -200])(
  'a search in pages over many realms returns each change once, with writes %d ms apart',
  async (apart) => {
    const many = await startService();
    const create = async (path: string, data: object) => {
      many.clock.advance(apart);
      const by = await many.token('realms:write users:write');
      const answer = await many.post(path, by, { data });
      expect(answer.status).toBe(201);
      return ((await answer.json()) as { data: { id: string } }).data.id;
    };
    const realms: string[] = [];
    for (let index = 0; index < 30; index += 1)
      realms.push(
        await create('/v2/authentication-realms', { type: 'authentication-realm', name: `R${index}` }),
      );
    for (const name of ['One', 'Two'])
      for (const realm of realms)
        await create(`/v2/authentication-realms/${realm}/user-authentication-info`, {
          type: 'user_authentication_info',
          name,
          email: `${name}@example.com`,
        });
    const found: string[] = [];
    for (let next: string | null = '/v2/changes/search?limit=25'; next; ) {
      const page = (await (await many.get(next, await many.token('changes:read'))).json()) as Page;
      found.push(...page.data.map(placeOf));
      next = page.links.next;
    }
    expect(found).toHaveLength(90);
    expect(new Set(found).size).toBe(90);
    // Within a realm the order is that of its changes, whatever their times are.
    for (const realm of realms) {
      const own = found.filter((place) => place.startsWith(realm));
      expect(own).toEqual([3, 2, 1].map((seq) => `${realm} ${seq}`));
    }
  },
);
