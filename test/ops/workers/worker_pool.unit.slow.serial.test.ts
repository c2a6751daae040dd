import { afterEach, describe, expect, test } from 'bun:test';
import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { getPriority } from 'node:os';
import { join } from 'node:path';
import { Fault } from '../../../src/model/fault.ts';
import { openPool, type Pool, type PoolSettings } from '../../../src/ops/workers/pool.ts';
import { RESTART_MS } from '../../../src/ops/workers/worker_process.ts';
import { endsWithin, isAlive } from '../../support/process_tree.ts';
import { runCommand, startCommand } from '../../support/processes.ts';
import { doWithRetry } from '../../support/retry.ts';
import { freshFolder } from '../../support/service.ts';

const ANSWERS = [process.execPath, join(import.meta.dir, '../../support/worker_child.ts')];
const PARENT = [process.execPath, join(import.meta.dir, '../../support/worker_parent.ts')];

interface State {
  readonly pid: number;
  readonly priority: number;
  readonly environment: readonly string[];
}

const STATE = { act: 'state' };
const work = (ms: number) => ({ act: 'work', ms });
const echo = (value: unknown) => ({ act: 'echo', value });

const opened: Pool[] = [];

function open(settings: Partial<PoolSettings> = {}): Pool {
  const pool = openPool({
    command: ANSWERS,
    workersMax: 1,
    waitingMax: 64,
    waitMsMax: 20_000,
    ...settings,
  });
  opened.push(pool);
  return pool;
}

/**
 * A pool whose limits are a second or two. Its workers have the priority of this process: at the lowest one a busy machine may not
 * run them for as long.
 */
const openTimed = (settings: Partial<PoolSettings>) => open({ niceness: 0, ...settings });

afterEach(() => Promise.all(opened.splice(0).map((pool) => pool.close())));

/** A shell command that records its start in a file, then runs another command. */
function recordStarts(next: string) {
  const file = join(freshFolder(), 'starts');
  const command = ['/bin/sh', '-c', `echo started >> ${file}; ${next}`];
  const starts = () => (existsSync(file) ? readFileSync(file, 'utf8').split('\n').length - 1 : 0);
  return { command, starts };
}

const EXEC_WORKER = `exec ${ANSWERS.join(' ')}`;

async function faultOf(request: Promise<unknown>): Promise<Fault> {
  const error = await request.then(
    () => undefined,
    (reason: unknown) => reason,
  );
  if (!(error instanceof Fault)) throw new Error(`no Fault but ${error}`);
  return error;
}

const causeOf = async (request: Promise<unknown>) => {
  const { code, cause } = await faultOf(request);
  return [code, (cause as { code?: string } | undefined)?.code];
};

describe('requests to a worker pool', () => {
  test('a worker pool returns any cloneable value that its handler returns', async () => {
    const pool = open();
    for (const value of [0, '', null, undefined, 'x\ud800y', new Map([[1n, new Uint8Array([1, 2])]]), [[]]]) {
      expect(await pool.request<unknown>(echo(value))).toEqual(value);
    }
    const long = 'x'.repeat(5_000_000);
    expect(await pool.request<string>(echo(long))).toBe(long);
  });

  test('a worker pool works on requests in order, on at most workersMax workers', async () => {
    const pool = open({ workersMax: 2 });
    const pids = new Set<number>();
    // One worker may answer everything before the other has started.
    while (pids.size < 2)
      for (const pid of await Promise.all(Array.from({ length: 8 }, () => pool.request<number>(work(50)))))
        pids.add(pid);
    expect(pids.size).toBe(2);
    const done: number[] = [];
    const one = open();
    await Promise.all([3, 1, 2].map((each) => one.request<number>(echo(each)).then((got) => done.push(got))));
    expect(done).toEqual([3, 1, 2]);
  });

  test('a Fault of a worker arrives with code and complaints, any other error as internal without its message', async () => {
    const pool = open();
    const act = (what: string) => pool.request({ act: 'throw', what, value: 'hunter2hunter2' });
    const fault = await faultOf(act('fault'));
    expect([fault.code, fault.fieldErrors]).toEqual(['conflict', [{ field: 'username', rule: 'unique' }]]);
    const bug = await faultOf(act('bug'));
    expect([bug.code, (bug.cause as { code?: string }).code]).toEqual(['internal', 'TypeError']);
    expect((bug.cause as Error).stack).toContain('worker_child.ts');
    expect(await causeOf(act('text'))).toEqual(['internal', 'string']);
    expect((await faultOf(act('function'))).code).toBe('internal');
    for (const error of [bug, await faultOf(act('text'))])
      expect(Bun.inspect(error)).not.toContain('hunter2');
  });

  test('a worker pool rejects a request that cannot be cloned, and answers the next one', async () => {
    const pool = open();
    await pool.request(STATE);
    await expect(pool.request(echo(() => 1))).rejects.toThrow(/clone/);
    expect(await pool.request<string>(echo('after'))).toBe('after');
  });
});

