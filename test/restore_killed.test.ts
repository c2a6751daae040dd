import { beforeAll, describe, expect, setDefaultTimeout, test } from 'bun:test';
import {
  copyFileSync,
  existsSync,
  linkSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs';
import { dirname, join } from 'node:path';
import { EXIT } from '../src/exit.ts';
import { holdDatabase } from '../src/store/backups/hold.ts';
import { holdersOf } from '../src/store/backups/holders.ts';
import { replace } from '../src/store/backups/swap.ts';
import { contentOf, copied, program, type Rehearsed, rehearsed, restoring, runOn } from './archive.ts';
import { AUTHREALM, start } from './processes.ts';

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

  test('between the second name of the old database and the new one in its place, no name is left too many', async () => {
    const { database, backup } = copied(whole);
    linkSync(database, `${database}.replaced-20261121T000000.000Z`);
    const other = `${database}.replaced-20261120T000000.000Z`;
    copyFileSync(database, other);
    const { aside } = await restoring({ database, backup });
    expect([...asides(database)].sort()).toEqual(
      [other, aside ?? ''].map((path) => path.slice(dirname(path).length + 1)).sort(),
    );
  });
});

describe('whoever opens the database meanwhile', () => {
  test('waits, and gets the new one, or is told to try again; nothing of the old one is left beside it', async () => {
    const { database, backup } = copied(whole);
    const complete = join(dirname(database), 'complete.db');
    copyFileSync(backup, complete);
    const hold = holdDatabase(database);
    const words = ['--database', `sqlite:${database}`];
    const opening = Array.from({ length: 3 }, () => start([AUTHREALM, 'client', 'list', '--json', ...words]));
    // Each tries again and again, and has the file open every time.
    const seen = new Set<number>();
    while (opening.some(({ process: { pid } }) => !seen.has(pid)))
      for (const { pid } of holdersOf(database) ?? []) seen.add(pid);
    const aside = replace(database, complete, program.ambient.now());
    const inode = statSync(database).ino;
    hold.release();
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

  test('and lets go of it again where the restore is refused in the end', async () => {
    const { database } = copied(whole);
    holdDatabase(database).release();
    const moved = `${database}.moved`;
    renameSync(database, moved);
    renameSync(moved, database);
    expect((await runOn(database, 'client', 'list')).code).toBe(EXIT.done);
  });
});
