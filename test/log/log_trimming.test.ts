import { describe, expect, setDefaultTimeout, test } from 'bun:test';
import type { OpenDatabase } from '../../src/app/open_database.ts';
import type { Anchor } from '../../src/log/chain.ts';
import { resumeChain, sealAnchor, startChain } from '../../src/log/chain.ts';
import { type Checkpoint, checkpointLine, readLine } from '../../src/log/checkpoint.ts';
import { headsOf, verifyLogs } from '../../src/log/verify.ts';
import { NIL_UUID, type Uuid } from '../../src/model/id.ts';
import { changeOf } from '../../src/model/log/change.ts';
import { realm, user } from '../../src/model/resources.ts';
import { systemClock } from '../../src/ops/process/clock.ts';
import { openFreshDatabase, type TestDatabase } from '../support/database.ts';
import { ofRealm } from '../support/log_rows.ts';
import { buildRecord, realmMembers, userMembers } from '../support/service.ts';
import { sqlLiteral } from '../support/tampered_logs.ts';

/** The start of a log: moved by an attacker with the database and the master key, and by retention. */

setDefaultTimeout(300_000);

const DAY_MS = 86_400_000;
const START = Date.parse('2026-01-01T00:00:00Z');
const WRITES = 10;

interface TestLog {
  readonly database: TestDatabase;
  readonly db: OpenDatabase;
  readonly id: Uuid;
  /** One a day, each written after the entry of that day. */
  readonly checkpoints: readonly Checkpoint[];
}

/** A realm in which one entry was written each day, the first one at the start. */
async function withLog(work: (testLog: TestLog) => Promise<void>): Promise<void> {
  const { database, db } = await openFreshDatabase();
  try {
    const id = systemClock.mintId();
    const checkpoints: Checkpoint[] = [];
    for (let day = 0; day < WRITES; day += 1) {
      await write(db, id, START + day * DAY_MS);
      checkpoints.push(...(await checkpointsAt(db, id, START + day * DAY_MS + 30_000)));
    }
    await work({ database, db, id, checkpoints });
  } finally {
    await db.engine.close();
  }
}

async function write(db: OpenDatabase, id: Uuid, at: number): Promise<void> {
  const isFirst = (await db.engine.log.head(id)) === undefined;
  const resource = isFirst ? realm : user;
  const key = isFirst ? [id] : [id, systemClock.mintId()];
  const record = buildRecord(key as [Uuid], isFirst ? realmMembers : userMembers);
  const origin = { actor: 'test', requestId: undefined, address: undefined, at };
  const change = changeOf(resource, 'created', { key: key as [Uuid], revision: record.revision }, origin);
  const writes = [{ op: 'insert', resource, key: key as [Uuid], record, change }] as const;
  expect(await db.engine.records.commit(writes)).toEqual({ kind: 'written' });
}

/** The checkpoints that a service with this retention writes of a log. */
async function checkpointsAt(
  { engine, logKeys }: OpenDatabase,
  realmId: Uuid,
  at: number,
  retentionDays = 90,
) {
  const heads = await Array.fromAsync(headsOf(engine.log));
  const line = readLine(checkpointLine(heads, { at, retentionDays }, logKeys), logKeys);
  return line.kind === 'checkpoint' && line.isSigned ? line.logs.filter(({ log }) => log === realmId) : [];
}

async function verify({ engine, logKeys }: OpenDatabase, checkpoints: readonly Checkpoint[], now: number) {
  const verified = await verifyLogs({ store: engine.log, keys: logKeys, checkpoints, now: () => now });
  return verified.findings.map(({ log, seq, message }) => [log === NIL_UUID ? -1 : seq, message]);
}

/** Removes the first entries and seals the start after them: by SQL, with the keys of the installation. */
async function moveStart({ database, db, id }: TestLog, lastRemoved: number, forged?: Anchor): Promise<void> {
  const head = await db.engine.log.head(id);
  const chain = resumeChain(db.logKeys, head?.chain?.anchor as Anchor);
  for (const { seq, columns } of await db.engine.log.entries(id, 0, 1_000)) {
    if (seq <= lastRemoved) chain.next(seq, Object.values(columns));
  }
  const { seq, tag, entries, mac } = forged ?? sealAnchor(db.logKeys, id, chain);
  await database.tamper(
    `delete from log_entry where ${ofRealm(database.address.engine)} and seq <= ${seq}`,
    id,
  );
  await database.tamper(
    `update realm_clock set anchor_seq = ${seq}, anchor_tag = ${sqlLiteral(database, tag)},
       anchor_entries = ${entries}, anchor_mac = ${sqlLiteral(database, mac)} where realm_id = ?`,
    id,
  );
}

const NOW = START + WRITES * DAY_MS;
const TOO_YOUNG = 'entries before this one were removed, but they were too recent for retention';
const TOO_EARLY = expect.stringContaining('covers this entry, but it was removed too early for retention');

