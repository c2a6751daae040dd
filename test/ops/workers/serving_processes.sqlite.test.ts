import { expect, setDefaultTimeout, test } from 'bun:test';
import { renameSync } from 'node:fs';
import { freshDatabase } from '../../support/database.ts';
import { AUTHREALM, startCommand } from '../../support/processes.ts';

/** The processes that share a port: one that exits is replaced. */

setDefaultTimeout(300_000);

test('a serving process that cannot start is restarted until it can', async () => {
  const { args, masterKeyFile } = await freshDatabase();
  const running = startCommand([
    AUTHREALM,
    'serve',
    '--port',
    '0',
    '--processes',
    '2',
    '--metrics',
    '127.0.0.1:0',
    ...args,
  ]);
  const metrics = (await running.line(/^metrics on /)).slice('metrics on '.length);
  const logged = (event: string) => [
    ...running.output().matchAll(new RegExp(`"event":"${event}","pid":(\\d+)`, 'g')),
  ];
  const waitForEvents = async (event: string, times: number) => {
    while (logged(event).length < times) {
      if (running.process.exitCode !== null) throw new Error(running.output());
      await Bun.sleep(20);
    }
  };
  renameSync(masterKeyFile, `${masterKeyFile}.away`);
  process.kill(Number(logged('process_started')[1]?.[1]), 'SIGKILL');
  // The killed process, and two that find no key.
  await waitForEvents('process_exited', 3);
  renameSync(`${masterKeyFile}.away`, masterKeyFile);
  const allResponding = /^authrealm_processes\{state="responding"\} 2$/m;
  while (!allResponding.test(await (await fetch(metrics)).text())) await Bun.sleep(100);
  expect(await running.stop()).toBe(0);
});
