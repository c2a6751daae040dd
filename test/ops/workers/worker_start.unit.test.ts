import { expect, test } from 'bun:test';
import { join } from 'node:path';
import { workerCommand } from '../../../src/ops/workers/command.ts';
import { freshFolder } from '../../support/folder.ts';
import { endsWithin, isAlive } from '../../support/process_tree.ts';
import { startCommand } from '../../support/processes.ts';

/** A worker without a request yet. */
const HASHER = workerCommand('hasher');

const PARENT = `
  const child = Bun.spawn(${JSON.stringify(HASHER)}, { stdio: ['ignore', 'ignore', 'inherit'], env: {}, ipc() {} });
  console.log('child', child.pid);
  setInterval(() => {}, 1_000);`;

test.each([
  ['before it is ready', 0],
  ['while it waits for a request', 1_000],
])('a worker exits after kill -9 of its parent %s', async (_, ms) => {
  const parent = startCommand([process.execPath, '-e', PARENT]);
  const pid = Number((await parent.line(/^child \d+$/)).split(' ')[1]);
  await Bun.sleep(ms);
  expect(isAlive(pid)).toBe(true);
  parent.process.kill('SIGKILL');
  await parent.process.exited;
  const hasEnded = await endsWithin(pid, 15_000);
  if (!hasEnded) process.kill(pid, 'SIGKILL');
  expect(hasEnded).toBe(true);
});

test('a reader that cannot open its database names it on standard error and exits with 1', async () => {
  const path = join(freshFolder(), 'nowhere', 'read.db');
  const command = [...workerCommand('reader', path)];
  const child = Bun.spawn(command, { stdio: ['ignore', 'ignore', 'pipe'], env: {}, ipc() {} });
  const stderr = await new Response(child.stderr).text();
  expect(stderr).toStartWith(`authrealm: the database ${path} cannot be opened: `);
  expect(await child.exited).toBe(1);
});
