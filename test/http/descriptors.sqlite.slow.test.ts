import { expect, test } from 'bun:test';
import { connect, type Socket } from 'node:net';
import { join } from 'node:path';
import { AUTHREALM, runCommand } from '../support/processes.ts';
import { freshFolder } from '../support/service.ts';

test.each([
  ['the process of both listeners', '1', /"url":"([^"]+)"/, '/healthz'],
  ['the parent with the listener of metrics', '2', /metrics on (.+)\/metrics/, '/metrics'],
])('without descriptors %s logs it once, and accepts connections after some are closed', async (...row) => {
  const [, processes, urlPattern, path] = row;
  const args = ['--database', `sqlite:${join(freshFolder(), 'a.db')}`];
  expect((await runCommand([AUTHREALM, 'init', ...args])).code).toBe(0);
  // The listener of metrics is in the same process, which logs once for both.
  const ports = ['--port', '0', '--metrics', '127.0.0.1:0', '--processes', processes];
  const child = Bun.spawn(['prlimit', '--nofile=100:100', AUTHREALM, 'serve', ...ports, ...args], {
    stdout: 'pipe',
    stderr: 'pipe',
    env: { PATH: process.env.PATH ?? '' },
  });
  let text = '';
  const reading = Promise.all(
    [child.stdout, child.stderr].map(async (output) => {
      for await (const part of output.pipeThrough(new TextDecoderStream())) text += part;
    }),
  );
  const until = async (part: string) => {
    while (!text.includes(part) && child.exitCode === null) await Bun.sleep(20);
  };
  await until('"event":"started"');
  const url = urlPattern.exec(text)?.[1] ?? '';
  const sockets: Socket[] = Array.from({ length: 150 }, () =>
    connect({ host: '127.0.0.1', port: Number(new URL(url).port) }).on('error', () => undefined),
  );
  await until('out_of_descriptors');
  await Bun.sleep(2_500);
  expect(text.match(/"event":"out_of_descriptors","cause":"EMFILE"/g)).toHaveLength(1);
  for (const socket of sockets) socket.destroy();
  expect((await fetch(`${url}${path}`)).status).toBe(200);
  child.kill('SIGTERM');
  expect(await child.exited).toBe(0);
  await reading;
});
