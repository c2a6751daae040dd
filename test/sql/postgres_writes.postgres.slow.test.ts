import { afterAll, expect, test } from 'bun:test';
import { SQL } from 'bun';
import { LIMITS } from '../../src/model/limits.ts';
import { user } from '../../src/model/resources.ts';
import { systemClock } from '../../src/ops/process/clock.ts';
import { openEngine, parseDatabase } from '../../src/ops/store/open.ts';
import {
  anotherUser,
  commitWrites,
  createRealmFixture,
  insert,
  mintId,
} from '../records/contract/store_fixtures.ts';
import { sharedServer } from '../support/postgres_server.ts';
import { userMembers } from '../support/service.ts';
import { startTcpProxy } from '../support/tcp_proxy.ts';

/** Writes that wait for each other, for a distant PostgreSQL and for a connection. */

/** The one-way delay to PostgreSQL. */
const FAR_MS = 5;
/** The maximum time of an answer, twice for a busy machine. */
const WAIT_MS_MAX = 2 * LIMITS.answerMsMax;

const server = await sharedServer();
const url = await server.freshDatabase();
const proxy = await startTcpProxy(server.port);
const reached = new URL(url);
reached.port = String(proxy.port);
const address = parseDatabase(reached.href);
if (!address) throw new Error('not a database URL');
/** Connected through the proxy. */
const engine = await openEngine(address, 'auto', { version: 'test', clock: systemClock });
const fixture = await createRealmFixture(engine.records);
afterAll(() => engine.close());

async function create(): Promise<string> {
  const write = anotherUser(fixture);
  await engine.records.commit([write]);
  return write.record.id;
}

async function usersIn(realm: string): Promise<ReadonlySet<string>> {
  const sql = new SQL(url, { max: 1 });
  const rows: { id: string }[] = await sql
    .unsafe('select id from user_info where realm_id = $1', [realm])
    .finally(() => sql.close());
  return new Set(rows.map(({ id }) => id));
}

test('writes to a distant PostgreSQL are answered in time, and a refused write is not done later', async () => {
  const before = await usersIn(fixture.realm);
  proxy.delay(FAR_MS);
  const start = performance.now();
  const results = await Promise.allSettled(Array.from({ length: 150 }, create));
  expect(performance.now() - start).toBeLessThan(WAIT_MS_MAX);
  proxy.delay(0);
  await create();
  const committed = results.flatMap((each) => (each.status === 'fulfilled' ? [each.value] : []));
  expect(committed.length).toBeGreaterThan(1);
  const after = await usersIn(fixture.realm);
  expect(after.size - before.size).toBe(committed.length + 1);
  expect(committed.every((id) => after.has(id))).toBe(true);
}, 300_000);

test('a create takes two round trips, and 20 concurrent creates share as many', async () => {
  const tripsOf = async (work: () => Promise<unknown>): Promise<number> => {
    const before = proxy.roundTrips();
    await work();
    return proxy.roundTrips() - before;
  };
  const many = () => Promise.all(Array.from({ length: 20 }, create));
  // The driver prepares each statement on each connection first.
  for (let warmUp = 0; warmUp < 10; warmUp += 1) await many();
  // Statements that are not awaited may be sent in several pieces: the more, the busier the machine is.
  const fewestTripsOf = async (work: () => Promise<unknown>): Promise<number> => {
    const trips: number[] = [];
    for (let round = 0; round < 10; round += 1) trips.push(await tripsOf(work));
    return Math.min(...trips);
  };
  expect(await fewestTripsOf(create)).toBe(2);
  // The first one commits alone; the others share a transaction.
  expect(await fewestTripsOf(many)).toBeLessThan(10);
}, 300_000);

