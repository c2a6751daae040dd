import { join } from 'node:path';
import { openPool } from '../../src/workers/pool.ts';

/**
 * A process with a child of its own, whose ID it prints. Argument: `leave` has nothing more to do, `close` closes and
 * says so, `stay` waits to be killed, `stay-busy` as well, while its child works for a second.
 */
const [deed] = process.argv.slice(2);
const pool = openPool({
  command: [process.execPath, join(import.meta.dir, 'worker_child.ts')],
  workersMax: 1,
  waitingMax: 1,
  waitMsMax: 20_000,
});
const { pid } = await pool.request<{ pid: number }>({ act: 'state' });
if (deed === 'stay-busy') pool.request({ act: 'work', ms: 1_000 });
console.log(`child ${pid}`);
// Nothing but the closing itself keeps the process alive; an `await` here would.
if (deed === 'close') pool.close().then(() => console.log('closed'));
if (deed?.startsWith('stay')) setInterval(() => undefined, 1_000);
