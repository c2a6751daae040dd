import { describe, expect, test } from 'bun:test';
import { randomBytes } from 'node:crypto';
import { existsSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { type Checkpoint, readLine } from '../../src/log/checkpoint.ts';
import { startCheckpoints } from '../../src/log/checkpoints.ts';
import type { LogHead } from '../../src/log/store/reading.ts';
import { NIL_UUID } from '../../src/model/id.ts';
import { LIMITS } from '../../src/model/limits.ts';
import { systemClock } from '../../src/ops/process/clock.ts';
import { appendLines } from '../../src/sql/fsync.ts';
import { openLease } from '../../src/sql/job_leases.ts';
import { openFreshDatabase } from '../support/database.ts';
import { runAuthrealm } from '../support/processes.ts';
import { createFixture, freshFolder, startService } from '../support/service.ts';

/** Checkpoints of the logs, written outside of the database. */

describe('a checkpoint file', () => {
  test('the service writes checkpoints at start and stop, and verify accepts them and rejects forged ones', async () => {
    const path = join(freshFolder(), 'points');
    const service = await startService({ checkpointFile: path });
    const { realm } = await createFixture(service.db);
    const { publicKey } = service.db.logKeys;
    await service.stop();
    const lines = readFileSync(path, 'utf8').trim().split('\n');
    const logs = lines.flatMap((line) => JSON.parse(line).logs.map(({ log }: Checkpoint) => log));
    expect(logs).toContain(NIL_UUID);
    expect(logs).toContain(realm);
    expect(statSync(path).mode & 0o777).toBe(0o600);
    const words = [...service.database.args, '--checkpoints', path];
    const verified = await runAuthrealm(['audit', 'verify', '--json', ...words]);
    expect([verified.code, JSON.parse(verified.stdout)]).toMatchObject([
      0,
      { clean: true, checkpoints: logs.length, not_seen: null, public_key: `whpk_${publicKey}` },
    ]);
    writeFileSync(path, readFileSync(path, 'utf8').replace('"entries":', '"entries":1'));
    const forged = await runAuthrealm(['audit', 'verify', ...words]);
    expect(forged.code).toBe(1);
    expect(forged.stdout).toContain('not signed by this installation');
  });

  test('a checkpoint file gets complete lines after a truncated one', () => {
    const path = join(freshFolder(), 'cut');
    writeFileSync(path, '{"kind":"check');
    appendLines(path, ['one', 'two']);
    appendLines(path, ['three']);
    expect(readFileSync(path, 'utf8')).toBe('{"kind":"check\none\ntwo\nthree\n');
  });
});

describe('checkpoints', () => {
  test('one of two processes that share a file writes checkpoints, and only of changed logs', async () => {
    const { db } = await openFreshDatabase();
    const { realm } = await createFixture(db);
    const written: string[][] = [[], []];
    const start = (index: number) =>
      startCheckpoints(
        {
          store: db.engine.log,
          lease: openLease(db.engine.leases, 'checkpoints file', 10_000, systemClock),
          keys: db.logKeys,
          append: (lines) => void written[index]?.push(...lines),
          clock: systemClock,
          retentionDays: 90,
          onError: (error) => {
            throw error;
          },
        },
        50,
      );
    const both = [start(0), start(1)];
    while (written.flat().length < 1) await Bun.sleep(5);
    await Bun.sleep(200);
    // No log moved: nothing more was written.
    expect(written.map(({ length }) => length).sort()).toEqual([0, 1]);
    await createFixture(db, { realm });
    while (written.flat().length < 2) await Bun.sleep(5);
    await Promise.all(both.map((each) => each.stop()));
    const logs = written.flat().map((text) => {
      const line = readLine(text, db.logKeys);
      return line.kind === 'checkpoint' && line.isSigned
        ? line.logs.map(({ log, retentionDays }) => [log, retentionDays])
        : [];
    });
    expect(logs.slice(0, 2)).toEqual([
      [
        [NIL_UUID, 90],
        [realm, 90],
      ],
      [[realm, 90]],
    ]);
    await db.engine.close();
  });

  test('checkpoints that could not be written are written in the next round', async () => {
    const { db } = await openFreshDatabase();
    await createFixture(db);
    const written: string[] = [];
    const errorCodes: string[] = [];
    let isBroken = true;
    const checkpoints = startCheckpoints(
      {
        store: db.engine.log,
        lease: openLease(db.engine.leases, 'checkpoints file', 10_000, systemClock),
        keys: db.logKeys,
        append(lines) {
          if (isBroken) throw Object.assign(new Error('no room'), { code: 'ENOSPC' });
          written.push(...lines);
        },
        clock: systemClock,
        retentionDays: 90,
        onError: ({ code = '' }) => errorCodes.push(code),
      },
      20,
    );
    while (errorCodes.length < 2) await Bun.sleep(5);
    isBroken = false;
    while (written.length < 1) await Bun.sleep(5);
    await checkpoints.stop();
    expect(new Set(errorCodes)).toEqual(new Set(['ENOSPC']));
    await db.engine.close();
  });

  test('checkpoints of many logs are written in several signed lines, each for several logs', async () => {
    const heads = Array.from({ length: LIMITS.checkpointsAtOnceMax + 70 }, (_, at): LogHead => {
      const end = { seq: at + 1, tag: randomBytes(32), entries: at + 1 };
      return { log: systemClock.mintId(), seq: at + 1, chain: { end, anchor: { ...end, mac: end.tag } } };
    }).sort((one, other) => (one.log < other.log ? -1 : 1));
    const { engine, logKeys } = (await openFreshDatabase()).db;
    const batches: (readonly string[])[] = [];
    const page = (after: string | undefined, limit: number) =>
      heads.filter(({ log }) => after === undefined || log > after).slice(0, limit);
    const checkpoints = startCheckpoints({
      store: {
        heads: page,
        unreportedErasures: engine.log.unreportedErasures,
        markErasuresReported: engine.log.markErasuresReported,
      },
      lease: openLease(engine.leases, 'checkpoints file', 10_000, systemClock),
      keys: logKeys,
      append: (lines) => void batches.push(lines),
      clock: systemClock,
      retentionDays: 90,
      onError: (error) => {
        throw error;
      },
    });
    await checkpoints.stop();
    expect(batches.map(({ length }) => length)).toEqual([64, 2]);
    const lines = batches.flat().map((text) => readLine(text, logKeys));
    const logs = lines.flatMap((line) => (line.kind === 'checkpoint' && line.isSigned ? line.logs : []));
    expect(logs.map(({ log, position }) => [log, position])).toEqual(heads.map(({ log, seq }) => [log, seq]));
    // Log collectors cut lines of more than 16 KiB.
    for (const text of batches.flat()) expect(text.length).toBeLessThan(16_000);
    await engine.close();
  });

  test('a database in memory writes no checkpoints', async () => {
    const checkpointFile = join(freshFolder(), 'points');
    for (const flags of [{}, { checkpointFile }]) {
      const service = await startService({ database: 'sqlite::memory:', ...flags });
      await service.stop();
    }
    expect([':memory:.checkpoints', checkpointFile].filter((path) => existsSync(path))).toEqual([]);
  });
});
