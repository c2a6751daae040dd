import { describe, expect, test } from 'bun:test';
import { feedCursor, parseFeedCursor } from '../../src/deliver/feed/cursor.ts';
import type { Revision, Uuid } from '../../src/model/id.ts';
import { ofRealm } from '../support/log_rows.ts';
import { createFixture, errorsOf, oidcPath, startService } from '../support/service.ts';

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

const changeOf = ({ data, sequence }: Event) => ({
  realm: data.realm_id as Uuid,
  seq: Number(sequence),
  revision: data.revision as Revision,
});

const feedOf = (realm: string) => `/v2/authentication-realms/${realm}/changes`;

const service = await startService({ offline: 'true' });
const fixture = await createFixture(service.db);
const token = await service.token('changes:read');
const reader = await service.token('changes:read users:read users:write oidc-profile-infos:read realms:read');

async function page(path: string, bearer = token): Promise<Page> {
  const answer = await service.get(path, bearer);
  expect(answer.status).toBe(200);
  return (await answer.json()) as Page;
}

describe('a page of the feed', () => {
  test('the feed returns the changes of a realm in order, each as a CloudEvent', async () => {
    const { data, meta, links } = await page(feedOf(fixture.realm));
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
    expect((await page(`${feedOf(fixture.realm)}?limit=2`)).links.next).toBe(
      `${service.url}${feedOf(fixture.realm)}?after=${feedCursor('after', changeOf(data[1] as Event))}&limit=2`,
    );
    const link = data[4] as Event;
    expect(link).toEqual({
      specversion: '1.0',
      id: `5-${link.data.revision}`,
      source: `${service.url}/v2/authentication-realms/${fixture.realm}`,
      type: 'user-authentication-oidc-profile-info.created',
      subject: oidcPath(fixture).split(`${fixture.realm}/`)[1] as string,
      time: expect.stringMatching(/^\d{4}-\d\d-\d\dT[\d:]{8}\.\d{3}Z$/),
      datacontenttype: 'application/json',
      sequence: '000000000000005',
      data: {
        realm_id: fixture.realm,
        user_id: fixture.user,
        record_id: fixture.oidcLink,
        revision: expect.stringMatching(/^[0-9a-f]{16}$/),
        members: [],
        client_id: 'test',
        request_id: null,
      },
    });
  });

  test('an event holds the record as GET returns it if the token may read its type, and null after its deletion', async () => {
    const { data } = await page(feedOf(fixture.realm), reader);
    const byType = new Map(data.map((event) => [event.type, event.data]));
    const link = await (await service.get(oidcPath(fixture), reader)).json();
    expect(byType.get('user-authentication-oidc-profile-info.created')?.record).toEqual(link);
    expect(byType.get('authentication-realm.created')?.record).toMatchObject({ data: { id: fixture.realm } });
    for (const type of ['oidc-profile.created', 'user-authentication-password-profile-info.created'])
      expect(byType.get(type)).not.toHaveProperty('record');

    const other = await createFixture(service.db, { realm: fixture.realm });
    const path = `/v2/authentication-realms/${fixture.realm}/user-authentication-info/${other.user}`;
    expect((await service.del(path, reader)).status).toBe(204);
    const later = await page(feedOf(fixture.realm), reader);
    const ofUser = later.data.filter(({ subject }) => subject === `user-authentication-info/${other.user}`);
    expect(ofUser.map(({ type }) => type.split('.')[1])).toEqual(['created', 'deleted']);
    expect(ofUser.map((event) => event.data.record)).toEqual([null, null]);
    expect(ofUser[1]?.data.client_id).toHaveLength(36);
    expect(ofUser[1]?.data.request_id).toBeString();
  });

  test('a change of a type that only a later release knows is returned without a record', async () => {
    const { realm } = await createFixture(service.db);
    const { database } = service;
    const where = ofRealm(database.address.engine);
    await database.tamper(`update log_entry set event = 1001 where ${where} and seq = 6`, realm);
    const last = (await page(feedOf(realm), reader)).data.at(-1);
    expect([last?.type, last?.subject, last?.data.record]).toEqual([
      'unknown-1001',
      last?.data.record_id ?? '',
      undefined,
    ]);
  });

  test('pages of one event return the whole feed in order, and the last cursor returns an empty page', async () => {
    const whole = await page(feedOf(fixture.realm));
    const eventIds: string[] = [];
    let next = `${service.url}${feedOf(fixture.realm)}?limit=1`;
    for (;;) {
      const { data, meta, links } = await page(next);
      eventIds.push(...data.map(({ id }) => id));
      expect(meta.has_more).toBe(links.next !== null);
      if (links.next !== null) {
        next = links.next;
        continue;
      }
      const beyond = await page(`${feedOf(fixture.realm)}?after=${meta.cursor}`);
      expect([beyond.data, beyond.meta.cursor, beyond.meta.has_more]).toEqual([[], meta.cursor, false]);
      break;
    }
    expect(eventIds).toEqual(whole.data.map(({ id }) => id));
  });

  test('a feed page ignores Last-Event-ID, which only streams read', async () => {
    const { meta } = await page(feedOf(fixture.realm));
    const answer = await service.get(feedOf(fixture.realm), token, { 'Last-Event-ID': meta.cursor });
    expect((await answer.json()) as Page).toEqual(await page(feedOf(fixture.realm)));
  });

  test('feed events without records contain no personal data', async () => {
    const text = JSON.stringify(await page(feedOf(fixture.realm)));
    for (const value of [fixture.subject, fixture.username, 'jane@example.com', 'Jane Doe'])
      expect(text).not.toContain(value);
  });
});

