import { constants } from 'node:os';
import { type OverloadCause, overloaded } from '../../model/fault.ts';
import { LIMITS } from '../../model/limits.ts';
import { RESTART_MS, startWorkerProcess, type WorkerProcess } from './worker_process.ts';

export interface PoolSettings {
  /** The command line of a worker, with the program by an absolute path. Every user of the machine can read it. */
  readonly command: readonly string[];
  /** Largest number of workers; each works on one request at a time. */
  readonly workersMax: number;
  /** How many requests wait; one more is rejected. */
  readonly waitingMax: number;
  /** From the request to its response, in milliseconds, without the start of the first worker. */
  readonly waitMsMax: number;
  /** How much longer a request waits that finds no worker ready; default: `LIMITS.workerStartMsMax`. */
  readonly startMsMax?: number;
  /** A worker without requests for this long is ended; default: `LIMITS.workerIdleMsMax`. */
  readonly idleMsMax?: number;
  /** Of the workers, added to that of this process; default: the greatest. */
  readonly niceness?: number;
}

interface Task {
  readonly request: unknown;
  dueAt: number;
  /** Until the request is answered, this timer alone keeps the process alive. */
  timer?: ReturnType<typeof setTimeout>;
  readonly resolve: (response: never) => void;
  readonly reject: (error: unknown) => void;
}

interface Worker {
  readonly process: WorkerProcess;
  state: 'starting' | 'ready' | 'ending';
  task?: Task | undefined;
  idle?: ReturnType<typeof setTimeout>;
}

export type Pool = ReturnType<typeof openPool>;

/**
 * Worker processes for what would block the event loop. They start with the first request, run at a low priority, see
 * nothing of the environment, keep no process alive, and end when they are idle or their parent is gone.
 */
export function openPool(settings: PoolSettings) {
  const { command, workersMax, waitingMax, waitMsMax, niceness = constants.priority.PRIORITY_LOW } = settings;
  const { startMsMax = LIMITS.workerStartMsMax, idleMsMax = LIMITS.workerIdleMsMax } = settings;
  const workers = new Set<Worker>();
  const waiting: Task[] = [];
  /** After a failed start. */
  let startsAgainAt = 0;
  let isClosed = false;

  const countOf = (state: Worker['state']) => [...workers].filter((each) => each.state === state).length;

  /** Assigns waiting requests to free workers, and starts a worker for each that remains. */
  function dispatch(): void {
    for (const worker of workers) {
      const task = worker.state === 'ready' && !worker.task ? nextTask(waiting, waitMsMax) : undefined;
      if (task) void work(worker, task);
    }
    let missing = Math.min(waiting.length - countOf('starting'), workersMax - workers.size);
    for (; missing > 0 && performance.now() >= startsAgainAt; missing -= 1) start();
    if (workers.size === 0) rejectAll(waiting.splice(0), 'WORKER_START_FAILED');
  }

  function start(): void {
    try {
      const process = startWorkerProcess({
        command,
        niceness,
        isBackground: true,
        onReady: () => ready(worker),
        onExit: () => exited(worker),
      });
      const worker: Worker = { process, state: 'starting' };
      workers.add(worker);
      // One that never gets ready ends as well. The idle time of a test is shorter than a start.
      endAfter(worker, Math.max(idleMsMax, startMsMax));
    } catch {
      // The program is not there, or the system has no room for one more process.
      startsAgainAt = performance.now() + RESTART_MS;
    }
  }

  function ready(worker: Worker): void {
    if (worker.state !== 'starting') return;
    worker.state = 'ready';
    endAfter(worker, idleMsMax);
    // Those that waited for nothing but this start have their whole time for the work.
    if (countOf('ready') === 1)
      for (const task of waiting) setDue(task, Math.min(task.dueAt, performance.now() + waitMsMax));
    dispatch();
  }

  async function work(worker: Worker, task: Task): Promise<void> {
    clearTimeout(worker.idle);
    worker.task = task;
    await worker.process.request<never>(task.request).then(task.resolve, task.reject);
    worker.task = undefined;
    // A worker that is killed may respond all the same, too late.
    if (worker.state === 'ending') return;
    endAfter(worker, idleMsMax);
    dispatch();
  }

  function exited(worker: Worker): void {
    clearTimeout(worker.idle);
    workers.delete(worker);
    if (worker.state === 'starting') startsAgainAt = performance.now() + RESTART_MS;
    worker.task?.reject(overloaded('WORKER_EXITED'));
    dispatch();
  }

  function setDue(task: Task, dueAt: number): void {
    clearTimeout(task.timer);
    task.dueAt = dueAt;
    task.timer = setTimeout(expire, dueAt - performance.now(), task);
  }

  /** Takes back a request that is late, and ends its work. */
  function expire(task: Task): void {
    const index = waiting.indexOf(task);
    if (index >= 0) {
      waiting.splice(index, 1);
      task.reject(overloaded(countOf('ready') > 0 ? 'DEADLINE_EXCEEDED' : 'WORKER_START_TIMEOUT'));
    } else {
      [...workers].filter((each) => each.task === task).forEach(end);
      task.reject(overloaded('WORKER_TIMEOUT'));
    }
  }

  /**
   * Resolves with the response of a worker; both values must be cloneable. Rejects with the Fault that the worker threw,
   * `internal` for any other error, and `overloaded` where too many requests wait, where the response is late, or where the
   * worker died or cannot be started. A worker whose response is late is killed.
   */
  function request<T>(message: unknown): Promise<T> {
    if (isClosed || waiting.length >= waitingMax) return Promise.reject(overloaded('QUEUE_FULL'));
    const { promise, resolve, reject } = Promise.withResolvers<T>();
    const task: Task = { request: message, dueAt: 0, resolve, reject };
    setDue(task, performance.now() + waitMsMax + (countOf('ready') > 0 ? 0 : startMsMax));
    waiting.push(task);
    dispatch();
    return promise.finally(() => clearTimeout(task.timer));
  }

  const figures = () => ({
    waiting: waiting.length,
    working: [...workers].filter(({ task }) => task).length,
  });

  /** Kills every worker, whatever it does. Open requests reject with `overloaded`. */
  async function close(): Promise<void> {
    isClosed = true;
    const all = [...workers];
    rejectAll([...waiting.splice(0), ...all.flatMap(({ task }) => task ?? [])], 'POOL_CLOSED');
    all.forEach(end);
    await Promise.all(all.map(({ process }) => process.exited));
  }

  return { request, figures, close };
}

function endAfter(worker: Worker, ms: number): void {
  clearTimeout(worker.idle);
  worker.idle = setTimeout(end, ms, worker).unref();
}

function end(worker: Worker): void {
  worker.state = 'ending';
  worker.process.kill('SIGKILL');
}

function rejectAll(tasks: readonly Task[], cause: OverloadCause): void {
  for (const task of tasks) task.reject(overloaded(cause));
}

/**
 * The first request that has half of its time left. Those before it are rejected: else every worker of a full queue would
 * work on what is late when it is done, and nothing would be answered.
 */
function nextTask(waiting: Task[], waitMsMax: number): Task | undefined {
  const latest = performance.now() + waitMsMax / 2;
  for (let task = waiting.shift(); task; task = waiting.shift()) {
    if (task.dueAt >= latest) return task;
    task.reject(overloaded('DEADLINE_EXCEEDED'));
  }
  return undefined;
}
