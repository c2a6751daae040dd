import { expect, test } from 'bun:test';
import { join } from 'node:path';
import { workerCommand } from '../../src/workers/command.ts';
import { freshFolder } from '../support/folder.ts';
import { ends, isAlive } from '../support/process_tree.ts';
import { start } from '../support/processes.ts';

/** What a backup starts, and has not yet asked anything. */
const ARCHIVER = workerCommand('archiver');

const PARENT = `
  const child = Bun.spawn(${JSON.stringify(ARCHIVER)}, { stdio: ['ignore', 'ignore', 'inherit'], env: {}, ipc() {} });
  console.log('child', child.pid);
  setInterval(() => {}, 1_000);`;

test.each([
  ['before it has begun', 0],
  ['while it waits to be asked', 1_000],
])('an archiver ends after kill -9 of its parent %s, and does not turn for ever', async (_, ms) => {
  const parent = start([process.execPath, '-e', PARENT]);
  const pid = Number((await parent.line(/^child \d+$/)).split(' ')[1]);
  await Bun.sleep(ms);
  expect(isAlive(pid)).toBe(true);
  parent.process.kill('SIGKILL');
  await parent.process.exited;
  const hasEnded = await ends(pid, 15_000);
  if (!hasEnded) process.kill(pid, 'SIGKILL');
  expect(hasEnded).toBe(true);
});

test('one that cannot open its database says which, and what has to be mended', async () => {
  const path = join(freshFolder(), 'nowhere', 'read.db');
  const command = [...workerCommand('reader', path)];
  const child = Bun.spawn(command, { stdio: ['ignore', 'ignore', 'pipe'], env: {}, ipc() {} });
  const said = await new Response(child.stderr).text();
  expect(said).toStartWith(`authrealm: the database ${path} cannot be opened: `);
  expect(await child.exited).toBe(1);
});
