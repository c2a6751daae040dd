import { afterAll, expect, test } from 'bun:test';
import { SQL } from 'bun';
import { openCounterLog } from '../../src/log/counters.ts';
import { verifyLogs } from '../../src/log/verify.ts';
import { createAuditEntry } from '../../src/model/log/audit_entry.ts';
import { user } from '../../src/model/resources.ts';
import { systemClock } from '../../src/ops/process/clock.ts';
import { draftDescribed } from '../../src/records/plan.ts';
import { databaseThrough, startFaultyService } from '../support/fault_injection.ts';
import { sharedServer } from '../support/postgres_server.ts';
import { startTcpProxy } from '../support/tcp_proxy.ts';

/** Commits with an unknown outcome, and serialization failures and deadlocks. */

/** The end of a transaction on the wire; the trailing zero tells it from `read committed` at the beginning. */
const COMMIT = 'commit\0';

const server = await sharedServer();
const proxy = await startTcpProxy(server.port);
const faulty = await startFaultyService(await databaseThrough(server, [proxy.port]));
afterAll(() => faulty.stop().catch(() => undefined));

async function execute(...statements: readonly string[]): Promise<void> {
  const sql = new SQL(faulty.service.database.url, { max: 1 });
  for (const statement of statements) await sql.unsafe(statement);
  await sql.close();
}

const faults = () => faulty.service.log.filter((record) => record.event === 'fault');

test.each([
  ['unanswered', 1],
  ['unheard', 0],
  ['silent', 1],
] as const)(
  'a commit with the network fault "%s" is answered with unknown_outcome, and can be repeated safely',
  async (fate, committed) => {
    const before = await faulty.users();
    const request = faulty.retryableWrite();
    const intercepted = proxy.faultNext(COMMIT, fate);
    const first = await faulty.write(request);
    await intercepted;
    expect([first.status, await first.response.text()]).toEqual([
      503,
      expect.stringContaining('may have landed'),
    ]);
    expect(faults().at(-1)).toMatchObject({ code: 'unknown_outcome' });
    expect((await faulty.users()).size).toBe(before.size + committed);
    await faulty.measureRecovery();
    const between = await faulty.users();
    const second = await faulty.write(request);
    const third = await faulty.write(request);
    expect([second.status, third.status, third.id]).toEqual([201, 201, second.id]);
    const after = await faulty.users();
    expect([after.has(second.id as string), after.size - between.size]).toEqual([true, 1 - committed]);
  },
  300_000,
);

test.each([
  ['unanswered', 'first'],
  ['unheard', 'first'],
  ['silent', 'first'],
  ['unanswered', 'further'],
  ['unheard', 'further'],
] as const)(
  'a commit of counted audit entries with the network fault "%s" is retried, and logs each entry once: the %s event of a key',
  async (fate, event) => {
    const { database, db } = faulty.service;
    const { log, access } = db.engine;
    const marker = systemClock.mintId();
    const pendings: number[] = [];
    const counters = openCounterLog(
      { append: log.append, recordClientUsage: access.recordClientUsage },
      systemClock,
      { intervalMs: 20, onPending: ({ pending }) => pendings.push(pending) },
    );
    const add = () =>
      counters.add(marker, createAuditEntry('token.granted', { detail: { marker } }, systemClock));
    if (event === 'further') await add();
    const intercepted = proxy.faultNext(COMMIT, fate);
    await add();
    await intercepted;
    while (pendings.length === 0) await Bun.sleep(20);
    expect(pendings).toEqual([1]);
    await faulty.measureRecovery();
    while (pendings.length < 2) await Bun.sleep(20);
    await counters.stop();
    const entries = await database.query<{ detail: string }>('select detail from act');
    expect(entries.filter(({ detail }) => detail.includes(marker))).toHaveLength(event === 'first' ? 1 : 2);
    const { engine, logKeys: keys } = db;
    const { now } = systemClock;
    expect((await verifyLogs({ store: engine.log, keys, checkpoints: [], now })).findings).toEqual([]);
  },
  300_000,
);

test('values in an engine error reach no log and no answer', async () => {
  const name = 'name-in-no-log-or-answer';
  const { records } = faulty.service.db.engine;
  await execute(`alter table user_info add constraint odd check (name <> '${name}')`);
  const key = [faulty.fixture.realm, systemClock.mintId()] as const;
  const write = draftDescribed(
    user,
    [...key],
    { name, email: 'a@example.com' },
    {
      clock: systemClock,
      actor: 'test',
    },
  );
  const error = await Promise.resolve(records.commit([write])).then(
    () => undefined,
    (thrown) => thrown,
  );
  expect(error).toMatchObject({ code: '23514' });
  expect(Bun.inspect(error)).not.toContain(name);
  const data = { ...faulty.retryableWrite().data, name };
  const answer = await faulty.service.post(
    `/v2/authentication-realms/${faulty.fixture.realm}/user-authentication-info`,
    await faulty.service.token('users:write'),
    { data },
  );
  expect([answer.status, (await answer.text()).includes(name)]).toEqual([500, false]);
  expect(faults().at(-1)).toMatchObject({ code: 'internal', cause: '23514' });
  expect(JSON.stringify(faulty.service.log)).not.toContain(name);
  await execute('alter table user_info drop constraint odd');
});

test.each(['40001', '40P01'])(
  'a transaction that fails with a serialization failure or a deadlock is retried: %s',
  async (state) => {
    await execute(
      'create sequence tries',
      `create function conflict() returns trigger language plpgsql as $$ begin
       if nextval('tries') < 4 then raise exception using errcode = '${state}'; end if; return null; end $$`,
      'create trigger conflict after insert on user_info for each row execute function conflict()',
    );
    expect((await faulty.write()).status).toBe(201);
    await execute('drop trigger conflict on user_info', 'drop function conflict', 'drop sequence tries');
  },
);

test('a transaction that always fails with a serialization failure is answered with 503', async () => {
  await execute(
    `create function conflict() returns trigger language plpgsql as $$ begin
       raise exception using errcode = '40001'; end $$`,
    'create trigger conflict after insert on user_info for each row execute function conflict()',
  );
  expect((await faulty.write()).status).toBe(503);
  expect(faults().at(-1)).toMatchObject({ code: 'unavailable', cause: '40001' });
  await execute('drop trigger conflict on user_info', 'drop function conflict');
});
