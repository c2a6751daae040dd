import { afterAll, beforeAll, describe, expect, test } from 'bun:test';
import type { Revision, Uuid } from '../../src/domain/id.ts';
import { feedCursor, parseFeedCursor } from '../../src/events/feed/cursor.ts';
import { errorsOf, oidcPath, type Planted, plant, type Service, startService } from '../support/service.ts';

/** The change feed as pages: its order, its events, its cursors. */

interface Event {
  readonly specversion: string;
  readonly id: string;
  readonly source: string;
  readonly type: string;
  readonly subject: string;
  readonly time: string;
  readonly datacontenttype: string;
  readonly sequence: string;
  readonly data: {
    readonly realm_id: string;
    readonly user_id: string | null;
    readonly record_id: string;
    readonly revision: string;
    readonly members: readonly string[];
    readonly client_id: string;
    readonly request_id: string | null;
    readonly record?: unknown;
  };
}

interface Page {
  readonly data: readonly Event[];
  readonly meta: { readonly cursor: string; readonly has_more: boolean };
  readonly links: { readonly next: string | null };
}

let service: Service;
let planted: Planted;
let token: string;
let reader: string;

const changeOf = ({ data, sequence }: Event) => ({
  realm: data.realm_id as Uuid,
  seq: Number(sequence),
  revision: data.revision as Revision,
});

const feedOf = (realm: string) => `/v2/authentication-realms/${realm}/changes`;

beforeAll(async () => {
  service = await startService({ offline: 'true' });
  planted = await plant(service.db);
  token = await service.token('changes:read');
  reader = await service.token('changes:read users:read users:write oidc-profile-infos:read realms:read');
});

afterAll(() => service.stop());

async function page(path: string, by = token): Promise<Page> {
  const answer = await service.get(path, by);
  expect(answer.status).toBe(200);
  return (await answer.json()) as Page;
}

