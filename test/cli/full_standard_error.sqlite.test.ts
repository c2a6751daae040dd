import { expect, test } from 'bun:test';
import { freshDatabase } from '../support/database.ts';
import { AUTHREALM, startCommand } from '../support/processes.ts';

test('a service whose standard error is full answers, and ends at SIGTERM', async () => {
  const { args } = await freshDatabase();
  const command = 'exec "$0" "$@" 2>/dev/full';
  const service = startCommand(['/bin/sh', '-c', command, AUTHREALM, 'serve', '--port', '0', ...args]);
  const url = (await service.line(/^listening on /)).slice('listening on '.length);
  expect((await fetch(`${url}/readyz`)).status).toBe(200);
  expect(await service.stop()).toBe(0);
});
