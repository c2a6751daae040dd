import { beforeAll, describe, expect, setDefaultTimeout, test } from 'bun:test';
import {
  copyFileSync,
  existsSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs';
import { dirname, join } from 'node:path';
import { EXIT } from '../../src/platform/exit.ts';
import { lockDatabase, replaceDatabase } from '../../src/store/backups/restoration.ts';
import { contentOf, copied, program, type Rehearsed, rehearsed, runOn } from '../support/archive.ts';
import { AUTHREALM, start } from '../support/processes.ts';

setDefaultTimeout(300_000);

let whole: Rehearsed;
beforeAll(async () => {
  whole = await rehearsed(30);
});

/** Runs a command, and whether it was still running after so many milliseconds: then it was killed. */
async function isKilled(wait: number, words: readonly string[]): Promise<boolean> {
  const child = Bun.spawn([AUTHREALM, ...words], {
    stdio: ['ignore', 'ignore', 'ignore'],
    env: { PATH: process.env.PATH ?? '' },
  });
  const timer = setTimeout(() => child.kill('SIGKILL'), wait);
  await child.exited;
  clearTimeout(timer);
  return child.signalCode === 'SIGKILL';
}

const changedAt = (path: string) => statSync(path).ctimeMs;

/** What the engine keeps beside a database, and when each was changed last. */
function changedBeside(database: string): ReadonlyMap<string, number> {
  const paths = ['-wal', '-shm', '-journal'].map((ending) => database + ending);
  return new Map(paths.filter((path) => existsSync(path)).map((path) => [path, changedAt(path)]));
}

/** Names under which a database was kept that another one took the place of. */
function asides(database: string): readonly string[] {
  return readdirSync(dirname(database)).filter((name) => name.includes('.replaced-'));
}

describe('killed', () => {
  test('at any moment, there is the old database or the new one, complete, and the same command ends it', async () => {
    const { database, backup } = copied(whole);
    const [old, taken] = [contentOf(database), contentOf(backup)];
    const pristine = readFileSync(database);
    let killed = 0;
    for (let wait = 30; wait < 480; wait += 15) {
      writeFileSync(database, pristine);
      if (await isKilled(wait, ['restore', backup, '--replace', '--database', `sqlite:${database}`]))
        killed += 1;
      const beside = changedBeside(database);
      const replacedAt = Math.max(
        ...asides(database).map((name) => changedAt(join(dirname(database), name))),
      );
      const found = contentOf(database);
      expect([old, taken]).toContainEqual(found);
      // A log of the old one would be read with the new one, which has its own once the restore is noted in it.
      const isOld = Bun.deepEquals(found, old);
      expect([...beside.values()].filter((at) => !isOld && at < replacedAt)).toEqual([]);
      for (const path of beside.keys()) rmSync(path, { force: true });
      for (const name of asides(database)) rmSync(join(dirname(database), name));
    }
    expect(killed).toBeGreaterThan(3);
    expect((await runOn(database, 'restore', backup, '--replace')).code).toBe(EXIT.done);
    expect(contentOf(database)).toEqual(taken);
  });
});

/** Whether a process has a file open. */
function hasOpen(pid: number, path: string): boolean {
  const folder = `/proc/${pid}/fd`;
  const { ino } = statSync(path);
  return readdirSync(folder).some(
    (name) => statSync(join(folder, name), { throwIfNoEntry: false })?.ino === ino,
  );
}

describe('a command that opens the database during a restore', () => {
  test('waits and gets the new database, or fails and says so; no file of the old one is left', async () => {
    const { database, backup } = copied(whole);
    const complete = join(dirname(database), 'complete.db');
    copyFileSync(backup, complete);
    const lock = lockDatabase(database);
    const words = ['--database', `sqlite:${database}`];
    const opening = Array.from({ length: 3 }, () => start([AUTHREALM, 'client', 'list', '--json', ...words]));
    // Each of them opens the file again and again.
    const seen = new Set<number>();
    while (seen.size < opening.length)
      for (const { process: child } of opening) if (hasOpen(child.pid, database)) seen.add(child.pid);
    const aside = replaceDatabase(database, complete, program.clock.now());
    const inode = statSync(database).ino;
    lock.release();
    for (const { process: child, output } of opening) {
      const code = await child.exited;
      if (code !== EXIT.done)
        expect(output()).toMatch(/moved or replaced while it was|moved, removed or replaced/);
    }
    expect(statSync(database).ino).toBe(inode);
    expect(contentOf(database)).toEqual(contentOf(backup));
    expect(contentOf(aside)).toEqual(contentOf(whole.path));
    expect(readdirSync(dirname(database)).filter((name) => /-(wal|shm|journal)$/.test(name))).toEqual([]);
  });

  test('opens it where the restore was refused', async () => {
    const { database } = copied(whole);
    lockDatabase(database).release();
    const moved = `${database}.moved`;
    renameSync(database, moved);
    renameSync(moved, database);
    expect((await runOn(database, 'client', 'list')).code).toBe(EXIT.done);
  });
});
