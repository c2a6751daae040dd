import { afterAll, beforeAll, expect, test } from 'bun:test';
import { SQL } from 'bun';
import type { LogFinding } from '../../src/audit/chain_verifier.ts';
import { openRefusedAccessLog } from '../../src/audit/refused_access_log.ts';
import { openTokenGrantLog } from '../../src/audit/token_grant_log.ts';
import { verifyLogs } from '../../src/audit/verify.ts';
import { draftDescribed } from '../../src/directory/draft.ts';
import { createAuditEntry } from '../../src/domain/audit_entry.ts';
import { user } from '../../src/domain/resources.ts';
import { systemClock } from '../../src/platform/clock.ts';
import { databaseBy, startTroubled, type Troubled } from '../support/fault_injection.ts';
import { sharedServer } from '../support/postgres_server.ts';
import { startTcpProxy, type TcpProxy } from '../support/tcp_proxy.ts';

/** Commits whose fate nobody knows, and transactions that are in each other's way (issue 5, point 3). */

/** The end of a transaction on the wire; its beginning says `read committed`. */
const COMMIT = 'commit\0';

let proxy: TcpProxy;
let troubled: Troubled;

beforeAll(async () => {
  const server = await sharedServer();
  proxy = await startTcpProxy(server.port);
  // A statement that is not prepared is said in full each time, so that the proxy knows it.
  troubled = await startTroubled(await databaseBy(server, [proxy.port], '?prepare=off'));
}, 300_000);
afterAll(async () => {
  await troubled.stop().catch(() => undefined);
  proxy.stop();
});

async function spoil(...statements: readonly string[]): Promise<void> {
  const sql = new SQL(troubled.service.database.url, { max: 1 });
  for (const statement of statements) await sql.unsafe(statement);
  await sql.close();
}

const faults = () => troubled.service.log.filter((record) => record.event === 'fault');

test.each([
  ['unanswered', 1],
  ['unheard', 0],
  ['silent', 1],
] as const)(
  'a commit that goes %s: the caller is told that nobody knows, and repeats it safely',
  async (fate, landed) => {
    const before = await troubled.users();
    const asked = troubled.repeatable();
    const sprung = proxy.trap(COMMIT, fate);
    const first = await troubled.write(asked);
    await sprung;
    expect([first.status, await first.answer.text()]).toEqual([
      503,
      expect.stringContaining('may have landed'),
    ]);
    expect(faults().at(-1)).toMatchObject({ code: 'unknown_outcome' });
    expect((await troubled.users()).size).toBe(before.size + landed);
    await troubled.recovered();
    const between = await troubled.users();
    const second = await troubled.write(asked);
    const third = await troubled.write(asked);
    expect([second.status, third.status, third.id]).toEqual([201, 201, second.id]);
    const after = await troubled.users();
    expect([after.has(second.id as string), after.size - between.size]).toEqual([true, 1 - landed]);
  },
  300_000,
);

test.each([
  ['unanswered', 'grants'],
  ['unheard', 'grants'],
  ['silent', 'grants'],
  ['unanswered', 'refusals'],
  ['unheard', 'refusals'],
] as const)(
  'a commit of acts that goes %s is repeated, and each is one entry: %s',
  async (fate, kind) => {
    const { database, db } = troubled.service;
    const { log } = db.engine;
    const count = async () => {
      const acts = await database.ask<{ actor: string; detail: string }>('select actor, detail from act');
      return acts.filter(({ actor, detail }) => (actor + detail).includes(mark)).length;
    };
    const mark = systemClock.mintId();
    const sprung = proxy.trap(COMMIT, fate);
    if (kind === 'grants') {
      const told: number[] = [];
      const notes = openTokenGrantLog(log, systemClock, ({ waiting }) => told.push(waiting));
      const id = systemClock.mintId();
      await notes.append(createAuditEntry('token.granted', { id, detail: { mark } }, systemClock));
      await sprung;
      expect(told).toEqual([1]);
      await troubled.recovered();
      while (told.length < 2) await Bun.sleep(20);
      await notes.stop();
    } else {
      const refusals = openRefusedAccessLog(log, systemClock, 20);
      refusals.count({ clientId: mark, address: undefined }, 'no token');
      await sprung;
      await troubled.recovered();
      refusals.count({ clientId: `later ${mark}`, address: undefined }, 'no token');
      while ((await count()) < 2) await Bun.sleep(20);
      await refusals.stop();
    }
    expect(await count()).toBe(kind === 'grants' ? 1 : 2);
    const findings: string[] = [];
    const { engine, logKeys } = db;
    const onFinding = (found: LogFinding) => findings.push(found.message);
    await verifyLogs({
      store: engine.log,
      keys: logKeys,
      checkpoints: [],
      now: systemClock.now,
      onFinding,
    });
    expect(findings).toEqual([]);
  },
  300_000,
);

test('what the engine says about values reaches no log and no answer', async () => {
  const name = 'name-that-nobody-may-see';
  const { records } = troubled.service.db.engine;
  await spoil(`alter table user_info add constraint odd check (name <> '${name}')`);
  const key = [troubled.planted.realm, systemClock.mintId()] as const;
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
  const data = { ...troubled.repeatable().data, name };
  const answer = await troubled.service.post(
    `/v2/authentication-realms/${troubled.planted.realm}/user-authentication-info`,
    await troubled.service.token('users:write'),
    { data },
  );
  expect([answer.status, (await answer.text()).includes(name)]).toEqual([500, false]);
  expect(faults().at(-1)).toMatchObject({ code: 'internal', cause: '23514' });
  expect(JSON.stringify(troubled.service.log)).not.toContain(name);
  await spoil('alter table user_info drop constraint odd');
});

test.each(['40001', '40P01'])(
  'a transaction that is in the way of another is repeated: %s',
  async (state) => {
    await spoil(
      'create sequence tries',
      `create function meet() returns trigger language plpgsql as $$ begin
       if nextval('tries') < 4 then raise exception using errcode = '${state}'; end if; return null; end $$`,
      'create trigger meet after insert on user_info for each row execute function meet()',
    );
    expect((await troubled.write()).status).toBe(201);
    await spoil('drop trigger meet on user_info', 'drop function meet', 'drop sequence tries');
  },
);

test('but not for ever', async () => {
  await spoil(
    `create function meet() returns trigger language plpgsql as $$ begin
       raise exception using errcode = '40001'; end $$`,
    'create trigger meet after insert on user_info for each row execute function meet()',
  );
  expect((await troubled.write()).status).toBe(503);
  expect(faults().at(-1)).toMatchObject({ code: 'unavailable', cause: '40001' });
  await spoil('drop trigger meet on user_info', 'drop function meet');
});
