import { Database } from 'bun:sqlite';
import { expect, test } from 'bun:test';
import { copyFileSync, readFileSync, statSync, truncateSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { discardedFrames } from '../../src/store/sqlite/discarded_frames.ts';
import { AUTHREALM, runCommand } from '../support/processes.ts';
import { freshFolder } from '../support/service.ts';

/** Frames of the write-ahead log behind the last valid commit, after a process was killed. */

const WRITES = `create table if not exists t (x blob); insert into t values (zeroblob(20000)); insert into t values (zeroblob(9000));`;

/** Writes to a database in a process that kills itself. */
async function killedWriter(path: string, statements: string): Promise<void> {
  const script = `import { Database } from 'bun:sqlite';
    const db = new Database(process.argv[1]);
    db.run('pragma journal_mode = wal');
    db.run('pragma cache_size = 5');
    for (const text of ${JSON.stringify(statements)}.split(';')) if (text.trim()) db.run(text);
    process.kill(process.pid, 'SIGKILL');`;
  const child = Bun.spawn([process.execPath, '-e', script, path]);
  await child.exited;
  expect(child.signalCode).toBe('SIGKILL');
}

async function killed(statements = WRITES): Promise<string> {
  const path = join(freshFolder(), 'a.db');
  await killedWriter(path, statements);
  return path;
}

const FRAME_BYTES = 24 + 4_096;

test('a killed process whose commits are complete leaves no discarded frames', async () => {
  expect(discardedFrames(await killed())).toEqual({ frames: 0, commits: 0 });
});

test('an unfinished transaction leaves discarded frames without a commit, and its commits are kept', async () => {
  const path = await killed(
    `${WRITES} begin; insert into t values (randomblob(400000)); insert into t values (1);`,
  );
  const { frames, commits } = discardedFrames(path);
  expect([frames > 0, commits]).toEqual([true, 0]);
  const db = new Database(path);
  expect(db.query('select count(*) as rows from t').get()).toEqual({ rows: 2 });
  db.close();
});

test('frames of an earlier checkpoint are no discarded frames', async () => {
  const path = await killed(`${WRITES.repeat(5)} pragma wal_checkpoint(restart); insert into t values (1);`);
  expect(statSync(`${path}-wal`).size).toBeGreaterThan(5 * FRAME_BYTES);
  expect(discardedFrames(path)).toEqual({ frames: 0, commits: 0 });
});

test('a changed byte discards its frame and all commits from there on', async () => {
  const path = await killed();
  const wal = readFileSync(`${path}-wal`);
  wal[wal.length - 1] = (wal.at(-1) as number) ^ 1;
  writeFileSync(`${path}-wal`, wal);
  expect(discardedFrames(path)).toMatchObject({ commits: 1 });
  for (const position of [32 + 8, 32 + 24 + 100]) {
    const changed = Buffer.from(wal);
    changed[position] = (changed[position] as number) ^ 1;
    writeFileSync(`${path}-wal`, changed);
    expect([position, discardedFrames(path).commits >= 2]).toEqual([position, true]);
  }
});

test('a log that was cut within a frame discards the last commit', async () => {
  const path = await killed();
  truncateSync(`${path}-wal`, statSync(`${path}-wal`).size - 100);
  expect(discardedFrames(path)).toMatchObject({ commits: 1 });
  const copy = join(freshFolder(), 'b.db');
  for (const suffix of ['', '-wal']) copyFileSync(path + suffix, copy + suffix);
  const db = new Database(copy);
  expect(db.query('select count(*) as rows from t').get()).toEqual({ rows: 1 });
  db.close();
});

test('serve logs frames_discarded once where the log was cut, and starts', async () => {
  const path = join(freshFolder(), 'c.db');
  const args = ['--database', `sqlite:${path}`];
  expect((await runCommand([AUTHREALM, 'init', ...args])).code).toBe(0);
  await killedWriter(path, 'update instance set access_version = access_version + 1');
  truncateSync(`${path}-wal`, statSync(`${path}-wal`).size - 100);
  const events = async () => {
    const child = Bun.spawn([AUTHREALM, 'serve', '--port', '0', ...args], {
      stdout: 'ignore',
      stderr: 'pipe',
      env: { PATH: process.env.PATH ?? '' },
    });
    let text = '';
    for await (const part of child.stderr.pipeThrough(new TextDecoderStream())) {
      text += part;
      if (text.includes('"event":"started"')) child.kill('SIGTERM');
    }
    expect(await child.exited).toBe(0);
    return [...text.matchAll(/"event":"(\w+)"/g)].map(([, event]) => event);
  };
  expect(await events()).toEqual(['frames_discarded', 'started', 'stopping', 'stopped']);
  expect(await events()).toEqual(['started', 'stopping', 'stopped']);
});
