import { afterAll, describe, expect, setDefaultTimeout, test } from 'bun:test';
import { existsSync, mkdirSync, readFileSync, rmSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { readErasures } from '../../src/cli/restore.ts';
import { readLine } from '../../src/log/checkpoint.ts';
import { writeErasures } from '../../src/log/checkpoints.ts';
import type { Erasure } from '../../src/model/log/erasure.ts';
import { systemClock } from '../../src/ops/process/clock.ts';
import { EXIT } from '../../src/ops/process/exit.ts';
import { backUp } from '../../src/ops/store/backups/backup.ts';
import { startAdminApi } from '../http/admin/admin_api.ts';
import { createStoredDatabase, program, recordsIn, runOnFile } from '../support/backup_fixtures.ts';
import { freshDatabase, type TestDatabase } from '../support/database.ts';
import { withDatabase } from '../support/erasure_fixtures.ts';
import { ofRecord } from '../support/log_rows.ts';
import { AUTHREALM, killCommands, runCommand, startCommand } from '../support/processes.ts';
import { createFixture, type Fixture, freshFolder, startService } from '../support/service.ts';

setDefaultTimeout(300_000);
afterAll(killCommands);

/** An erasure is acknowledged only when reported outside of the database, and every erasure is reported in the end. */

type Person = Pick<Fixture, 'realm' | 'user'>;

/** Erases a user in a process that is killed between the commit and the report. */
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

/** Starts a service, which reports pending erasures, and stops it. */
async function serveOnce({ flags }: Pick<TestDatabase, 'flags'>, checkpointFile: string): Promise<void> {
  const service = await startService({ ...flags, checkpointFile });
  await service.stop();
}

const unreportedIn = (database: TestDatabase) =>
  database.query<{ user_id: string }>('select user_id from erasure where told_at is null');

describe('an erasure by a process that was killed before its report', () => {
  test('an unreported erasure is reported by the next start of the service, once, signed, with its time', async () => {
    const database = await freshDatabase();
    const fixture = await withDatabase(database, createFixture);
    const before = systemClock.now();
    await eraseAndDie(database.flags, fixture);
    expect(
      await database.query(
        `select 1 from user_info where ${ofRecord(database.address.engine)}`,
        fixture.user,
      ),
    ).toEqual([]);
    expect(await unreportedIn(database)).toEqual([{ user_id: fixture.user }]);
    const path = join(freshFolder(), 'points');
    await serveOnce(database, path);
    const [report, ...more] = erasuresIn(path);
    expect(more).toEqual([]);
    const line = await withDatabase(database, async ({ logKeys }) =>
      readLine(JSON.stringify(report), logKeys),
    );
    expect(line).toMatchObject({ kind: 'erasure', realm: fixture.realm, user: fixture.user, isSigned: true });
    expect((line as Erasure).at).toBeWithin(before, systemClock.now() + 1);
    expect(await unreportedIn(database)).toEqual([]);
    await serveOnce(database, path);
    expect(erasuresIn(path)).toHaveLength(1);
    // A second erasure has a second report.
    await eraseAndDie(database.flags, fixture);
    await serveOnce(database, path);
    expect(erasuresIn(path)).toHaveLength(2);
  });

  test('an unreported erasure is reported by the next start although the previous service was killed as well', async () => {
    const database = await freshDatabase();
    const fixture = await withDatabase(database, createFixture);
    const path = join(freshFolder(), 'points');
    const words = ['serve', '--port', '0', '--checkpoint-file', path, ...database.args];
    const service = startCommand([AUTHREALM, ...words]);
    while (!existsSync(path) || !readFileSync(path, 'utf8').endsWith('\n')) await Bun.sleep(20);
    service.process.kill('SIGKILL');
    await service.process.exited;
    await eraseAndDie(database.flags, fixture);
    await serveOnce(database, path);
    expect(await database.query(`select 1 from lease where name like 'checkpoints%'`)).toHaveLength(1);
    expect(erasuresIn(path)).toMatchObject([{ user_id: fixture.user }]);
    expect(await unreportedIn(database)).toEqual([]);
  });

  test('an unreported erasure is reported despite tampered rows, and a restore reads the reports', async () => {
    const database = await freshDatabase();
    const fixture = await withDatabase(database, createFixture);
    await eraseAndDie(database.flags, fixture);
    const others = Array.from({ length: 4 }, () => systemClock.mintId());
    // Times outside of the calendar, or with years that ISO 8601 does not write with four digits.
    for (const [index, at] of [9e15, -9e15, -9e14, 3e14].entries()) {
      const values = `'${fixture.realm}', '${others[index]}', ${at}`;
      await database.tamper(`insert into erasure (realm_id, user_id, at) values (${values})`);
    }
    // PostgreSQL rejects values that are no UUID.
    const isEmbedded = database.address.engine === 'sqlite';
    if (isEmbedded) {
      await database.tamper(`insert into erasure (realm_id, user_id, at) values ('nobody', 'at all', 1)`);
      await database.tamper(
        `insert into realm_clock (realm_id, seq, tag, entries, anchor_seq, anchor_tag, anchor_entries, anchor_mac)
           values ('nobody', 1, x'00', 1, 0, x'00', 0, x'00')`,
      );
    }
    const path = join(freshFolder(), 'points');
    await serveOnce(database, path);
    const keys = await withDatabase(database, async ({ logKeys }) => logKeys);
    const options = { name: path, keys, takesUnsigned: false };
    const { erasures } = await readErasures(Bun.file(path).stream(), options);
    const users = erasures.map(({ user }) => user);
    expect(users.toSorted()).toEqual([...others, fixture.user].toSorted());
    expect(await unreportedIn(database)).toEqual(isEmbedded ? [{ user_id: 'at all' }] : []);
  });

  test('an erased user does not return with an older backup, whether the database is lost or replaced', async () => {
    for (const isLost of [true, false]) {
      const { path, users } = await createStoredDatabase(2);
      const [erased, retained] = users as [Fixture, Fixture];
      const backup = join(freshFolder(), 'taken.db');
      await backUp(path, { file: backup }, program);
      const flags = { database: `sqlite:${path}` };
      await eraseAndDie(flags, erased);
      if (isLost) {
        // The service reports it in a separate process, so that this one does not have the file open.
        const service = startCommand([AUTHREALM, 'serve', '--port', '0', '--database', flags.database]);
        await service.line(/listening on/);
        expect(await service.stop()).toBe(EXIT.done);
        for (const ending of ['', '-wal', '-shm']) rmSync(path + ending, { force: true });
      }
      const { code, stderr } = await runOnFile(path, 'restore', backup, '--replace', '--yes');
      expect([code, stderr]).toEqual([EXIT.done, '']);
      const restored = recordsIn(path);
      expect([restored.has(erased.user), restored.has(retained.user)]).toEqual([false, true]);
      const bytes = readFileSync(path);
      for (const text of [erased.subject, erased.username]) expect(bytes.includes(text)).toBe(false);
    }
  });
});

describe('erase user', () => {
  test('erase user erases but fails when the report cannot be written, and succeeds when repeated', async () => {
    const database = await freshDatabase();
    const { realm, user } = await withDatabase(database, createFixture);
    const path = join(freshFolder(), 'missing', 'points');
    const words = ['erase', 'user', '--yes', realm, user, ...database.args, '--checkpoint-file', path];
    const failed = await runCommand([AUTHREALM, ...words]);
    expect([failed.code, failed.stderr]).toEqual([
      EXIT.failed,
      expect.stringMatching(
        /is erased, but the erasure could not be recorded outside the database \(ENOENT\)/,
      ),
    ]);
    expect(failed.stdout).toMatch(/the write-ahead log is empty|reindex index concurrently user_info_words/);
    expect(
      await database.query(`select 1 from user_info where ${ofRecord(database.address.engine)}`, user),
    ).toEqual([]);
    mkdirSync(dirname(path));
    const done = await runCommand([AUTHREALM, ...words]);
    expect([done.code, done.stderr]).toEqual([EXIT.done, '']);
    expect(erasuresIn(path)).toMatchObject([{ realm_id: realm, user_id: user }]);
  });
});

describe('POST /admin/v1/erasures', () => {
  test('an erasure is answered 503 while its report cannot be written, and 201 once it is written', async () => {
    const path = join(freshFolder(), 'missing', 'points');
    const api = await startAdminApi({ checkpointFile: path });
    const { realm, user } = await createFixture(api.service.db);
    const data = { realm_id: realm, user_id: user };
    const failed = await api.request('POST', '/erasures', { data });
    expect(failed.status).toBe(503);
    expect(await unreportedIn(api.service.database)).toEqual([{ user_id: user }]);
    mkdirSync(dirname(path));
    const done = await api.request('POST', '/erasures', { data });
    expect(done.status).toBe(201);
    expect(erasuresIn(path)).toMatchObject([{ realm_id: realm, user_id: user }]);
    expect(await unreportedIn(api.service.database)).toEqual([]);
    await api.service.stop();
    expect(erasuresIn(path)).toHaveLength(1);
  });
});

test('erasures count as reported only when the file has their lines, and none is written twice', async () => {
  const database = await freshDatabase();
  await withDatabase(database, async (db) => {
    const { engine, logKeys: keys } = db;
    const { realm, user } = await createFixture(db);
    const people = [user, ...Array.from({ length: 119 }, systemClock.mintId)];
    for (const id of people) {
      await database.tamper('insert into erasure (realm_id, user_id, at) values (?, ?, 7)', realm, id);
    }
    const written: string[] = [];
    const full = () => {
      throw new Error('no room');
    };
    const writeRound = (append: (lines: readonly string[]) => void) =>
      writeErasures({ store: engine.log, keys, append }, 1);
    await expect(writeRound(full)).rejects.toThrow('no room');
    expect(await unreportedIn(database)).toHaveLength(120);
    for (let round = 0; round < 2; round += 1) await writeRound((lines) => void written.push(...lines));
    expect(written).toHaveLength(120);
    expect(await unreportedIn(database)).toEqual([]);
  });
});

test('writing erasures yields to requests between pages', async () => {
  const erasures = Array.from({ length: 1_000 }, (_, at): Erasure => {
    return { realm: systemClock.mintId(), user: systemClock.mintId(), at };
  });
  const unreportedErasures = (after: Pick<Erasure, 'realm' | 'user'> | undefined, limit: number) => {
    const from = erasures.findIndex(({ user }) => user === after?.user) + 1;
    return erasures.slice(from, from + limit);
  };
  const store = { heads: async () => [], unreportedErasures, markErasuresReported: async () => undefined };
  const deps = { store, keys: { sign: () => '' }, append: () => undefined };
  let turns = 0;
  let turn = setImmediate(function countTurn() {
    turns += 1;
    turn = setImmediate(countTurn);
  });
  await writeErasures(deps, 1);
  clearImmediate(turn);
  expect(turns).toBeGreaterThan(8);
});