describe('an invalid cursor', () => {
  const refused = async (path: string) => {
    const answer = await service.get(path, token);
    const [error] = await errorsOf(answer);
    return {
      status: answer.status,
      source: error?.source,
      error: error as { meta?: { oldest_cursor: string } },
    };
  };

  test('a feed cursor of another realm or version, or a cut, extended, malformed or empty one, is 400', async () => {
    const other = await createFixture(service.db);
    const { meta } = await page(feedOf(fixture.realm));
    const bytes = Buffer.from(meta.cursor, 'base64url');
    const newerVersion = Buffer.from(bytes);
    newerVersion.writeUInt8(2, 0);
    const zeroSequence = Buffer.from(bytes);
    zeroSequence.fill(0, 18, 24);
    const unknownSide = Buffer.from(bytes);
    unknownSide.writeUInt8(7, 1);
    const wrong = [
      (await page(feedOf(other.realm))).meta.cursor,
      ...[newerVersion, zeroSequence, unknownSide].map((each) => each.toString('base64url')),
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
      const { status, source } = await refused(`${feedOf(fixture.realm)}?after=${cursor}`);
      expect([cursor, status, source]).toEqual([cursor, 400, { parameter: 'after' }]);
    }
  });

  test('a feed cursor of a future or replaced change is 410 with the oldest valid cursor', async () => {
    const { data, meta } = await page(feedOf(fixture.realm));
    const realm = fixture.realm;
    const revision = 'ffffffffffffffff' as never;
    const wrong = [
      feedCursor('after', { realm, seq: data.length + 1, revision }),
      feedCursor('after', { realm, seq: 2 ** 47, revision }),
      feedCursor('after', { realm, seq: 2, revision }),
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

  test('a feed cursor older than retention is 410 with the oldest valid cursor', async () => {
    const { realm } = await createFixture(service.db);
    const first = await page(`${feedOf(realm)}?limit=2`);
    expect(await service.db.engine.log.trim(realm, service.clock.now() + 60_000)).toBe(5);
    const { status, error } = await refused(`${feedOf(realm)}?after=${first.meta.cursor}`);
    expect(status).toBe(410);
    const retained = await page(`${feedOf(realm)}?after=${error.meta?.oldest_cursor}`);
    expect(retained.data.map(({ sequence }) => Number(sequence))).toEqual([6]);
  });
});

describe('access to the feed', () => {
  test('the feed of a realm outside of the token, an unknown realm and a malformed ID are the same 404', async () => {
    const limited = await service.token('changes:read', new Set([fixture.realm]));
    const other = await createFixture(service.db);
    expect((await service.get(feedOf(fixture.realm), limited)).status).toBe(200);
    for (const [realm, by] of [
      [other.realm, limited],
      ['01900000-0000-7000-8000-000000000000', token],
      ['00000000-0000-0000-0000-000000000000', token],
      ['x', token],
    ] as const) {
      expect((await service.get(feedOf(realm), by)).status).toBe(404);
    }
  });

  test('the feed of a deleted realm stays readable with a token for all realms', async () => {
    const { realm } = await createFixture(service.db);
    const writer = await service.token('realms:write changes:read');
    expect((await service.del(`/v2/authentication-realms/${realm}`, writer)).status).toBe(204);
    const { data } = await page(feedOf(realm), writer);
    expect(data.at(-1)?.type).toBe('authentication-realm.deleted');
    expect(data.at(-1)?.subject).toBe(realm);
  });
});

describe('GET /v2/changes', () => {
  interface Heads {
    readonly data: readonly { realm_id: Uuid; cursor: string; time: string }[];
    readonly meta: { has_more: boolean };
    readonly links: { next: string | null };
  }
  const heads = async (path: string, by: string) => (await (await service.get(path, by)).json()) as Heads;

  test('/v2/changes pages through all realms, each with the cursor behind its newest change', async () => {
    const realmIds: string[] = [];
    for (let next: string | null = '/v2/changes?limit=2'; next !== null; ) {
      const { data, links } = await heads(next, token);
      expect(data.length).toBeLessThanOrEqual(2);
      realmIds.push(...data.map(({ realm_id }) => realm_id));
      for (const { realm_id, cursor } of data) {
        const { data: beyond } = await page(`${feedOf(realm_id)}?after=${cursor}`);
        expect(beyond).toEqual([]);
      }
      next = links.next;
    }
    expect(realmIds).toEqual([...new Set(realmIds)].sort());
    expect(realmIds).toContain(fixture.realm);
    expect(realmIds).not.toContain('00000000-0000-0000-0000-000000000000');
  });

  test('/v2/changes returns only the realms of a limited token, however many it lists', async () => {
    const other = await createFixture(service.db);
    const mint = service.clock.mintId;
    const listed = new Set([fixture.realm, other.realm, ...Array.from({ length: 250 }, mint)]);
    const limited = await service.token('changes:read', listed as ReadonlySet<Uuid>);
    const { data, meta, links } = await heads('/v2/changes', limited);
    expect(data.map(({ realm_id }) => realm_id)).toEqual([fixture.realm, other.realm].sort());
    expect([meta.has_more, links.next]).toEqual([false, null]);
    expect((await heads('/v2/changes?limit=2', limited)).meta.has_more).toBe(false);
    const first = await heads('/v2/changes?limit=1', limited);
    expect(first.meta.has_more).toBe(true);
    expect((await heads(first.links.next as string, limited)).data).toEqual(data.slice(1));
  });

  test('/v2/changes with an after= that is no realm ID is 400', async () => {
    const answer = await service.get('/v2/changes?after=abc', token);
    expect([answer.status, (await errorsOf(answer))[0]?.source]).toEqual([400, { parameter: 'after' }]);
  });
});