describe('a page', () => {
  test('tells the changes of a realm in its order, each as a CloudEvent', async () => {
    const { data, meta, links } = await page(feedOf(planted.realm));
    expect(data.map(({ type }) => type)).toEqual([
      'authentication-realm.created',
      'oidc-profile.created',
      'password-profile.created',
      'user-authentication-info.created',
      'user-authentication-oidc-profile-info.created',
      'user-authentication-password-profile-info.created',
    ]);
    expect(data.map(({ sequence }) => Number(sequence))).toEqual([1, 2, 3, 4, 5, 6]);
    expect(data.map(({ sequence }) => sequence).toSorted()).toEqual(data.map(({ sequence }) => sequence));
    expect(meta.has_more).toBe(false);
    expect(links.next).toBeNull();
    expect((await page(`${feedOf(planted.realm)}?limit=2`)).links.next).toBe(
      `${service.url}${feedOf(planted.realm)}?after=${feedCursor('behind', changeOf(data[1] as Event))}&limit=2`,
    );
    const link = data[4] as Event;
    expect(link).toEqual({
      specversion: '1.0',
      id: `5-${link.data.revision}`,
      source: `${service.url}/v2/authentication-realms/${planted.realm}`,
      type: 'user-authentication-oidc-profile-info.created',
      subject: oidcPath(planted).split(`${planted.realm}/`)[1] as string,
      time: expect.stringMatching(/^\d{4}-\d\d-\d\dT[\d:]{8}\.\d{3}Z$/),
      datacontenttype: 'application/json',
      sequence: '000000000000005',
      data: {
        realm_id: planted.realm,
        user_id: planted.user,
        record_id: planted.oidcLink,
        revision: expect.stringMatching(/^[0-9a-f]{16}$/),
        members: [],
        client_id: 'test',
        request_id: null,
      },
    });
  });

  test('holds the state of a record for kinds that the token may read, as a GET answers it, and null once it is gone', async () => {
    const { data } = await page(feedOf(planted.realm), reader);
    const byType = new Map(data.map((event) => [event.type, event.data]));
    const link = await (await service.get(oidcPath(planted), reader)).json();
    expect(byType.get('user-authentication-oidc-profile-info.created')?.record).toEqual(link);
    expect(byType.get('authentication-realm.created')?.record).toMatchObject({ data: { id: planted.realm } });
    for (const type of ['oidc-profile.created', 'user-authentication-password-profile-info.created'])
      expect(byType.get(type)).not.toHaveProperty('record');

    const other = await plant(service.db, { realm: planted.realm });
    const path = `/v2/authentication-realms/${planted.realm}/user-authentication-info/${other.user}`;
    expect((await service.del(path, reader)).status).toBe(204);
    const later = await page(feedOf(planted.realm), reader);
    const ofUser = later.data.filter(({ subject }) => subject === `user-authentication-info/${other.user}`);
    expect(ofUser.map(({ type }) => type.split('.')[1])).toEqual(['created', 'deleted']);
    expect(ofUser.map((event) => event.data.record)).toEqual([null, null]);
    expect(ofUser[1]?.data.client_id).toHaveLength(36);
    expect(ofUser[1]?.data.request_id).toBeString();
  });

  test('tells a change of a kind that only a later release knows, without a state', async () => {
    const { realm } = await plant(service.db);
    await service.database.spoil(
      `update change set event = 'later-thing.created' where realm_id = ? and seq = 6`,
      realm,
    );
    const last = (await page(feedOf(realm), reader)).data.at(-1);
    expect([last?.type, last?.subject, last?.data.record]).toEqual([
      'later-thing.created',
      last?.data.record_id ?? '',
      undefined,
    ]);
  });

  test('goes on at its cursor, one by one, until there is no more', async () => {
    const whole = await page(feedOf(planted.realm));
    const told: string[] = [];
    let next = `${service.url}${feedOf(planted.realm)}?limit=1`;
    for (;;) {
      const { data, meta, links } = await page(next);
      told.push(...data.map(({ id }) => id));
      expect(meta.has_more).toBe(links.next !== null);
      if (links.next !== null) {
        next = links.next;
        continue;
      }
      const beyond = await page(`${feedOf(planted.realm)}?after=${meta.cursor}`);
      expect([beyond.data, beyond.meta.cursor, beyond.meta.has_more]).toEqual([[], meta.cursor, false]);
      break;
    }
    expect(told).toEqual(whole.data.map(({ id }) => id));
  });

  test('begins where its query says: a stream alone goes on from Last-Event-ID', async () => {
    const { meta } = await page(feedOf(planted.realm));
    const answer = await service.get(feedOf(planted.realm), token, { 'Last-Event-ID': meta.cursor });
    expect((await answer.json()) as Page).toEqual(await page(feedOf(planted.realm)));
  });

  test('says nothing personal but in the state of a record', async () => {
    const text = JSON.stringify(await page(feedOf(planted.realm)));
    for (const value of [planted.subject, planted.username, 'jane@example.com', 'Jane Doe'])
      expect(text).not.toContain(value);
  });
});

