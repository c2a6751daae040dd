import { describe, expect, setDefaultTimeout, test } from 'bun:test';
import { resumeChain, sealAnchor, startChain } from '../../src/audit/chain.ts';
import { type Checkpoint, checkpointLine, readLine } from '../../src/audit/checkpoint.ts';
import type { Anchor } from '../../src/audit/port.ts';
import { headsOf, verifyLogs } from '../../src/audit/verify.ts';
import { changeOf } from '../../src/domain/change.ts';
import { NIL_UUID, type Uuid } from '../../src/domain/id.ts';
import { realm, user } from '../../src/domain/resources.ts';
import { systemClock } from '../../src/platform/clock.ts';
import { type OpenDatabase, openDatabase } from '../../src/service/open_database.ts';
import { freshDatabase, type TestDatabase } from '../support/database.ts';
import { realmMembers, stamped, userMembers } from '../support/service.ts';

/** What somebody does to the beginning of a log who has the database and the master key; and what retention does to it. */

setDefaultTimeout(300_000);

const DAY_MS = 86_400_000;
const START = Date.parse('2026-01-01T00:00:00Z');
const WRITES = 10;

interface World {
  readonly database: TestDatabase;
  readonly db: OpenDatabase;
  readonly id: Uuid;
  /** One a day, each said behind the entry of that day. */
  readonly checkpoints: readonly Checkpoint[];
}

