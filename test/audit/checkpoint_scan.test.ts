import { afterEach, beforeEach, expect, setDefaultTimeout, test } from 'bun:test';
import { readLine } from '../../src/audit/checkpoint.ts';
import { type Checkpoints, startCheckpoints } from '../../src/audit/checkpoints.ts';
import type { LogStore } from '../../src/audit/port.ts';
import { NIL_UUID, type Uuid } from '../../src/domain/id.ts';
import { openLeases } from '../../src/jobs/leases.ts';
import { systemClock } from '../../src/platform/clock.ts';
import { type OpenDatabase, openDatabase } from '../../src/service/open_database.ts';
import { freshDatabase, type TestDatabase } from '../support/database.ts';
import { plant } from '../support/service.ts';

/** Of which logs a place outside of the database is told, minute by minute. */

setDefaultTimeout(300_000);

const EVERY_MS = 20;

let database: TestDatabase;
let db: OpenDatabase;
let checkpoints: Checkpoints;
let one: Uuid;
let other: Uuid;
/** Where logs were when it was told of them, in that order. */
let told: (readonly [log: Uuid, position: number])[];
let looks: number;
/** Whether the place is away, from the next look on; and in this one. */
let isAway: boolean;
let isMissed: boolean;

beforeEach(async () => {
  database = await freshDatabase();
  db = await openDatabase(database.settings(), systemClock);
  [one, other] = (await Promise.all([plant(db), plant(db)])).map(({ realm }) => realm) as [Uuid, Uuid];
  [told, looks, isAway, isMissed] = [[], 0, false, false];
  checkpoints = startCheckpoints(
    {
      store: watched(db.engine.log),
      leases: openLeases(db.engine.leases, 10_000, systemClock),
      keys: db.logKeys,
      sinks: [async (lines) => keep(lines)],
      clock: systemClock,
      retentionDays: 90,
      name: 'looks',
      onError: () => undefined,
    },
    EVERY_MS,
  );
});

afterEach(async () => {
  await checkpoints.stop();
  await db.engine.close();
});

function watched(log: LogStore): LogStore {
  return {
    ...log,
    heads(after, limit) {
      // The first page of a look.
      if (after === undefined) [looks, isMissed] = [looks + 1, isAway];
      return log.heads(after, limit);
    },
  };
}

function keep(lines: readonly string[]): void {
  if (isMissed) throw new Error('away');
  for (const text of lines) {
    const line = readLine(text, db.logKeys);
    if (line.kind !== 'checkpoint') continue;
    told.push(...line.logs.map(({ log, position }) => [log, position] as const));
  }
}

/** A look begins and ends from here on. */
async function looked(): Promise<void> {
  const enough = looks + 2;
  while (looks < enough) await Bun.sleep(5);
}

/** Nothing that is done from here on is told before the place is back: a look at which it was there has ended. */
async function leave(): Promise<void> {
  isAway = true;
  await looked();
}

/** What was done until now is told, all at once. */
async function returned(): Promise<void> {
  isAway = false;
  await looked();
}

async function positionOf(log: Uuid): Promise<number> {
  return (await db.engine.log.head(log))?.chain?.end.seq ?? 0;
}

const [SPARE, TWIN] = [
  '00000000-0000-7000-8000-000000000001',
  '00000000-0000-7000-8000-000000000002',
] as Uuid[] as [Uuid, Uuid];
const END = 'seq, tagged_seq, tag, entries';
const ANCHOR = 'anchor_seq, anchor_tag, anchor_entries, anchor_mac, moved';

/** Makes a log that says what this one does of itself. */
function keepClock(log: Uuid, as: Uuid): Promise<unknown> {
  const columns = `${END}, ${ANCHOR}`;
  const text = `insert into realm_clock (realm_id, ${columns}) select '${as}', ${columns} from realm_clock where realm_id = ?`;
  return database.spoil(text, log);
}

