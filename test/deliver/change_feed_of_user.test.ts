import { expect, test } from 'bun:test';
import { feedCursor } from '../../src/deliver/feed/cursor.ts';
import type { Revision } from '../../src/model/id.ts';
import { createFixture, startService } from '../support/service.ts';

/** The change feed of one user, read back. */

const service = await startService();
const jane = await createFixture(service.db);
// Another user is changed before, between and after.
const other = await createFixture(service.db, { realm: jane.realm });
const path = (user: string) => `/v2/authentication-realms/${jane.realm}/user-authentication-info/${user}`;
const writer = await service.token('users:write');
for (const [index, user] of [jane.user, other.user, jane.user, other.user].entries()) {
  const data = { type: 'user_authentication_info', middle_name: `M${index}` };
  await service.put(path(user), writer, { data });
}
const token = await service.token('changes:read');

interface FeedPage {
  readonly data: readonly {
    readonly type: string;
    readonly sequence: string;
    readonly data: { user_id: string };
  }[];
  readonly meta: { readonly cursor: string; readonly has_more: boolean };
  readonly links: { readonly next: string | null };
}

const feed = (query: string) => `/v2/authentication-realms/${jane.realm}/changes?${query}`;
const read = async (path: string) => (await (await service.get(path, token)).json()) as FeedPage;
const sequencesIn = ({ data }: FeedPage) => data.map(({ sequence }) => Number(sequence));

test('the feed of a user pages through the changes of the user and its links, and of no other user', async () => {
  const whole = await read(feed(`before=&user_id=${jane.user}`));
  expect(new Set(whole.data.map(({ data }) => data.user_id))).toEqual(new Set([jane.user]));
  const about = whole.data.map(({ type }) => type.slice(type.lastIndexOf('-') + 1));
  expect(about).toEqual(['info.created', 'info.created', 'info.created', 'info.updated', 'info.updated']);
  const sequences = sequencesIn(whole);
  expect(sequences).toEqual(sequences.toSorted((a, b) => a - b));
  const pages = [await read(feed(`before=&limit=2&user_id=${jane.user}`))];
  for (let last = pages[0]; last?.links.next; last = pages.at(-1)) pages.push(await read(last.links.next));
  expect(pages.map(sequencesIn)).toEqual([sequences.slice(3), sequences.slice(1, 3), sequences.slice(0, 1)]);
  expect(pages.map(({ meta }) => meta.has_more)).toEqual([true, true, false]);
});

test('the feed of a user is read back from any cursor of the realm', async () => {
  const { meta } = await read(feed('before=&limit=1'));
  const { data } = await read(feed(`before=${meta.cursor}&user_id=${jane.user}`));
  expect(data).toHaveLength(5);
});

test('the feed of an unknown user is empty, and that of an unknown realm is 404', async () => {
  const unknownUser = await read(feed('before=&user_id=01900000-0000-7000-8000-000000000000'));
  const newest = await read(feed('before=&limit=1'));
  expect(unknownUser).toEqual({
    data: [],
    meta: { cursor: newest.meta.cursor, has_more: false },
    links: { next: null },
  });
  const path = feed(`before=&user_id=${jane.user}`).replace(
    jane.realm,
    '01900000-0000-7000-8000-000000000000',
  );
  expect((await service.get(path, token)).status).toBe(404);
});

test('the feed of a user with the cursor of a missing change is 410', async () => {
  const missing = feedCursor('after', {
    realm: jane.realm,
    seq: 2,
    revision: 'ffffffffffffffff' as Revision,
  });
  expect((await service.get(feed(`before=${missing}&user_id=${jane.user}`), token)).status).toBe(410);
});

test.each(['user_id=x&before=', 'user_id=', 'user_id={user}', 'user_id={user}&before=&user_id={user}'])(
  'the feed of a user with %s is 400',
  async (query) => {
    expect((await service.get(feed(query.replaceAll('{user}', jane.user)), token)).status).toBe(400);
  },
);
