import { afterEach, beforeEach, expect, setDefaultTimeout, test } from 'bun:test';
import { type OpenDatabase, openDatabase } from '../../src/app/open_database.ts';
import { readLine } from '../../src/log/checkpoint.ts';
import { type Checkpoints, startCheckpoints } from '../../src/log/checkpoints.ts';
import type { LogStore } from '../../src/log/store/reading.ts';
import { NIL_UUID, type Uuid } from '../../src/model/id.ts';
import { systemClock } from '../../src/ops/process/clock.ts';
import { openLease } from '../../src/sql/job_leases.ts';
import { freshDatabase, type TestDatabase } from '../support/database.ts';
import { createFixture } from '../support/service.ts';
import { sqlLiteral } from '../support/tampered_logs.ts';

/** Which logs a round of checkpoints writes to the file. */

setDefaultTimeout(300_000);

const EVERY_MS = 20;

let database: TestDatabase;
let db: OpenDatabase;
let checkpoints: Checkpoints;
let one: Uuid;
let other: Uuid;
/** The checkpoints that were appended, in order. */
let received: (readonly [log: Uuid, position: number])[];
let scans: number;
/** Whether the file cannot be written from the next scan on, and in the current one. */
let isFileDown: boolean;
let isScanLost: boolean;

beforeEach(async () => {
  database = await freshDatabase();
  db = await openDatabase(database.settings(), systemClock);
  [one, other] = (await Promise.all([createFixture(db), createFixture(db)])).map(({ realm }) => realm) as [
    Uuid,
    Uuid,
  ];
  [received, scans, isFileDown, isScanLost] = [[], 0, false, false];
  checkpoints = startCheckpoints(
    {
      store: countScans(db.engine.log),
      lease: openLease(db.engine.leases, 'checkpoints file', 10_000, systemClock),
      keys: db.logKeys,
      append: receive,
      clock: systemClock,
      retentionDays: 90,
      onError: () => undefined,
    },
    EVERY_MS,
  );
});

afterEach(async () => {
  await checkpoints.stop();
  await db.engine.close();
});

function countScans(log: LogStore): LogStore {
  return {
    ...log,
    heads(after, limit) {
      // The first page of a scan.
      if (after === undefined) [scans, isScanLost] = [scans + 1, isFileDown];
      return log.heads(after, limit);
    },
  };
}

function receive(lines: readonly string[]): void {
  if (isScanLost) throw new Error('down');
  for (const text of lines) {
    const line = readLine(text, db.logKeys);
    if (line.kind !== 'checkpoint') continue;
    received.push(...line.logs.map(({ log, position }) => [log, position] as const));
  }
}

/** Resolves after a scan has begun and ended. */
async function nextScan(): Promise<void> {
  const expected = scans + 2;
  while (scans < expected) await Bun.sleep(5);
}

/** Later changes are not written until it can be written: the last scan that could write has ended. */
async function stopWriting(): Promise<void> {
  isFileDown = true;
  await nextScan();
}

/** Makes the file writable again, and has everything until now written in one scan. */
async function restartWriting(): Promise<void> {
  isFileDown = false;
  await nextScan();
}

async function positionOf(log: Uuid): Promise<number> {
  return (await db.engine.log.head(log))?.chain?.end.seq ?? 0;
}

const [SPARE, TWIN] = [
  '00000000-0000-7000-8000-000000000001',
  '00000000-0000-7000-8000-000000000002',
] as Uuid[] as [Uuid, Uuid];
const END = 'seq, tag, entries';
const ANCHOR = 'anchor_seq, anchor_tag, anchor_entries, anchor_mac, moved';

/** The literals of columns of a row of the log, in order. Read first: two realms may be on different nodes of a cluster. */
async function literalsOf(columns: string, from: string, log: Uuid): Promise<string> {
  const text = `select ${columns} from ${from} where realm_id = ?`;
  const [row] = await database.queryChanges<Record<string, string | number | Uint8Array | null>>(text, log);
  return Object.values(row ?? {})
    .map((value) => sqlLiteral(database, value))
    .join(', ');
}

