import { Database } from 'bun:sqlite';
import { describe, expect, setDefaultTimeout, test } from 'bun:test';
import { readdirSync, rmSync, statfsSync, statSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { EXIT } from '../../../src/ops/process/exit.ts';
import { type CompactionStep, compact } from '../../../src/ops/store/backups/compaction.ts';
import {
  contentOf,
  copyDatabase,
  createStoredDatabase,
  program,
  queryRows,
  runOnFile,
} from '../../support/backup_fixtures.ts';
import { sqliteAt } from '../../support/database.ts';
import { AUTHREALM, type RunningCommand, runClientCreate, startCommand } from '../../support/processes.ts';
import { smallFolder } from '../../support/small_disk.ts';

setDefaultTimeout(300_000);

const SENTENCE = /^authrealm: .*\n$/;
const stored = (await createStoredDatabase(60)).path;

function startCompaction(path: string): RunningCommand {
  return startCommand([AUTHREALM, 'compact', '--database', `sqlite:${path}`]);
}

/** The names of the files next to a database, other than its key. */
function filesNextTo(path: string): readonly string[] {
  return readdirSync(dirname(path)).filter((name) => !['stored.db', 'stored.db.key'].includes(name));
}

/** Kills a compaction after this wait, or at a line that it prints. Returns whether it was still running. */
async function killCompaction(path: string, moment: number | RegExp): Promise<boolean> {
  const running = startCompaction(path);
  if (typeof moment === 'number') await Promise.race([Bun.sleep(moment), running.process.exited]);
  else await running.line(moment);
  running.process.kill('SIGKILL');
  await running.process.exited;
  return running.process.signalCode === 'SIGKILL';
}

/** Removes what a killed compaction left, of which `doctor` reports each, and returns the names. */
async function removeLeftovers(path: string): Promise<readonly string[]> {
  // The journal belongs to the database: the next connection that writes reads it.
  const left = filesNextTo(path).filter((name) => name !== 'stored.db-journal');
  expect(left.filter((name) => !/^stored\.db\.[0-9a-f-]{36}\.partial$/.test(name))).toEqual([]);
  for (const name of left) rmSync(join(dirname(path), name), { recursive: true });
  return left;
}

describe('a killed compaction', () => {
  const steps = [/^verifying the database/, /^writing the new file/, /^verifying the new file/];
  test.each(steps)('a compaction killed when it prints %p leaves the database as it was', async (step) => {
    let path = '';
    let ino = 0;
    // A busy machine may kill it too late.
    do {
      path = copyDatabase(stored);
      ({ ino } = statSync(path));
    } while (!(await killCompaction(path, step)));
    expect(contentOf(path)).toEqual(contentOf(stored));
    expect(statSync(path).ino).toBe(ino);
    expect((await runOnFile(path, 'doctor')).code).toBe(EXIT.done);
    await removeLeftovers(path);
    expect((await runOnFile(path, 'compact')).code).toBe(EXIT.done);
    expect((await runOnFile(path, 'doctor')).code).toBe(EXIT.done);
  });

  test('a compaction killed at any moment leaves a complete database, and can be repeated', async () => {
    const path = copyDatabase(stored);
    const before = contentOf(path);
    let killed = 0;
    for (let wait = 30; wait < 20_000; wait *= 1.2) {
      const isKilled = await killCompaction(path, wait);
      expect(contentOf(path)).toEqual(before);
      await removeLeftovers(path);
      if (!isKilled) break;
      killed += 1;
    }
    expect(killed).toBeGreaterThan(3);
    expect((await runOnFile(path, 'doctor')).code).toBe(EXIT.done);
  });
});

describe('a compaction next to other processes', () => {
  test('a compaction is refused while a service has the database open', async () => {
    const path = copyDatabase(stored);
    const running = startCommand([AUTHREALM, 'serve', '--port', '0', '--database', `sqlite:${path}`]);
    await running.line(/^listening on /);
    const { code, stdout, stderr } = await runOnFile(path, 'compact');
    expect([code, stdout, stderr]).toEqual([EXIT.failed, '', expect.stringMatching(SENTENCE)]);
    expect(stderr).toContain('is in use: stop every process that has it open');
    expect(await running.stop()).toBe(0);
    expect((await runOnFile(path, 'compact')).code).toBe(EXIT.done);
  });

  test.each(['delete', 'wal'])(
    'a compaction is refused while a process reads the database (%s)',
    async (mode) => {
      const path = copyDatabase(stored);
      const other = new Database(path);
      other.run(`pragma journal_mode = ${mode}`);
      other.run('begin');
      other.query('select count(*) from realm').get();
      expect((await runOnFile(path, 'compact')).stderr).toContain('is in use: stop every process');
      other.run('commit');
      other.close();
      expect((await runOnFile(path, 'compact')).code).toBe(EXIT.done);
    },
  );

  test('no client that is created during a compaction is lost', async () => {
    const path = copyDatabase(stored);
    const database = sqliteAt(path);
    const compacting = startCompaction(path);
    await compacting.line(/^verifying the database/);
    const creating = Array.from({ length: 4 }, () => runClientCreate(database, 'admin', '--json'));
    const created = await Promise.all(creating);
    expect([await compacting.process.exited, compacting.output()]).toEqual([
      EXIT.done,
      expect.stringMatching(/^rows +\{.*\}\n\n$/m),
    ]);
    const found =
      queryRows(path, ['select client_id from client'])[0]?.map(({ client_id }) => client_id) ?? [];
    for (const { code, stdout, stderr } of created) {
      if (code === EXIT.done) expect(found).toContain(JSON.parse(stdout).client_id);
      else expect([code, stderr]).toEqual([EXIT.failed, expect.stringMatching(SENTENCE)]);
    }
    expect(filesNextTo(path).filter((name) => !/-(wal|shm)$/.test(name))).toEqual([]);
    expect((await runOnFile(path, 'doctor')).code).toBe(EXIT.done);
  });

  test('two concurrent compactions of one file each succeed or are refused, and the file is complete', async () => {
    const path = copyDatabase(stored);
    const outcomes = await Promise.all([runOnFile(path, 'compact'), runOnFile(path, 'compact')]);
    for (const { code, stderr } of outcomes)
      if (code !== EXIT.done) expect(stderr).toMatch(/^authrealm: .*(in use|moved or replaced).*\n$/);
    expect(outcomes.some(({ code }) => code === EXIT.done)).toBe(true);
    expect(contentOf(path)).toEqual(contentOf(stored));
    expect(filesNextTo(path)).toEqual([]);
  });
});

/** Fills a disk until this number of bytes is free. */
function fillDisk(folder: string, freeBytes: number): void {
  const { bavail, bsize } = statfsSync(folder);
  writeFileSync(join(folder, 'ballast'), Buffer.alloc((bavail - Math.ceil(freeBytes / bsize)) * bsize));
}

describe('a compaction on a full disk', () => {
  test('a disk that fills during a compaction stops it, and the database remains', async () => {
    const folder = await smallFolder(32);
    if (folder === undefined) return;
    const path = copyDatabase(stored, folder);
    const fill = (step: CompactionStep) => {
      if (step === 'writing the new file') fillDisk(folder, 10 * PAGE_BYTES);
    };
    const { ino } = statSync(path);
    await expect(compact(path, program, fill)).rejects.toThrow(/disk is full/);
    expect([statSync(path).ino, filesNextTo(path)]).toEqual([ino, ['ballast']]);
    expect(contentOf(path)).toEqual(contentOf(stored));
  });
});

const PAGE_BYTES = 4_096;