describe('a pool worker', () => {
  test('a pool worker starts with the first request, at the lowest priority, with an empty environment', async () => {
    process.env.AUTHREALM_SECRET_OF_THE_PARENT = 'x';
    const { command, starts } = recordStarts(EXEC_WORKER);
    const pool = open({ command });
    await Bun.sleep(100);
    expect(starts()).toBe(0);
    const state = await pool.request<State>(STATE);
    delete process.env.AUTHREALM_SECRET_OF_THE_PARENT;
    expect(starts()).toBe(1);
    expect(state.priority).toBe(19);
    // A shell adds these two by itself.
    expect(state.environment.filter((name) => !['PWD', '_', 'OLDPWD', 'SHLVL'].includes(name))).toEqual([]);
    const bare = await open().request<State>(STATE);
    expect(bare.environment).toEqual([]);
    expect(bare.pid).not.toBe(process.pid);
  });

  test('an idle pool worker exits, and the next request starts another one', async () => {
    const pool = open({ idleMsMax: 300, startMsMax: 20_000 });
    const first = await pool.request<State>(STATE);
    expect(isAlive(first.pid)).toBe(true);
    // A worker with a request is not idle, however long the request takes.
    expect(await pool.request<number>(work(600))).toBe(first.pid);
    expect(await endsWithin(first.pid)).toBe(true);
    expect((await pool.request<State>(STATE)).pid).not.toBe(first.pid);
  });

  test('a pool worker ignores signals to its process group', async () => {
    const pool = open();
    const { pid } = await pool.request<State>(STATE);
    const working = pool.request<number>(work(300));
    for (const signal of ['SIGTERM', 'SIGINT', 'SIGQUIT', 'SIGHUP', 'SIGUSR1', 'SIGUSR2'] as const)
      process.kill(pid, signal);
    expect(await working).toBe(pid);
    expect((await pool.request<State>(STATE)).pid).toBe(pid);
  });

  test('a request whose pool worker dies is rejected as overloaded, and those that wait are answered by another one', async () => {
    const pool = open();
    const { pid } = await pool.request<State>(STATE);
    const working = causeOf(pool.request(work(60_000)));
    const waiting = pool.request<State>(STATE);
    await Bun.sleep(100);
    process.kill(pid, 'SIGKILL');
    expect(await working).toEqual(['overloaded', 'WORKER_EXITED']);
    expect((await waiting).pid).not.toBe(pid);
    expect(await causeOf(pool.request({ act: 'die' }))).toEqual(['overloaded', 'WORKER_EXITED']);
    expect(await pool.request<string>(echo('next'))).toBe('next');
  });

  test('a pool worker killed while idle is replaced', async () => {
    const pool = open();
    const { pid } = await pool.request<State>(STATE);
    process.kill(pid, 'SIGKILL');
    // A request before this process knows of the exit is rejected.
    expect((await doWithRetry(() => pool.request<State>(STATE))).pid).not.toBe(pid);
  });
});

