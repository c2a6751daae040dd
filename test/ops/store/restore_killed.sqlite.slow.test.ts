import { Database } from 'bun:sqlite';
import { describe, expect, setDefaultTimeout, test } from 'bun:test';
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
import { EXIT } from '../../../src/ops/process/exit.ts';
import { lockDatabase, replaceDatabase } from '../../../src/ops/store/backups/replacement.ts';
import {
  contentOf,
  copyBackupFixture,
  createBackupFixture,
  recordsIn,
  restoreInProcess,
  runOnFile,
} from '../../support/backup_fixtures.ts';
import { killAfter } from '../../support/killed_process.ts';
import { AUTHREALM, startCommand } from '../../support/processes.ts';
import type { Fixture } from '../../support/service.ts';

setDefaultTimeout(300_000);
const fixture = await createBackupFixture(30);

const changedAt = (path: string) => statSync(path).ctimeMs;

/** The engine's files next to a database, each with its last change. */
function companionFiles(database: string): ReadonlyMap<string, number> {
  const paths = ['-wal', '-shm', '-journal'].map((ending) => database + ending);
  return new Map(paths.filter((path) => existsSync(path)).map((path) => [path, changedAt(path)]));
}

/** The names of the replaced databases. */
function previousNames(database: string): readonly string[] {
  return readdirSync(dirname(database)).filter((name) => name.includes('.replaced-'));
}

describe('a killed restore', () => {
  test('a restore killed at any moment leaves the old or the new database complete, and can be repeated', async () => {
    const { database, backup } = copyBackupFixture(fixture);
    const [old, restored] = [contentOf(database), contentOf(backup)];
    const pristine = readFileSync(database);
    let killed = 0;
    for (let wait = 30; wait < 480; wait += 15) {
      writeFileSync(database, pristine);
      const args = ['restore', backup, '--replace', '--yes', '--database', `sqlite:${database}`];
      const { isKilled } = await killAfter([AUTHREALM, ...args], wait);
      if (isKilled) killed += 1;
      const companions = companionFiles(database);
      const replacedAt = Math.max(
        ...previousNames(database).map((name) => changedAt(join(dirname(database), name))),
      );
      const found = contentOf(database);
      expect([old, restored]).toContainEqual(found);
      // A log of the old database must not remain next to the new one; the new one may have its own log.
      const isOld = Bun.deepEquals(found, old);
      expect([...companions.values()].filter((at) => !isOld && at < replacedAt)).toEqual([]);
      for (const path of companions.keys()) rmSync(path, { force: true });
      for (const name of previousNames(database)) rmSync(join(dirname(database), name));
    }
    expect(killed).toBeGreaterThan(3);
    expect((await runOnFile(database, 'restore', backup, '--replace', '--yes')).code).toBe(EXIT.done);
    expect(contentOf(database)).toEqual(restored);
  });

  test.each(['erasures', 'open', 'close', 'rewrite'])(
    'a restore killed before the step "%s" leaves the old database, and erases when it is repeated',
    async (step) => {
      const { database, backup } = copyBackupFixture(fixture);
      const [erased] = fixture.before as [Fixture];
      const old = contentOf(database);
      const script = join(import.meta.dir, '../../support/kill_during_restore.ts');
      const words = [script, database, backup, step, erased.realm, erased.user];
      const child = Bun.spawn([process.execPath, ...words], { stdio: ['ignore', 'ignore', 'inherit'] });
      await child.exited;
      expect([child.signalCode, contentOf(database)]).toEqual(['SIGKILL', old]);
      const erasure = { realm: erased.realm, user: erased.user, at: Date.now() };
      const { erased: applied } = await restoreInProcess({
        database,
        backup,
        erasuresFor: async () => [erasure],
      });
      expect(applied).toEqual({ applied: 1, users: 1 });
      expect(recordsIn(database).has(erased.user)).toBe(false);
      const names = readdirSync(dirname(database)).map((name) => name.replace(/[0-9a-f-]{36}|-\d.*$/, ''));
      expect(names.toSorted()).toEqual(
        ['stored.db', 'stored.db..partial', 'stored.db.key', 'stored.db.replaced'].toSorted(),
      );
    },
  );
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
  test('a command during a restore opens the new database or fails; no file of the old one is left', async () => {
    const { database, backup } = copyBackupFixture(fixture);
    const complete = join(dirname(database), 'complete.db');
    copyFileSync(backup, complete);
    const lock = lockDatabase(database);
    const args = ['--database', `sqlite:${database}`];
    const opening = Array.from({ length: 3 }, () =>
      startCommand([AUTHREALM, 'client', 'list', '--json', ...args]),
    );
    // Each command retries to open the file.
    const seen = new Set<number>();
    while (seen.size < opening.length)
      for (const { process: child } of opening) if (hasOpen(child.pid, database)) seen.add(child.pid);
    const previous = `${database}.replaced-now`;
    replaceDatabase(database, complete, previous);
    const inode = statSync(database).ino;
    lock[Symbol.dispose]();
    for (const { process: child, output } of opening) {
      const code = await child.exited;
      if (code !== EXIT.done)
        expect(output()).toMatch(/moved or replaced while it was|moved, removed or replaced/);
    }
    expect(statSync(database).ino).toBe(inode);
    expect(contentOf(database)).toEqual(contentOf(backup));
    expect(contentOf(previous)).toEqual(contentOf(fixture.path));
    expect(readdirSync(dirname(database)).filter((name) => /-(wal|shm|journal)$/.test(name))).toEqual([]);
  });

  test('a command opens a database with the rollback journal of a killed process', async () => {
    const { database } = copyBackupFixture(fixture);
    const killed = join(dirname(database), 'killed.db');
    const db = new Database(database);
    db.run('pragma journal_mode = delete');
    db.run('pragma cache_size = 1');
    db.run('begin immediate');
    db.run(`update user_info set name = 'not committed'`);
    db.run('create table not_committed as select randomblob(1000000)');
    for (const ending of ['', '-journal']) copyFileSync(database + ending, killed + ending);
    db.run('rollback');
    db.close();
    const committed = contentOf(database);
    for (const ending of ['', '-journal']) renameSync(killed + ending, database + ending);
    const { code, stderr } = await runOnFile(database, 'client', 'list');
    expect([code, stderr]).toEqual([EXIT.done, '']);
    expect(contentOf(database)).toEqual(committed);
  });

  test('a command opens the database after a refused restore', async () => {
    const { database } = copyBackupFixture(fixture);
    lockDatabase(database)[Symbol.dispose]();
    const moved = `${database}.moved`;
    renameSync(database, moved);
    renameSync(moved, database);
    expect((await runOnFile(database, 'client', 'list')).code).toBe(EXIT.done);
  });
});