/** Creates a log with the head of this one. */
async function copyClock(log: Uuid, copy: Uuid): Promise<unknown> {
  const columns = `${END}, ${ANCHOR}`;
  const values = await literalsOf(columns, 'realm_clock', log);
  return database.tamper(`insert into realm_clock (realm_id, ${columns}) values (?, ${values})`, copy);
}

/** Gives a log the end of another one. */
async function setClock(log: Uuid, source: Uuid): Promise<unknown> {
  const end = await literalsOf(END, 'realm_clock', source);
  return database.tamper(`update realm_clock set (${END}) = (${end}) where realm_id = ?`, log);
}

test('the first scan writes checkpoints of all logs, later scans of the logs that moved', async () => {
  await nextScan();
  const logs = [NIL_UUID, ...[one, other].toSorted()];
  expect(received).toEqual(await Promise.all(logs.map(async (log) => [log, await positionOf(log)] as const)));
  await nextScan();
  expect(received.length).toBe(logs.length);
  await createFixture(db, { realm: one });
  await nextScan();
  expect(new Set(received.slice(logs.length).map(([log]) => log))).toEqual(new Set([one]));
  expect(received.at(-1)).toEqual([one, await positionOf(one)]);
});

test('a log that moved while the file could not be written is written once it is back', async () => {
  await nextScan();
  await stopWriting();
  received = [];
  await createFixture(db, { realm: other });
  await nextScan();
  await restartWriting();
  expect(received).toEqual([[other, await positionOf(other)]]);
});

test('a log that moved is written although its moved number was tampered with', async () => {
  await nextScan();
  await stopWriting();
  await createFixture(db, { realm: one });
  await database.tamper('update realm_clock set moved = 0 where realm_id = ?', one);
  await restartWriting();
  expect(received.at(-1)).toEqual([one, await positionOf(one)]);
});

test.each(['tag', 'anchor_tag', 'anchor_mac'])(
  'a log whose %s was removed by tampering is written',
  async (column) => {
    await nextScan();
    await stopWriting();
    await createFixture(db, { realm: one });
    await database.tamper(`update realm_clock set ${column} = null where realm_id = ?`, one);
    await restartWriting();
    expect(received.at(-1)).toEqual([one, await positionOf(one)]);
  },
);

test('a log set back to an earlier checkpoint by tampering is written again', async () => {
  await copyClock(one, SPARE);
  const before = await positionOf(one);
  await nextScan();
  await createFixture(db, { realm: one });
  await nextScan();
  received = [];
  await setClock(one, SPARE);
  await nextScan();
  expect(received).toEqual([[one, before]]);
});

test('a log is written although tampering first had its end written as that of another log', async () => {
  await copyClock(one, SPARE);
  await nextScan();
  await stopWriting();
  await createFixture(db, { realm: one });
  await copyClock(one, TWIN);
  await setClock(one, SPARE);
  await restartWriting();
  expect(received.at(-1)?.[0]).toBe(TWIN);
  received = [];
  await setClock(one, TWIN);
  await nextScan();
  expect(received).toEqual([[one, await positionOf(one)]]);
});

test('a log with another end at the same position, as after a failover, is written again', async () => {
  await nextScan();
  received = [];
  const tag = await literalsOf('tag', '(select * from change where seq = 1) as first', other);
  await database.tamper(`update realm_clock set tag = ${tag} where realm_id = ?`, one);
  await nextScan();
  expect(received).toEqual([[one, await positionOf(one)]]);
});

test('a log with a truncated tag keeps no other log from being written', async () => {
  await nextScan();
  received = [];
  for (const length of [3, 0]) {
    await database.tamper(`update realm_clock set tag = substr(tag, 1, ${length}) where realm_id = ?`, one);
    await createFixture(db, { realm: other });
    await nextScan();
    expect(received).toContainEqual([other, await positionOf(other)]);
  }
});
