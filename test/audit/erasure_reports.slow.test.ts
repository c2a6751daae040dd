import { afterAll, describe, expect, setDefaultTimeout, test } from 'bun:test';
import { existsSync, mkdirSync, readFileSync, rmSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { readLine } from '../../src/audit/checkpoint.ts';
import { type CheckpointSink, trackSink } from '../../src/audit/checkpoint_sink.ts';
import { writeErasures } from '../../src/audit/checkpoints.ts';
import type { Erasure } from '../../src/audit/port.ts';
import { readErasures } from '../../src/cli/restore.ts';
import { systemClock } from '../../src/platform/clock.ts';
import { EXIT } from '../../src/platform/exit.ts';
import { backUp } from '../../src/store/backups/backup.ts';
import { startAdminApi } from '../http/admin/admin_api.ts';
import { archiver, program, recordsIn, runOn, storedDatabase } from '../support/archive.ts';
import { freshDatabase, type TestDatabase } from '../support/database.ts';
import { withDatabase } from '../support/erasure_fixtures.ts';
import { AUTHREALM, endAll, runCommand, start } from '../support/processes.ts';
import { freshFolder, type Planted, plant, startService } from '../support/service.ts';

setDefaultTimeout(300_000);
afterAll(endAll);

/** That nobody is told of an erasure which does not stand outside of the database, and that each comes to stand there. */

type Person = Pick<Planted, 'realm' | 'user'>;

/** Erases a user in a process that is killed between the commit and what it would tell. */
async function eraseAndDie(flags: TestDatabase['flags'], { realm, user }: Person): Promise<void> {
  const script = join(import.meta.dir, '../support/kill_during_erasure.ts');
  const child = Bun.spawn([process.execPath, script, JSON.stringify(flags), realm, user], {
    stdio: ['ignore', 'ignore', 'inherit'],
  });
  await child.exited;
  expect(child.signalCode).toBe('SIGKILL');
}

/** The lines of a checkpoint file about erasures, as a restore reads them. */
function erasuresIn(path: string): readonly Record<string, string>[] {
  if (!existsSync(path)) return [];
  const lines = readFileSync(path, 'utf8').trim().split('\n');
  return lines.map((line) => JSON.parse(line)).filter(({ kind }) => kind === 'erasure');
}

/** A service that starts, tells what is to be told, and stops. */
async function serveOnce({ flags }: Pick<TestDatabase, 'flags'>, checkpointFile: string): Promise<void> {
  const service = await startService({ ...flags, checkpointFile });
  await service.stop();
}

const untoldIn = (database: TestDatabase) =>
  database.ask<{ user_id: string }>('select user_id from erasure where told_at is null');

describe('who was erased by a process that was killed before it told so', () => {
  test('is told by the next start of the service, once, signed, as of when it happened', async () => {
    const database = await freshDatabase();
    const planted = await withDatabase(database, plant);
    const before = systemClock.now();
    await eraseAndDie(database.flags, planted);
    expect(await database.ask('select 1 from user_info where id = ?', planted.user)).toEqual([]);
    expect(await untoldIn(database)).toEqual([{ user_id: planted.user }]);
    const path = join(freshFolder(), 'points');
    await serveOnce(database, path);
    const [told, ...more] = erasuresIn(path);
    expect(more).toEqual([]);
    const line = await withDatabase(database, async ({ logKeys }) => readLine(JSON.stringify(told), logKeys));
    expect(line).toMatchObject({ kind: 'erasure', realm: planted.realm, user: planted.user, isSigned: true });
    expect((line as Erasure).at).toBeWithin(before, systemClock.now() + 1);
    expect(await untoldIn(database)).toEqual([]);
    await serveOnce(database, path);
    expect(erasuresIn(path)).toHaveLength(1);
    // Erased once more, it happened once more.
    await eraseAndDie(database.flags, planted);
    await serveOnce(database, path);
    expect(erasuresIn(path)).toHaveLength(2);
  });

  test('is told by the next start, though the service that told of such was killed as well', async () => {
    const database = await freshDatabase();
    const planted = await withDatabase(database, plant);
    const path = join(freshFolder(), 'points');
    const words = ['serve', '--port', '0', '--checkpoint-file', path, ...database.words];
    const service = start([AUTHREALM, ...words]);
    while (!existsSync(path) || !readFileSync(path, 'utf8').endsWith('\n')) await Bun.sleep(20);
    service.process.kill('SIGKILL');
    await service.process.exited;
    await eraseAndDie(database.flags, planted);
    await serveOnce(database, path);
    expect(await database.ask(`select 1 from lease where name like 'checkpoints%'`)).toHaveLength(1);
    expect(erasuresIn(path)).toMatchObject([{ user_id: planted.user }]);
    expect(await untoldIn(database)).toEqual([]);
  });

  test('is told whatever rows somebody put beside it, and what is told can be read by a restore', async () => {
    const database = await freshDatabase();
    const planted = await withDatabase(database, plant);
    await eraseAndDie(database.flags, planted);
    const others = Array.from({ length: 4 }, () => systemClock.mintId());
    // Instants that no calendar has, or that ISO 8601 does not write with four digits.
    for (const [index, at] of [9e15, -9e15, -9e14, 3e14].entries()) {
      const values = `'${planted.realm}', '${others[index]}', ${at}`;
      await database.spoil(`insert into erasure (realm_id, user_id, at) values (${values})`);
    }
    // PostgreSQL has no room for what is no identifier.
    const isEmbedded = database.address.engine === 'sqlite';
    if (isEmbedded) {
      await database.spoil(`insert into erasure (realm_id, user_id, at) values ('nobody', 'at all', 1)`);
      await database.spoil(
        `insert into realm_clock (realm_id, seq, tagged_seq, tag, entries, anchor_seq, anchor_tag, anchor_entries, anchor_mac)
           values ('nobody', 1, 1, x'00', 1, 0, x'00', 0, x'00')`,
      );
    }
    const path = join(freshFolder(), 'points');
    await serveOnce(database, path);
    const keys = await withDatabase(database, async ({ logKeys }) => logKeys);
    const how = { name: path, keys, takesUnsigned: false };
    const { erasures } = await readErasures(Bun.file(path).stream(), how);
    const users = erasures.map(({ user }) => user);
    expect(users.toSorted()).toEqual([...others, planted.user].toSorted());
    expect(await untoldIn(database)).toEqual(isEmbedded ? [{ user_id: 'at all' }] : []);
  });

  test('does not come back with an older backup, whether the database is lost afterwards or replaced', async () => {
    for (const isLost of [true, false]) {
      const { path, planted } = await storedDatabase(2);
      const [gone, stays] = planted as [Planted, Planted];
      const backup = join(freshFolder(), 'taken.db');
      await backUp(path, { file: backup }, program, archiver);
      const flags = { database: `sqlite:${path}` };
      await eraseAndDie(flags, gone);
      if (isLost) {
        // The service tells it in a process of its own, so that nobody here has the file open.
        const service = start([AUTHREALM, 'serve', '--port', '0', '--database', flags.database]);
        await service.line(/listening on/);
        expect(await service.stop()).toBe(EXIT.done);
        for (const ending of ['', '-wal', '-shm']) rmSync(path + ending, { force: true });
      }
      const { code, stderr } = await runOn(path, 'restore', backup, '--replace');
      expect([code, stderr]).toEqual([EXIT.done, '']);
      const there = recordsIn(path);
      expect([there.has(gone.user), there.has(stays.user)]).toEqual([false, true]);
      const bytes = readFileSync(path);
      for (const text of [gone.subject, gone.username]) expect(bytes.includes(text)).toBe(false);
    }
  });
});

describe('erase user', () => {
  test('fails where it cannot be told outside, all else done; asked for again it succeeds', async () => {
    const database = await freshDatabase();
    const { realm, user } = await withDatabase(database, plant);
    const path = join(freshFolder(), 'missing', 'points');
    const words = ['erase', 'user', realm, user, ...database.words, '--checkpoint-file', path];
    const failed = await runCommand([AUTHREALM, ...words]);
    expect([failed.code, failed.stderr]).toEqual([
      EXIT.failed,
      expect.stringMatching(
        /is erased, but the erasure could not be recorded outside the database \(ENOENT\)/,
      ),
    ]);
    expect(failed.stdout).toMatch(/no erased data is left|archived write-ahead logs/);
    expect(await database.ask('select 1 from user_info where id = ?', user)).toEqual([]);
    mkdirSync(dirname(path));
    const done = await runCommand([AUTHREALM, ...words]);
    expect([done.code, done.stderr]).toEqual([EXIT.done, '']);
    expect(erasuresIn(path)).toMatchObject([{ realm_id: realm, user_id: user }]);
  });
});

describe('POST /admin/v1/erasures', () => {
  test('answers 503 where it cannot be told outside, and 201 once it stands there', async () => {
    const path = join(freshFolder(), 'missing', 'points');
    const api = await startAdminApi({ checkpointFile: path });
    const { realm, user } = await plant(api.service.db);
    const data = { realm_id: realm, user_id: user };
    const failed = await api.request('POST', '/erasures', { data });
    expect(failed.status).toBe(503);
    expect(await untoldIn(api.service.database)).toEqual([{ user_id: user }]);
    mkdirSync(dirname(path));
    const done = await api.request('POST', '/erasures', { data });
    expect(done.status).toBe(201);
    expect(erasuresIn(path)).toMatchObject([{ realm_id: realm, user_id: user }]);
    expect(await untoldIn(api.service.database)).toEqual([]);
    await api.service.stop();
    expect(erasuresIn(path)).toHaveLength(1);
  });
});

describe('erasures with several sinks', () => {
  test('are noted as written only when each sink has every line, and no sink gets a line twice meanwhile', async () => {
    const database = await freshDatabase();
    await withDatabase(database, async (db) => {
      const { engine, logKeys: keys } = db;
      const first = await plant(db);
      const people = [first.user];
      while (people.length < 120) people.push(systemClock.mintId());
      for (const user of people) {
        await database.spoil(
          'insert into erasure (realm_id, user_id, at) values (?, ?, 7)',
          first.realm,
          user,
        );
      }
      const told: string[][] = [[], []];
      let isAway = true;
      const outputs: readonly CheckpointSink[] = [
        async (lines) => {
          if (isAway) throw new Error('away');
          told[0]?.push(...lines);
        },
        async (lines) => void told[1]?.push(...lines),
      ];
      const sinks = outputs.map(trackSink);
      const tell = (now: number) => {
        for (const sink of sinks) sink.beginRound();
        return writeErasures({ store: engine.log, keys }, sinks, now);
      };
      for (let round = 0; round < 3; round += 1) await expect(tell(1)).rejects.toThrow('away');
      expect(told.map(({ length }) => length)).toEqual([0, 120]);
      expect(await untoldIn(database)).toHaveLength(120);
      isAway = false;
      await tell(1);
      await tell(2);
      expect(told.map(({ length }) => length)).toEqual([120, 120]);
      expect(await untoldIn(database)).toEqual([]);
    });
  });
});

test('a failed sink is not tried again before the next round', async () => {
  let asked = 0;
  const { write, beginRound } = trackSink(async () => {
    asked += 1;
    throw new Error(`failed ${asked}`);
  });
  for (let times = 0; times < 3; times += 1) await expect(write(['one'])).rejects.toThrow('failed 1');
  beginRound();
  await expect(write(['one'])).rejects.toThrow('failed 2');
  expect(asked).toBe(2);
});

test('writing erasures yields to requests between pages while the only sink is unreachable', async () => {
  const erasures = Array.from({ length: 1_000 }, (_, at): Erasure => {
    return { realm: systemClock.mintId(), user: systemClock.mintId(), at };
  });
  const unreportedErasures = (after: Pick<Erasure, 'realm' | 'user'> | undefined, limit: number) => {
    const from = erasures.findIndex(({ user }) => user === after?.user) + 1;
    return erasures.slice(from, from + limit);
  };
  const away = async () => Promise.reject(new Error('away'));
  const deps = { store: { unreportedErasures, markErasuresReported: away }, keys: { sign: () => '' } };
  let turns = 0;
  let turn = setImmediate(function take() {
    turns += 1;
    turn = setImmediate(take);
  });
  await expect(writeErasures(deps, [trackSink(away)], 1)).rejects.toThrow('away');
  clearImmediate(turn);
  expect(turns).toBeGreaterThan(8);
});