describe('limits of a worker pool', () => {
  test('a full worker pool rejects the next request at once, and answers those that wait', async () => {
    const pool = open({ waitingMax: 2 });
    await pool.request(STATE);
    const working = pool.request<number>(work(500));
    const waiting = [1, 2].map((each) => pool.request<number>(echo(each)));
    expect(await causeOf(pool.request(STATE))).toEqual(['overloaded', 'QUEUE_FULL']);
    expect(Bun.peek.status(working)).toBe('pending');
    expect(await Promise.all(waiting)).toEqual([1, 2]);
    await working;
  });

  test('a request that takes too long is rejected in time, and its worker is killed and replaced', async () => {
    const pool = openTimed({ waitMsMax: 1_000 });
    const { pid } = await pool.request<State>(STATE);
    // A busy machine delays timers of this process alike.
    const sleeps = [950, 1_250].map((ms) => Bun.sleep(ms));
    expect(await causeOf(pool.request(work(60_000)))).toEqual(['overloaded', 'WORKER_TIMEOUT']);
    expect(sleeps.map((each) => Bun.peek.status(each))).toEqual(['fulfilled', 'pending']);
    expect(await endsWithin(pid)).toBe(true);
    expect((await pool.request<State>(STATE)).pid).not.toBe(pid);
  });

  test('a request that waited for half of its time is rejected without being sent, and the next one is answered', async () => {
    const pool = openTimed({ waitMsMax: 2_000 });
    const { pid } = await pool.request<State>(STATE);
    const working = pool.request<number>(work(1_500));
    const once = join(freshFolder(), 'sent');
    const waiting = pool.request({ act: 'die', once });
    await Bun.sleep(1_000);
    const next = pool.request<number>(work(0));
    expect(await causeOf(waiting)).toEqual(['overloaded', 'DEADLINE_EXCEEDED']);
    expect(existsSync(once)).toBe(false);
    expect([await working, await next]).toEqual([pid, pid]);
  });

  test('a request that times out while waiting is never sent, and does not interrupt a slow start', async () => {
    const { command, starts } = recordStarts(`sleep 1; ${EXEC_WORKER}`);
    const pool = openTimed({ command, waitMsMax: 400, startMsMax: 200 });
    const once = join(freshFolder(), 'sent');
    expect(await causeOf(pool.request({ act: 'die', once }))).toEqual(['overloaded', 'WORKER_START_TIMEOUT']);
    const answer = (): Promise<string> => pool.request<string>(echo('x')).catch(answer);
    expect(await answer()).toBe('x');
    expect(existsSync(once)).toBe(false);
    expect(starts()).toBe(1);
  });

  test('the start of the first worker takes no time from the requests that wait for it', async () => {
    const { command } = recordStarts(`sleep 2; ${EXEC_WORKER}`);
    const pool = openTimed({ command, waitMsMax: 1_500, startMsMax: 20_000 });
    expect(await pool.request<number>(work(300))).toBeGreaterThan(0);
    // The next one has its usual time.
    expect(await causeOf(pool.request(work(60_000)))).toEqual(['overloaded', 'WORKER_TIMEOUT']);
  });

  test('a pool worker has the priority of the settings', async () => {
    // That of the pool is added to that of this process.
    expect((await open({ niceness: 7 }).request<State>(STATE)).priority).toBe(getPriority() + 7);
  });

  test('a request whose pool worker exits at its start is rejected as overloaded, and the next worker starts after a second', async () => {
    const repaired = join(freshFolder(), 'repaired');
    const { command, starts } = recordStarts(`[ -f ${repaired} ] || exit 3; ${EXEC_WORKER}`);
    const pool = open({ command });
    const began = performance.now();
    for (const _ of [1, 2])
      expect(await causeOf(pool.request(STATE))).toEqual(['overloaded', 'WORKER_START_FAILED']);
    // A busy machine may take a second for one of them.
    if (performance.now() - began < RESTART_MS) expect(starts()).toBe(1);
    writeFileSync(repaired, '');
    expect(await doWithRetry(() => pool.request<string>(echo('x')))).toBe('x');
  });

  test('a missing worker program rejects requests as overloaded', async () => {
    const pool = open({ command: ['/nowhere/at-all'] });
    expect(await causeOf(pool.request(STATE))).toEqual(['overloaded', 'WORKER_START_FAILED']);
  });
});

describe('closing a worker pool', () => {
  test('closing a worker pool kills its workers and rejects waiting and new requests', async () => {
    const pool = open();
    const { pid } = await pool.request<State>(STATE);
    const pending = [work(60_000), STATE].map((message) => faultOf(pool.request(message)));
    await pool.close();
    expect(isAlive(pid)).toBe(false);
    for (const { code, cause } of await Promise.all(pending)) {
      expect([code, (cause as { code?: string }).code]).toEqual(['overloaded', 'POOL_CLOSED']);
    }
    expect((await faultOf(pool.request(STATE))).code).toBe('overloaded');
  });

  const pidIn = (line: string) => Number(line.split(' ')[1]);

  test('a process without other work exits, and its pool workers with it', async () => {
    const { stdout, code } = await runCommand([...PARENT, 'leave']);
    expect(code).toBe(0);
    expect(await endsWithin(pidIn(stdout))).toBe(true);
  });

  test('closing a worker pool resolves after its workers exited', async () => {
    const { stdout, code } = await runCommand([...PARENT, 'close']);
    expect([stdout.split('\n')[1], code]).toEqual(['closed', 0]);
    expect(isAlive(pidIn(stdout))).toBe(false);
  });

  test.each(['stay', 'stay-busy'])('a pool worker exits after kill -9 of its parent (%s)', async (mode) => {
    const running = startCommand([...PARENT, mode]);
    const pid = pidIn(await running.line(/^child/));
    expect(isAlive(pid)).toBe(true);
    running.process.kill('SIGKILL');
    await running.process.exited;
    expect(await endsWithin(pid, 15_000)).toBe(true);
  });
});