/** Has a log say of its end what another one does. */
function setClock(log: Uuid, as: Uuid): Promise<unknown> {
  const said = `select ${END} from realm_clock where realm_id = ?`;
  return database.spoil(`update realm_clock set (${END}) = (${said}) where realm_id = ?`, as, log);
}

test('all are told of once, and then those that moved', async () => {
  await looked();
  const logs = [NIL_UUID, ...[one, other].toSorted()];
  expect(told).toEqual(await Promise.all(logs.map(async (log) => [log, await positionOf(log)] as const)));
  await looked();
  expect(told.length).toBe(logs.length);
  await plant(db, { realm: one });
  await looked();
  expect(new Set(told.slice(logs.length).map(([log]) => log))).toEqual(new Set([one]));
  expect(told.at(-1)).toEqual([one, await positionOf(one)]);
});

test('one that moved while the place was away is told once it is back', async () => {
  await looked();
  await leave();
  told = [];
  await plant(db, { realm: other });
  await looked();
  await returned();
  expect(told).toEqual([[other, await positionOf(other)]]);
});

test('one that a stranger keeps from looking as if it had moved is told', async () => {
  await looked();
  await leave();
  await plant(db, { realm: one });
  await database.spoil('update realm_clock set moved = 0 where realm_id = ?', one);
  await returned();
  expect(told.at(-1)).toEqual([one, await positionOf(one)]);
});

test.each(['tag', 'anchor_tag', 'anchor_mac'])(
  'one whose %s a stranger took away is told',
  async (column) => {
    await looked();
    await leave();
    await plant(db, { realm: one });
    await database.spoil(`update realm_clock set ${column} = null where realm_id = ?`, one);
    await returned();
    expect(told.at(-1)).toEqual([one, await positionOf(one)]);
  },
);

test('one that a stranger puts back to where it was told of before is told of again', async () => {
  await keepClock(one, SPARE);
  const before = await positionOf(one);
  await looked();
  await plant(db, { realm: one });
  await looked();
  told = [];
  await setClock(one, SPARE);
  await looked();
  expect(told).toEqual([[one, before]]);
});

test('one whose end a stranger first has told as that of another log is told all the same', async () => {
  await keepClock(one, SPARE);
  await looked();
  await leave();
  await plant(db, { realm: one });
  await keepClock(one, TWIN);
  await setClock(one, SPARE);
  await returned();
  expect(told.at(-1)?.[0]).toBe(TWIN);
  told = [];
  await setClock(one, TWIN);
  await looked();
  expect(told).toEqual([[one, await positionOf(one)]]);
});

test('one whose end is another one at the same place, as after a failover, is told once more', async () => {
  await looked();
  told = [];
  await database.spoil(
    'update realm_clock set tag = (select tag from change where realm_id = ? and seq = 1) where realm_id = ?',
    ...[other, one],
  );
  await looked();
  expect(told).toEqual([[one, await positionOf(one)]]);
});

test('one whose entries of an older release were adopted is told', async () => {
  await database.spoil(
    `insert into change (realm_id, seq, event, user_id, record_id, revision, members, actor, request_id, at)
       select realm_id, seq + 1, event, user_id, record_id, revision, members, actor, request_id, at
       from change where realm_id = ? order by seq desc limit 1`,
    one,
  );
  await database.spoil('update realm_clock set seq = seq + 1 where realm_id = ?', one);
  await looked();
  told = [];
  const before = await positionOf(one);
  await db.engine.log.catchUp(systemClock.now());
  await looked();
  expect(told).toContainEqual([one, before + 1]);
});

test('a stranger who cuts a tag short keeps no other log from being told', async () => {
  await looked();
  told = [];
  for (const length of [3, 0]) {
    await database.spoil(`update realm_clock set tag = substr(tag, 1, ${length}) where realm_id = ?`, one);
    await plant(db, { realm: other });
    await looked();
    expect(told).toContainEqual([other, await positionOf(other)]);
  }
});