test('refused creates fail alone if others share their transaction', async () => {
  const taken = anotherUser(fixture);
  const others = Array.from({ length: 9 }, () => anotherUser(fixture));
  const writes = [taken, ...others.slice(0, 4), taken, ...others.slice(4), taken];
  const results = await Promise.all(writes.map((write) => engine.records.commit([write])));
  const refused = { kind: 'unique', members: ['id'] };
  expect(results.filter(({ kind }) => kind === 'unique')).toEqual([refused, refused] as typeof results);
  expect(results.filter(({ kind }) => kind === 'written')).toHaveLength(10);
  const stored = await usersIn(fixture.realm);
  expect([taken, ...others].every(({ record }) => stored.has(record.id))).toBe(true);
}, 300_000);

test('writes that wait for locks do not delay reads of the access table', async () => {
  const fixtures = await Promise.all(
    Array.from({ length: 2 * LIMITS.transactionConnectionsMax }, () => createRealmFixture(engine.records)),
  );
  const sql = new SQL(url, { max: 1 });
  const holder = await sql.reserve();
  await holder.unsafe('begin');
  await holder.unsafe('select 1 from realm_clock for update');
  let written = 0;
  const writing = fixtures.map((each) =>
    commitWrites(engine.records, anotherUser(each)).finally(() => {
      written += 1;
    }),
  );
  await Bun.sleep(100);
  await engine.access.state(undefined);
  await engine.records.ready();
  expect(written).toBe(0);
  await holder.unsafe('rollback');
  expect(new Set((await Promise.all(writing)).map(({ kind }) => kind))).toEqual(new Set(['written']));
  holder.release();
  await sql.close();
});

test('expired sign-ins are deleted after the write of the installation that runs', async () => {
  const sql = new SQL(url, { max: 1 });
  const holder = await sql.reserve();
  await holder.unsafe('begin');
  await holder.unsafe('select 1 from instance for update');
  let isDeleted = false;
  const deleting = engine.access.deleteExpiredSignIns(systemClock.now()).finally(() => {
    isDeleted = true;
  });
  await Bun.sleep(100);
  expect(isDeleted).toBe(false);
  await holder.unsafe('rollback');
  expect(await deleting).toBe(0);
  holder.release();
  await sql.close();
});

test('the limit of queued writes counts the writes of all realms', async () => {
  const refused: number[] = [];
  const writes = Array.from({ length: LIMITS.writesQueuedMax + 2 }, (_, number) =>
    commitWrites(engine.records, insert(user, [mintId(), mintId()], userMembers)).catch(() =>
      refused.push(number),
    ),
  );
  await Promise.resolve();
  await Promise.resolve();
  await Promise.all(writes.slice(-2));
  expect(refused).toEqual([LIMITS.writesQueuedMax, LIMITS.writesQueuedMax + 1]);
  await Promise.all(writes);
}, 300_000);

test('a commit with an unknown outcome does not fail the writes queued behind it', async () => {
  const first = create();
  const many = Array.from({ length: LIMITS.cascadeRecordsMax }, () => {
    const write = anotherUser(fixture);
    return { write, compare: () => ({ comparison: 'same' as const, change: write.change }) };
  });
  const loaded = engine.records.load(many, false).catch((error) => error.code);
  const last = create();
  await first;
  await proxy.faultNext('commit\0', 'unanswered');
  expect(await loaded).toBe('unknown_outcome');
  const id = await last;
  expect(await usersIn(fixture.realm)).toContain(id);
});

test('a write runs at read committed, whatever the default isolation level of the database is', async () => {
  const sql = new SQL(url, { max: 1 });
  const name = new URL(url).pathname.slice(1);
  await sql.unsafe(`alter database ${name} set default_transaction_isolation = 'serializable'`);
  await sql.unsafe(`create function look() returns trigger language plpgsql as $$ begin
    if current_setting('transaction_isolation') <> 'read committed' then raise exception 'wrong isolation level'; end if;
    return null; end $$`);
  await sql.unsafe('create trigger look after insert on user_info for each row execute function look()');
  proxy.cut();
  await Bun.sleep(100);
  expect(await create()).toBeString();
  await sql.close();
});