describe('a log start moved with the master key', () => {
  test('a log start moved to any position is found by checkpoints alone', async () => {
    for (let lastRemoved = 1; lastRemoved <= WRITES; lastRemoved += 1) {
      await withLog(async (testLog) => {
        await write(testLog.db, testLog.id, NOW);
        await moveStart(testLog, lastRemoved);
        expect(await verify(testLog.db, [], NOW)).toEqual([]);
        expect(await verify(testLog.db, testLog.checkpoints, NOW)).toEqual([
          [lastRemoved + 1, TOO_YOUNG],
          [1, TOO_EARLY],
        ]);
        // The newest checkpoint alone, as where a sink stores no more.
        const newest = testLog.checkpoints.slice(-1);
        expect(await verify(testLog.db, newest, NOW)).toContainEqual([lastRemoved + 1, TOO_YOUNG]);
      });
    }
  });

  test('a log start moved to its end is found, and so is a backdated entry after it', () =>
    withLog(async (testLog) => {
      await moveStart(testLog, WRITES);
      expect(await verify(testLog.db, [], NOW)).toEqual([
        [WRITES, 'no entry is left, and retention always leaves one'],
      ]);
      await write(testLog.db, testLog.id, START - 365 * DAY_MS);
      expect(await verify(testLog.db, [], NOW)).toEqual([]);
      expect(await verify(testLog.db, testLog.checkpoints, NOW)).toEqual([[1, TOO_EARLY]]);
      expect(await verify(testLog.db, testLog.checkpoints.slice(-1), NOW)).toEqual([[WRITES, TOO_EARLY]]);
    }));

  test('a log start forged as the creation of the log is found', () =>
    withLog(async (testLog) => {
      await write(testLog.db, testLog.id, NOW);
      await moveStart(testLog, WRITES, startChain(testLog.db.logKeys, testLog.id, WRITES).anchor);
      const messages = (await verify(testLog.db, testLog.checkpoints, NOW)).map(([, message]) => message);
      expect(messages).toContainEqual(expect.stringContaining('the log was recreated'));
      expect(messages).toContainEqual(expect.stringContaining('this entry differs from a checkpoint'));
    }));

  test('a log start moved past an entry too recent for retention is found', () =>
    withLog(async (testLog) => {
      // Five entries are older than 90 days, and the fifth stays.
      const now = START + (90 + 5) * DAY_MS - 1;
      await moveStart(testLog, 4);
      expect(await verify(testLog.db, testLog.checkpoints, now)).toEqual([]);
      await moveStart(testLog, 5);
      expect(await verify(testLog.db, testLog.checkpoints, now)).toEqual([[6, TOO_YOUNG]]);
    }));

  test('a moved log start that later checkpoints confirm is found by earlier ones', () =>
    withLog(async (testLog) => {
      await moveStart(testLog, 5);
      const after = await checkpointsAt(testLog.db, testLog.id, NOW);
      expect(await verify(testLog.db, [...testLog.checkpoints, ...after], NOW)).toEqual([
        [6, TOO_YOUNG],
        [1, TOO_EARLY],
      ]);
    }));

  test('checkpoints after a moved log start are still compared', () =>
    withLog(async (testLog) => {
      const now = START + 200 * DAY_MS;
      await moveStart(testLog, 4);
      const checkpoints = testLog.checkpoints.map((each) =>
        each.position === 7 ? { ...each, tag: '00'.repeat(32) } : each,
      );
      expect(await verify(testLog.db, checkpoints, now)).toEqual([
        [7, expect.stringContaining('this entry differs from a checkpoint')],
      ]);
    }));
});

describe('entries removed by retention', () => {
  test(
    'a log trimmed by retention verifies clean at any hour, with all, the newest and no checkpoints',
    () =>
      withLog(async ({ db, id, checkpoints }) => {
        for (let hour = 0; hour < 24 * (WRITES + 2); hour += 7) {
          const now = START + 90 * DAY_MS + hour * 3_600_000;
          await db.engine.log.trim(id, now - 90 * DAY_MS);
          for (const given of [checkpoints, checkpoints.slice(-1), []]) {
            expect([hour, await verify(db, given, now)]).toEqual([hour, []]);
          }
        }
        expect((await db.engine.log.entries(id, 0, 100)).map(({ seq }) => seq)).toEqual([WRITES]);
      }),
    300_000,
  );

  test('a log trimmed by retention verifies clean after its days were reduced and extended', () =>
    withLog(async ({ db, id, checkpoints }) => {
      await db.engine.log.trim(id, NOW - 3 * DAY_MS);
      expect(await verify(db, checkpoints, NOW)).not.toEqual([]);
      const shorter = await checkpointsAt(db, id, NOW, 3);
      expect(await verify(db, [...checkpoints, ...shorter], NOW)).toEqual([]);
      const longer = await checkpointsAt(db, id, NOW + DAY_MS, 365);
      expect(await verify(db, [...checkpoints, ...shorter, ...longer], NOW + DAY_MS)).toEqual([]);
    }));

  test('retention keeps the newest expired entry, and removes it when a later entry expires', () =>
    withLog(async ({ db, id }) => {
      const { log } = db.engine;
      const left = async () => (await log.entries(id, 0, 100)).map(({ seq }) => seq)[0];
      expect([await log.trim(id, START + 1), await left()]).toEqual([0, 1]);
      expect([await log.trim(id, START + DAY_MS + 1), await left()]).toEqual([1, 2]);
      expect([await log.trim(id, START + DAY_MS + 2), await left()]).toEqual([0, 2]);
      expect([await log.trim(id, START + 5 * DAY_MS + 1), await left()]).toEqual([4, 6]);
    }));
});
