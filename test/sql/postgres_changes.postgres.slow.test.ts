import { afterAll, describe, expect, test } from 'bun:test';
import { SQL } from 'bun';
import type { Uuid } from '../../src/model/id.ts';
import type { SequencedChange } from '../../src/model/log/change.ts';
import { user } from '../../src/model/resources.ts';
import { systemClock } from '../../src/ops/process/clock.ts';
import { type Engine, openEngine, parseDatabase } from '../../src/ops/store/open.ts';
import { createRealmFixture, insert, mintId, WRITTEN } from '../records/contract/store_fixtures.ts';
import { sharedServer } from '../support/postgres_server.ts';
import { userMembers } from '../support/service.ts';

/**
 * The changes of a realm are in the order of their commits: a reader that continues after the last sequence number it
 * has read misses none, however many processes write. There is no order between realms.
 */

const url = await (await sharedServer()).freshDatabase();
/** Two writers and a reader, each with its own connections, like separate processes. */
const engines = [await open(), await open(), await open()] as const;
afterAll(() => Promise.all(engines.map((engine) => engine.close())));

async function open(): Promise<Engine> {
  const address = parseDatabase(url);
  if (!address) throw new Error('not a PostgreSQL URL');
  return openEngine(address, 'auto', { version: 'test', clock: systemClock });
}

/** Commits `count` users at once, and returns their IDs. */
async function commitUsers({ records }: Engine, realm: Uuid, count: number): Promise<readonly Uuid[]> {
  const writes = Array.from({ length: count }, () => insert(user, [realm, mintId()], userMembers));
  const result = await records.commit(writes);
  expect(result).toEqual(WRITTEN);
  return writes.map(({ record }) => record.id);
}

/** Changes of `createRealmFixture`. */
const CREATED = 4;
const WRITERS = 12;
const COMMITS = 20;
const USERS_AT_ONCE = 4;

/** Writes on both engines, in commits of different sizes. Returns the acknowledged IDs. */
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

/** Reads changes in pages until it is stopped and has read all of them. */
async function readUntilStopped(realm: Uuid, isStopped: () => boolean): Promise<readonly SequencedChange[]> {
  const read: SequencedChange[] = [];
  for (;;) {
    const isLast = isStopped();
    const more = await engines[2].records.changes(realm, read.at(-1)?.seq ?? 0, 7);
    read.push(...more);
    if (isLast && more.length === 0) return read;
  }
}

describe.each([1, 4])('writers of two processes in %d realms', (count) => {
  test('concurrent writers of two processes never fill a sequence gap behind a reader', async () => {
    const fixtures = await Promise.all(
      Array.from({ length: count }, () => createRealmFixture(engines[0].records)),
    );
    const realms = fixtures.map(({ realm }) => realm);
    let isOver = false;
    const reading = Promise.all(realms.map((realm) => readUntilStopped(realm, () => isOver)));
    const acknowledged = await writeAll(realms).finally(() => {
      isOver = true;
    });
    const read = await reading;
    for (const changes of read) expect(changes.map(({ seq }) => seq)).toEqual(changes.map((_, at) => at + 1));
    const later = read.flatMap((changes) => changes.slice(CREATED));
    const seen = new Set(later.map(({ realm, id }) => `${realm} ${id}`));
    expect(seen).toEqual(acknowledged);
  }, 300_000);
});

describe('the clock of a realm', () => {
  test('a writer holds the realm clock until its commit: other writers wait in this realm only', async () => {
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
      // Readers do not wait.
      expect(await engines[2].records.changes(realm, CREATED, 10)).toHaveLength(1);
    });
    await waiting;
    await sql.close();
    const changes = await engines[2].records.changes(realm, CREATED, 10);
    expect(changes.map(({ seq }) => seq - CREATED)).toEqual([1, 2]);
  });

  test('a refused write does not advance the realm clock', async () => {
    const { realm, user: existing } = await createRealmFixture(engines[0].records);
    await commitUsers(engines[0], realm, 2);
    const duplicate = insert(user, [realm, existing], userMembers);
    const result = await engines[1].records.commit([duplicate]);
    expect(result.kind).toBe('unique');
    await commitUsers(engines[0], realm, 1);
    const changes = await engines[2].records.changes(realm, CREATED, 10);
    expect(changes.map(({ seq }) => seq - CREATED)).toEqual([1, 2, 3]);
  });
});