describe('looking back', () => {
  const back = (query: string, realm = planted.realm) => page(`${feedOf(realm)}?${query}`);
  const placesIn = ({ data }: Page) => data.map(({ sequence }) => Number(sequence));

  test('begins with the newest, and comes to the oldest page by page', async () => {
    const { realm } = await plant(service.db);
    const pages: Page[] = [await back('before=&limit=4', realm)];
    for (let last = pages[0]; last?.links.next; last = pages.at(-1)) {
      expect(last.meta.has_more).toBe(true);
      pages.push(await page(last.links.next));
    }
    expect(pages.map(placesIn)).toEqual([
      [3, 4, 5, 6],
      [1, 2],
    ]);
    expect(pages.at(-1)?.meta.has_more).toBe(false);
    const whole = await page(feedOf(realm), reader);
    expect((await page(`${feedOf(realm)}?before=`, reader)).data).toEqual(whole.data);
  });

  test('nothing is missed between the newest page and what comes', async () => {
    const { realm } = await plant(service.db);
    const { meta } = await back('before=&limit=1', realm);
    expect(placesIn(await back(`after=${meta.cursor}`, realm))).toEqual([]);
    await plant(service.db, { realm });
    expect(placesIn(await back(`after=${meta.cursor}`, realm))[0]).toBe(7);
    // The cursor behind a change and the one before the next are the same place.
    expect(placesIn(await back(`before=${meta.cursor}&limit=2`, realm))).toEqual([5, 6]);
  });

  test('ends where what is kept begins', async () => {
    const { realm } = await plant(service.db);
    const { meta } = await back('before=&limit=1', realm);
    await service.db.engine.log.trim(realm, service.clock.now() + 60_000);
    await plant(service.db, { realm });
    const older = await back(`before=${meta.cursor}`, realm);
    expect([placesIn(older), older.meta.has_more]).toEqual([[6], false]);
    expect(placesIn(await back('before=&limit=100', realm))[0]).toBe(6);
  });

  test.each(['after=', 'limit=0', 'before=x'])('with %s it is 400', async (query) => {
    const { meta } = await back('before=');
    const path = `${feedOf(planted.realm)}?before=${meta.cursor}&${query}${query === 'after=' ? meta.cursor : ''}`;
    expect((await service.get(path, token)).status).toBe(400);
  });

  test('a stream goes forwards: 400; a cursor of elsewhere: 400; of a change that is not there: 410', async () => {
    const refusal = async (cursor: string, headers = {}) => {
      const answer = await service.get(`${feedOf(planted.realm)}?before=${cursor}`, token, headers);
      return [answer.status, (await errorsOf(answer))[0]?.source];
    };
    const other = await plant(service.db);
    const source = { parameter: 'before' };
    expect(await refusal('', { Accept: 'text/event-stream' })).toEqual([400, source]);
    expect(await refusal((await back('', other.realm)).meta.cursor)).toEqual([400, source]);
    const gone = { realm: planted.realm, seq: 2, revision: 'ffffffffffffffff' as Revision };
    expect(await refusal(feedCursor('behind', gone))).toEqual([410, source]);
    expect(
      (await service.get(`${feedOf('01900000-0000-7000-8000-000000000000')}?before=`, token)).status,
    ).toBe(404);
  });
});

describe('a cursor that does not fit', () => {
  const refused = async (path: string) => {
    const answer = await service.get(path, token);
    const [error] = await errorsOf(answer);
    return {
      status: answer.status,
      source: error?.source,
      error: error as { meta?: { oldest_cursor: string } },
    };
  };

  test('of another realm, of another version, cut, lengthened, misspelt, empty: 400', async () => {
    const other = await plant(service.db);
    const { meta } = await page(feedOf(planted.realm));
    const bytes = Buffer.from(meta.cursor, 'base64url');
    const newer = Buffer.from(bytes);
    newer.writeUInt8(2, 0);
    const nowhere = Buffer.from(bytes);
    nowhere.fill(0, 18, 24);
    const aside = Buffer.from(bytes);
    aside.writeUInt8(7, 1);
    const wrong = [
      (await page(feedOf(other.realm))).meta.cursor,
      ...[newer, nowhere, aside].map((each) => each.toString('base64url')),
      meta.cursor.slice(0, -1),
      `${meta.cursor}A`,
      `${meta.cursor}=`,
      meta.cursor.replace(/.$/, (last) => (last === 'B' ? 'C' : 'B')),
      '',
      '%00',
      '1',
      'x'.repeat(5_000),
    ];
    for (const cursor of wrong) {
      const { status, source } = await refused(`${feedOf(planted.realm)}?after=${cursor}`);
      expect([cursor, status, source]).toEqual([cursor, 400, { parameter: 'after' }]);
    }
  });

  test('from the future, or of a change that another one has the place of: 410, and where to go on', async () => {
    const { data, meta } = await page(feedOf(planted.realm));
    const realm = planted.realm;
    const revision = 'ffffffffffffffff' as never;
    const wrong = [
      feedCursor('behind', { realm, seq: data.length + 1, revision }),
      feedCursor('behind', { realm, seq: 2 ** 47, revision }),
      feedCursor('behind', { realm, seq: 2, revision }),
      feedCursor('before', { realm, seq: 1, revision }),
    ];
    for (const cursor of wrong) {
      const { status, error } = await refused(`${feedOf(realm)}?after=${cursor}`);
      expect(status).toBe(410);
      const oldest = error.meta?.oldest_cursor as string;
      expect(parseFeedCursor(oldest, realm)).toMatchObject({ side: 'before', seq: 1 });
      const again = await page(`${feedOf(realm)}?after=${oldest}`);
      expect(again.data.map(({ id }) => id)).toEqual(data.map(({ id }) => id));
      expect(again.meta).toEqual(meta);
    }
  });

  test('older than what is kept: 410, and the oldest that is kept', async () => {
    const { realm } = await plant(service.db);
    const first = await page(`${feedOf(realm)}?limit=2`);
    expect(await service.db.engine.log.trim(realm, service.clock.now() + 60_000)).toBe(5);
    const { status, error } = await refused(`${feedOf(realm)}?after=${first.meta.cursor}`);
    expect(status).toBe(410);
    const kept = await page(`${feedOf(realm)}?after=${error.meta?.oldest_cursor}`);
    expect(kept.data.map(({ sequence }) => Number(sequence))).toEqual([6]);
  });

  test.each([
    'limit=0',
    'limit=101',
    'limit=1.5',
    'limit=',
    'limit=-1',
    'limit=1&limit=2',
    'after=a&after=b',
  ])('%s: 400', async (query) => {
    expect((await refused(`${feedOf(planted.realm)}?${query}`)).status).toBe(400);
  });
});