/** A realm in which one entry was written each day, the first one at the start. */
async function inWorld(work: (world: World) => Promise<void>): Promise<void> {
  const database = await freshDatabase();
  const db = await openDatabase(database.settings(), systemClock);
  try {
    const id = systemClock.mintId();
    const checkpoints: Checkpoint[] = [];
    for (let day = 0; day < WRITES; day += 1) {
      await write(db, id, START + day * DAY_MS);
      checkpoints.push(...(await told(db, id, START + day * DAY_MS + 30_000)));
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
  const record = stamped(key as [Uuid], isFirst ? realmMembers : userMembers);
  const origin = { actor: 'test', requestId: undefined, address: undefined, at };
  const change = changeOf(resource, 'created', { key: key as [Uuid], revision: record.revision }, origin);
  const writes = [{ op: 'insert', resource, key: key as [Uuid], record, change }] as const;
  expect(await db.engine.records.commit(writes)).toEqual({ kind: 'written' });
}

/** What a service says of a log that keeps entries for 90 days, or so many. */
async function told({ engine, logKeys }: OpenDatabase, of: Uuid, at: number, retentionDays = 90) {
  const heads = await Array.fromAsync(headsOf(engine.log));
  const line = readLine(checkpointLine(heads, { at, retentionDays }, logKeys), logKeys);
  return line.kind === 'checkpoint' && line.isSigned ? line.logs.filter(({ log }) => log === of) : [];
}

async function verify({ engine, logKeys }: OpenDatabase, checkpoints: readonly Checkpoint[], now: number) {
  const says: [number | undefined, string][] = [];
  await verifyLogs({
    store: engine.log,
    keys: logKeys,
    checkpoints,
    now: () => now,
    onFinding: ({ log, seq, message: what }) => says.push([log === NIL_UUID ? -1 : seq, what]),
  });
  return says;
}

/** Removes what stands in the first places, and seals the beginning behind it: by hand, and with the installation's keys. */
async function begin({ database, db, id }: World, behind: number, forged?: Anchor): Promise<void> {
  const head = await db.engine.log.head(id);
  const chain = resumeChain(db.logKeys, head?.chain?.anchor as Anchor);
  for (const { seq, columns } of await db.engine.log.entries(id, 0, 1_000)) {
    if (seq <= behind) chain.next(seq, Object.values(columns));
  }
  const { seq, tag, entries, mac } = forged ?? sealAnchor(db.logKeys, id, chain);
  const say = (bytes: Uint8Array) => {
    const hex = Buffer.from(bytes).toString('hex');
    return database.address.engine === 'postgres' ? `decode('${hex}', 'hex')` : `x'${hex}'`;
  };
  await database.spoil(`delete from change where realm_id = ? and seq <= ${seq}`, id);
  await database.spoil(
    `update realm_clock set anchor_seq = ${seq}, anchor_tag = ${say(tag)}, anchor_entries = ${entries},
       anchor_mac = ${say(mac)} where realm_id = ?`,
    id,
  );
}

const NOW = START + WRITES * DAY_MS;
const TOO_YOUNG = 'entries before this one were removed, and they were too recent for retention';
const TOO_EARLY = expect.stringContaining('covers this entry, and it was removed too early for retention');

describe('who has the database and the master key, and moves the beginning of a log', () => {
  test('anywhere before the last checkpoint, to it, or behind it, is found by checkpoints alone', async () => {
    for (let behind = 1; behind <= WRITES; behind += 1) {
      await inWorld(async (world) => {
        await write(world.db, world.id, NOW);
        await begin(world, behind);
        expect(await verify(world.db, [], NOW)).toEqual([]);
        expect(await verify(world.db, world.checkpoints, NOW)).toEqual([
          [behind + 1, TOO_YOUNG],
          [1, TOO_EARLY],
        ]);
        // The newest one alone, as where a sink keeps no more.
        const newest = world.checkpoints.slice(-1);
        expect(await verify(world.db, newest, NOW)).toContainEqual([behind + 1, TOO_YOUNG]);
      });
    }
  });

  test('a log start moved to its end is found, and so is a backdated entry after it', () =>
    inWorld(async (world) => {
      await begin(world, WRITES);
      expect(await verify(world.db, [], NOW)).toEqual([
        [WRITES, 'no entry is left, and retention always leaves one'],
      ]);
      await write(world.db, world.id, START - 365 * DAY_MS);
      expect(await verify(world.db, [], NOW)).toEqual([]);
      expect(await verify(world.db, world.checkpoints, NOW)).toEqual([[1, TOO_EARLY]]);
      expect(await verify(world.db, world.checkpoints.slice(-1), NOW)).toEqual([[WRITES, TOO_EARLY]]);
    }));

  test('so that it looks as if it had begun there is found', () =>
    inWorld(async (world) => {
      await write(world.db, world.id, NOW);
      await begin(world, WRITES, startChain(world.db.logKeys, world.id, WRITES).anchor);
      const says = (await verify(world.db, world.checkpoints, NOW)).map(([, what]) => what);
      expect(says).toContainEqual(expect.stringContaining('the log was recreated'));
      expect(says).toContainEqual(expect.stringContaining('this entry differs from a checkpoint'));
    }));

  test('behind what is old enough, with what is not, is found', () =>
    inWorld(async (world) => {
      // Five entries are older than 90 days, and the fifth stays.
      const now = START + (90 + 5) * DAY_MS - 1;
      await begin(world, 4);
      expect(await verify(world.db, world.checkpoints, now)).toEqual([]);
      await begin(world, 5);
      expect(await verify(world.db, world.checkpoints, now)).toEqual([[6, TOO_YOUNG]]);
    }));

  test('under checkpoints that say so later is found by those from before', () =>
    inWorld(async (world) => {
      await begin(world, 5);
      const after = await told(world.db, world.id, NOW);
      expect(await verify(world.db, [...world.checkpoints, ...after], NOW)).toEqual([
        [6, TOO_YOUNG],
        [1, TOO_EARLY],
      ]);
    }));

  test('leaves every checkpoint behind it to be compared', () =>
    inWorld(async (world) => {
      const now = START + 200 * DAY_MS;
      await begin(world, 4);
      const checkpoints = world.checkpoints.map((each) =>
        each.position === 7 ? { ...each, tag: '00'.repeat(32) } : each,
      );
      expect(await verify(world.db, checkpoints, now)).toEqual([
        [7, expect.stringContaining('this entry differs from a checkpoint')],
      ]);
    }));
});

describe('what retention removes', () => {
  test(
    'is believed, at any hour, by all checkpoints and by the newest alone',
    () =>
      inWorld(async ({ db, id, checkpoints }) => {
        for (let hour = 0; hour < 24 * (WRITES + 2); hour += 7) {
          const now = START + 90 * DAY_MS + hour * 3_600_000;
          await db.engine.log.trim(id, now - 90 * DAY_MS);
          for (const known of [checkpoints, checkpoints.slice(-1), []]) {
            expect([hour, await verify(db, known, now)]).toEqual([hour, []]);
          }
        }
        expect((await db.engine.log.entries(id, 0, 100)).map(({ seq }) => seq)).toEqual([WRITES]);
      }),
    300_000,
  );

  test('is believed after it was told to keep more, and after it was told to keep less', () =>
    inWorld(async ({ db, id, checkpoints }) => {
      await db.engine.log.trim(id, NOW - 3 * DAY_MS);
      expect(await verify(db, checkpoints, NOW)).not.toEqual([]);
      const shorter = await told(db, id, NOW, 3);
      expect(await verify(db, [...checkpoints, ...shorter], NOW)).toEqual([]);
      const longer = await told(db, id, NOW + DAY_MS, 365);
      expect(await verify(db, [...checkpoints, ...shorter, ...longer], NOW + DAY_MS)).toEqual([]);
    }));

  test('leaves the newest that is old, and takes it when a younger one is', () =>
    inWorld(async ({ db, id }) => {
      const { log } = db.engine;
      const left = async () => (await log.entries(id, 0, 100)).map(({ seq }) => seq)[0];
      expect([await log.trim(id, START + 1), await left()]).toEqual([0, 1]);
      expect([await log.trim(id, START + DAY_MS + 1), await left()]).toEqual([1, 2]);
      expect([await log.trim(id, START + DAY_MS + 2), await left()]).toEqual([0, 2]);
      expect([await log.trim(id, START + 5 * DAY_MS + 1), await left()]).toEqual([4, 6]);
    }));
});
