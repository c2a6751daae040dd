import { existsSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Fault } from '../../src/model/fault.ts';
import { openPool, type Pool, type PoolSettings } from '../../src/ops/workers/pool.ts';

/** How much of its possible work a worker pool does while it gets twice as much for five seconds. */

const WORK_SHARE_MIN = 0.8;
const STARTS_MAX = 3;
const OVERLOAD_MS = 5_000;
const CAPACITY_MS = 2_000;

interface Case {
  readonly name: string;
  readonly settings: Partial<PoolSettings>;
  /** The milliseconds of work of the requests, in turn. */
  readonly mix: readonly number[];
}

const CASES: readonly Case[] = [
  { name: 'one worker', settings: {}, mix: [50] },
  { name: 'two workers', settings: { workersMax: 2, waitingMax: 64 }, mix: [100] },
  {
    name: 'two workers with long and short requests',
    settings: { workersMax: 2, waitingMax: 16 },
    mix: [10, 500],
  },
];

const folder = mkdtempSync(join(tmpdir(), 'authrealm-worker-pool-'));
const worker = [process.execPath, join(import.meta.dir, '../support/worker_child.ts')].join(' ');
const shares: string[] = [];
for (const each of CASES) {
  const { share, starts } = await workShare(each);
  const isPassing = share > WORK_SHARE_MIN && starts <= STARTS_MAX;
  shares.push(`${share.toFixed(2)}${isPassing ? '' : ' (!)'}`);
  console.log(`${each.name}: ${share.toFixed(2)} of its possible work, ${starts} starts`);
  if (!isPassing) process.exitCode = 1;
}
rmSync(folder, { recursive: true });
console.log(`work done at twice the capacity: ${shares.join(', ')} of the possible`);

async function workShare({ settings, mix }: Case): Promise<{ share: number; starts: number }> {
  const startsFile = join(folder, 'starts');
  rmSync(startsFile, { force: true });
  const command = ['/bin/sh', '-c', `echo started >> ${startsFile}; exec ${worker}`];
  const workersMax = settings.workersMax ?? 1;
  const pool = openPool({ command, workersMax, waitingMax: 64, waitMsMax: 2_000, ...settings });
  const awaitStart = (): Promise<unknown> => pool.request({ act: 'state' }).catch(awaitStart);
  await Promise.all(Array.from({ length: workersMax }, awaitStart));
  const before = await capacityOf(pool, workersMax, mix);
  const everyMs = mix.reduce((sum, ms) => sum + ms) / mix.length / before / 2;
  const began = performance.now();
  let workedMs = 0;
  const requests: Promise<void>[] = [];
  while (performance.now() - began < OVERLOAD_MS) {
    const ms = mix[requests.length % mix.length] as number;
    const answered = pool.request({ act: 'work', ms }).then(() => {
      workedMs += ms;
    });
    requests.push(answered.catch(ignoreOverload));
    await Bun.sleep(Math.max(0, began + requests.length * everyMs - performance.now()));
  }
  const rate = workedMs / (performance.now() - began);
  const starts = existsSync(startsFile) ? readFileSync(startsFile, 'utf8').split('\n').length - 1 : 0;
  await Promise.all(requests);
  const after = await capacityOf(pool, workersMax, mix);
  await pool.close();
  return { share: rate / Math.min(before, after), starts };
}

function ignoreOverload(error: unknown): void {
  if (!(error instanceof Fault && error.code === 'overloaded')) throw error;
}

/** Milliseconds of work that the pool does in a millisecond, on this machine and now, without overload. */
async function capacityOf(pool: Pool, workersMax: number, mix: readonly number[]): Promise<number> {
  const began = performance.now();
  const isOver = () => performance.now() - began >= CAPACITY_MS;
  let workedMs = 0;
  async function client(): Promise<void> {
    for (let count = 0; !isOver(); count += 1) {
      const ms = mix[count % mix.length] as number;
      await pool.request({ act: 'work', ms });
      if (!isOver()) workedMs += ms;
    }
  }
  // Twice as many clients as workers, so that a request always waits.
  await Promise.all(Array.from({ length: 2 * workersMax }, client));
  return workedMs / CAPACITY_MS;
}
