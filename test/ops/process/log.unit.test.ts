import { expect, test } from 'bun:test';
import { join } from 'node:path';

/** Logs 100 faults of requests, 100 of background work and 100 rejected requests, and ends. */
const PROGRAM = `
  import { openLog } from '${join(import.meta.dir, '../../../src/ops/process/log.ts')}';
  import { backgroundFault } from '${join(import.meta.dir, '../../../src/app/background_fault.ts')}';
  const log = openLog();
  for (let count = 0; count < 100; count += 1) {
    log.write({ event: 'fault', request_id: String(count), route: '/a', code: 'unavailable', cause: '08006', count: 1 });
    log.write(backgroundFault('webhooks', new TypeError('text')));
    log.write({ event: 'overloaded', cause: 'QUEUE_FULL', count: 1 });
  }
  log.write({ event: 'stopped' });
`;

test('repetitions of a fault, of background work as well, and of a rejection are logged as their number', async () => {
  const child = Bun.spawn([process.execPath, '-e', PROGRAM], { stdio: ['ignore', 'ignore', 'pipe'] });
  const lines = (await child.stderr.text()).trim().split('\n');
  const records = lines.map((line) => JSON.parse(line));
  // One at once, and one for each second that the program took, or for its end.
  expect(records.length).toBeLessThan(20);
  const numbers = new Map<string, number>();
  for (const { event, route = event, count = 1 } of records)
    numbers.set(route, (numbers.get(route) ?? 0) + count);
  expect(Object.fromEntries(numbers)).toEqual({ '/a': 100, webhooks: 100, overloaded: 100, stopped: 1 });
  expect(records.findLast(({ route }) => route === '/a')).toMatchObject({ request_id: '99' });
});
