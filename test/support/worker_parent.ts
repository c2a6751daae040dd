import { join } from 'node:path';
import { openPool } from '../../src/ops/workers/pool.ts';

/**
 * A process with a worker, whose process ID it prints. Argument: `leave` exits, `close` closes the pool and prints that,
 * `stay` waits to be killed, `stay-busy` too while its worker is busy for a second.
 */
const [mode] = process.argv.slice(2);
const pool = openPool({
  command: [process.execPath, join(import.meta.dir, 'worker_child.ts')],
  workersMax: 1,
  waitingMax: 1,
  waitMsMax: 20_000,
});
const { pid } = await pool.request<{ pid: number }>({ act: 'state' });
if (mode === 'stay-busy') pool.request({ act: 'work', ms: 1_000 });
console.log(`child ${pid}`);
// No `await`: only the closing itself may keep the process alive.
if (mode === 'close') pool.close().then(() => console.log('closed'));
if (mode?.startsWith('stay')) setInterval(() => undefined, 1_000);