describe('who may read it', () => {
  test('a realm outside of the list, one that never was, and no realm are the same 404', async () => {
    const limited = await service.token('changes:read', new Set([planted.realm]));
    const other = await plant(service.db);
    expect((await service.get(feedOf(planted.realm), limited)).status).toBe(200);
    for (const [realm, by] of [
      [other.realm, limited],
      ['01900000-0000-7000-8000-000000000000', token],
      ['00000000-0000-0000-0000-000000000000', token],
      ['x', token],
    ] as const) {
      expect((await service.get(feedOf(realm), by)).status).toBe(404);
    }
  });

  test('a removed realm is still told, to those of all realms', async () => {
    const { realm } = await plant(service.db);
    const writer = await service.token('realms:write changes:read');
    expect((await service.del(`/v2/authentication-realms/${realm}`, writer)).status).toBe(204);
    const { data } = await page(feedOf(realm), writer);
    expect(data.at(-1)?.type).toBe('authentication-realm.deleted');
    expect(data.at(-1)?.subject).toBe(realm);
  });
});

describe('the heads', () => {
  interface Heads {
    readonly data: readonly { realm_id: Uuid; cursor: string; time: string }[];
    readonly meta: { has_more: boolean };
    readonly links: { next: string | null };
  }
  const heads = async (path: string, by: string) => (await (await service.get(path, by)).json()) as Heads;

  test('are those of all realms, page by page, each the cursor behind its newest change', async () => {
    const told: string[] = [];
    for (let next: string | null = '/v2/changes?limit=2'; next !== null; ) {
      const { data, links } = await heads(next, token);
      expect(data.length).toBeLessThanOrEqual(2);
      told.push(...data.map(({ realm_id }) => realm_id));
      for (const { realm_id, cursor } of data) {
        const { data: beyond } = await page(`${feedOf(realm_id)}?after=${cursor}`);
        expect(beyond).toEqual([]);
      }
      next = links.next;
    }
    expect(told).toEqual([...new Set(told)].sort());
    expect(told).toContain(planted.realm);
    expect(told).not.toContain('00000000-0000-0000-0000-000000000000');
  });

  test('of a limited token are those of its realms, however many it lists', async () => {
    const other = await plant(service.db);
    const mint = service.clock.mintId;
    const listed = new Set([planted.realm, other.realm, ...Array.from({ length: 250 }, mint)]);
    const limited = await service.token('changes:read', listed as ReadonlySet<Uuid>);
    const { data, meta, links } = await heads('/v2/changes', limited);
    expect(data.map(({ realm_id }) => realm_id)).toEqual([planted.realm, other.realm].sort());
    expect([meta.has_more, links.next]).toEqual([false, null]);
    expect((await heads('/v2/changes?limit=2', limited)).meta.has_more).toBe(false);
    const first = await heads('/v2/changes?limit=1', limited);
    expect(first.meta.has_more).toBe(true);
    expect((await heads(first.links.next as string, limited)).data).toEqual(data.slice(1));
  });

  test('what is no realm to go on behind is 400', async () => {
    const answer = await service.get('/v2/changes?after=abc', token);
    expect([answer.status, (await errorsOf(answer))[0]?.source]).toEqual([400, { parameter: 'after' }]);
  });
});
