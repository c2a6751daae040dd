import { afterAll, beforeAll, describe, expect, test } from 'bun:test';
import { SQL } from 'bun';
import type { SequencedChange } from '../../src/domain/change.ts';
import type { Uuid } from '../../src/domain/id.ts';
import { user } from '../../src/domain/resources.ts';
import { systemClock } from '../../src/platform/clock.ts';
import { type Engine, openEngine, parseDatabase } from '../../src/store/open.ts';
import { sharedServer } from '../support/postgres_server.ts';
import { userMembers } from '../support/service.ts';
import { createRealmFixture, insert, mintId, WRITTEN, withChange } from './contract/store_fixtures.ts';

/**
 * One order in each realm, which is that of commits: whoever follows the changes of a realm by the last place it has
 * read misses none, however many processes write. There is no order between realms.
 */

let url: string;
/** Two that write and one that reads, as processes have them: with connections of their own. */
let engines: readonly [Engine, Engine, Engine];
beforeAll(async () => {
  url = await (await sharedServer()).freshDatabase();
  engines = [await open(), await open(), await open()];
});
afterAll(async () => {
  await Promise.all(engines.map((engine) => engine.close()));
});

async function open(): Promise<Engine> {
  const address = parseDatabase(url);
  if (!address) throw new Error('no address of PostgreSQL');
  return openEngine(address, 'auto', { version: 'test', clock: systemClock });
}

/** Commits so many users at once, and answers their IDs. */
async function commitUsers({ records }: Engine, realm: Uuid, count: number): Promise<readonly Uuid[]> {
  const writes = Array.from({ length: count }, () => insert(user, [realm, mintId()], userMembers));
  const verdict = await records.commit(writes.map(withChange));
  expect(verdict).toEqual(WRITTEN);
  return writes.map(({ record }) => record.id);
}

const WRITERS = 12;
const COMMITS = 20;
const USERS_AT_ONCE = 4;

/** Writers on both engines, each commit of another size. Answers what was acknowledged. */
async function writeAll(realms: readonly Uuid[]): Promise<Set<string>> {
  const acknowledged = new Set<string>();
  const write = async (writer: number) => {
    for (let number = 0; number < COMMITS; number += 1) {
      const realm = realms[(writer + number) % realms.length] as Uuid;
      const engine = engines[writer % 2] as Engine;
      const ids = await commitUsers(engine, realm, 1 + ((writer * number) % USERS_AT_ONCE));
      for (const id of ids) acknowledged.add(`${realm} ${id}`);
    }
  };
  await Promise.all(Array.from({ length: WRITERS }, (_, writer) => write(writer)));
  return acknowledged;
}

/** Reads on from the last place until it is stopped and has read all there is. */
async function follow(realm: Uuid, isStopped: () => boolean): Promise<readonly SequencedChange[]> {
  const read: SequencedChange[] = [];
  for (;;) {
    const isLast = isStopped();
    const more = await engines[2].records.changes(realm, read.at(-1)?.seq ?? 0, 7);
    read.push(...more);
    if (isLast && more.length === 0) return read;
  }
}

describe.each([1, 4])('writers of two processes in %d realms', (count) => {
  test('leave no gap that a reader passes and that is filled later', async () => {
    const grounds = await Promise.all(
      Array.from({ length: count }, () => createRealmFixture(engines[0].records)),
    );
    const realms = grounds.map(({ realm }) => realm);
    let isOver = false;
    const following = Promise.all(realms.map((realm) => follow(realm, () => isOver)));
    const acknowledged = await writeAll(realms).finally(() => {
      isOver = true;
    });
    const read = await following;
    for (const changes of read) expect(changes.map(({ seq }) => seq)).toEqual(changes.map((_, at) => at + 1));
    const seen = new Set(read.flat().map(({ realm, id }) => `${realm} ${id}`));
    expect(seen).toEqual(acknowledged);
  }, 300_000);
});

describe('the clock of a realm', () => {
  test('keeps its place until the commit: others wait in this realm, and in no other', async () => {
    const { realm } = await createRealmFixture(engines[0].records);
    const { realm: other } = await createRealmFixture(engines[0].records);
    await commitUsers(engines[0], realm, 1);
    const sql = new SQL(url, { max: 1 });
    let isDone = false;
    let waiting: Promise<unknown> | undefined;
    await sql.begin(async (holder) => {
      await holder`select 1 from realm_clock where realm_id = ${realm} for update`;
      waiting = commitUsers(engines[0], realm, 1).then(() => {
        isDone = true;
      });
      await commitUsers(engines[0], other, 1);
      await commitUsers(engines[1], other, 1);
      expect(isDone).toBe(false);
      // Who reads waits for nobody.
      expect(await engines[2].records.changes(realm, 0, 10)).toHaveLength(1);
    });
    await waiting;
    await sql.close();
    expect((await engines[2].records.changes(realm, 0, 10)).map(({ seq }) => seq)).toEqual([1, 2]);
  });

  test('does not move for what is refused', async () => {
    const { realm, user: taken } = await createRealmFixture(engines[0].records);
    await commitUsers(engines[0], realm, 2);
    const again = insert(user, [realm, taken], userMembers);
    const verdict = await engines[1].records.commit([withChange(again)]);
    expect(verdict.kind).toBe('unique');
    await commitUsers(engines[0], realm, 1);
    const changes = await engines[2].records.changes(realm, 0, 10);
    expect(changes.map(({ seq }) => seq)).toEqual([1, 2, 3]);
  });
});
