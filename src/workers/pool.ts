import { type OverloadCause, overloaded } from '../domain/fault.ts';
import { LIMITS } from '../domain/limits.ts';
import { openBackOff } from './back_off.ts';
import { startWorkerProcess } from './worker_process.ts';

export interface PoolSettings {
  /** The command line of a worker, with the program by an absolute path. Every user of the machine can read it. */
  readonly command: readonly string[];
  /** Largest number of workers; each works on one request at a time. */
  readonly workersMax: number;
  /** How many requests wait; one more is rejected. */
  readonly waitingMax: number;
  /** From the request to its response, in milliseconds, without the start of the first worker. */
  readonly waitMsMax: number;
  /** How much longer a request waits while no worker is ready and one starts; default: `LIMITS.workerStartMsMax`. */
  readonly startMsMax?: number;
  /** A worker without requests for this long is ended; default: `LIMITS.workerIdleMsMax`. */
  readonly idleMsMax?: number;
  /** The priority of the workers; default: the lowest. */
  readonly niceness?: number;
}

/**
 * Worker processes for what would block the event loop. They start with the first request, run at a low priority, see
 * nothing of the environment, keep no process alive, and end when they are idle or their parent is gone.
 */
export interface Pool {
  /**
   * Resolves with the response of a worker; both values must be cloneable. Rejects with the Fault that the worker threw,
   * `internal` for any other error, and `overloaded` where too many requests wait, where the response is late, or where two
   * workers died. A request may therefore run twice. A worker whose response is late is killed.
   */
  request<T>(request: unknown): Promise<T>;
  figures(): PoolFigures;
  /** Kills every worker, whatever it does. Open requests reject with `overloaded`. */
  close(): Promise<void>;
}

export interface PoolFigures {
  readonly waiting: number;
  readonly working: number;
}

/** A request is sent again after the first death, which may have another reason; after the second it is the suspect. */
const DEATHS_MAX = 2;

interface Task {
  readonly request: unknown;
  readonly arrivedAt: number;
  dueAt: number;
  /** Until the request is answered, this timer alone keeps the process alive. */
  timer: ReturnType<typeof setTimeout> | undefined;
  readonly resolve: (response: never) => void;
  readonly reject: (error: unknown) => void;
  deaths: number;
}

/** One worker of a pool. */
interface Worker {
  readonly state: 'starting' | 'free' | 'working' | 'ending';
  readonly task: Task | undefined;
  readonly exited: Promise<unknown>;
  assign(task: Task): void;
  end(): void;
}

interface WorkerEvents {
  /** It can take a task, for the first time or again. */
  free(worker: Worker, state: Worker['state']): void;
  /** `state`: the one before. */
  exited(worker: Worker, state: Worker['state']): void;
}

export function openPool(settings: PoolSettings): Pool {
  const { workersMax, waitingMax, waitMsMax } = settings;
  const workers = new Set<Worker>();
  const waiting: Task[] = [];
  const backOff = openBackOff(dispatch);
  const deadlines = openDeadlines(settings, isWaitingForStart, cancel);
  let isClosed = false;

  /** Assigns waiting requests to free workers, and starts a worker for each that remains. */
  function dispatch(): void {
    for (const worker of workers) {
      const task = worker.state === 'free' ? nextTask(waiting, waitMsMax) : undefined;
      if (task) worker.assign(task);
    }
    const starting = [...workers].filter(({ state }) => state === 'starting').length;
    let missing = Math.min(waiting.length - starting, workersMax - workers.size);
    for (; missing > 0 && !backOff.isWaiting(); missing -= 1) start();
  }

  function start(): void {
    try {
      workers.add(startWorker(settings, { free, exited }));
    } catch {
      // The program is not there, or the system has no room for one more process.
      backOff.begin();
    }
  }

  function free(worker: Worker, state: Worker['state']): void {
    backOff.reset();
    if (state === 'starting' && ![...workers].some((each) => each !== worker && isReady(each)))
      waiting.forEach(deadlines.beginWork);
    dispatch();
  }

  function isWaitingForStart(task: Task): boolean {
    return waiting.includes(task) && !backOff.isWaiting() && workers.size > 0 && ![...workers].some(isReady);
  }

  function exited(worker: Worker, state: Worker['state']): void {
    workers.delete(worker);
    if (state === 'starting') backOff.begin();
    if (state === 'working' && worker.task) retry(worker.task);
    dispatch();
  }

  function retry(task: Task): void {
    task.deaths += 1;
    if (task.deaths >= DEATHS_MAX) task.reject(overloaded('WORKER_EXITED'));
    else if (performance.now() < task.dueAt) waiting.unshift(task);
  }

  /** Takes back a request whose caller waits no longer, and ends its work. */
  function cancel(task: Task, code?: OverloadCause): void {
    const index = waiting.indexOf(task);
    if (index >= 0) waiting.splice(index, 1);
    [...workers].find((worker) => worker.task === task)?.end();
    // A worker that died may have read the request: then no cause says that none has begun.
    const isUnread = index >= 0 && task.deaths === 0;
    const cause = code ?? (backOff.isWaiting() ? 'WORKER_START_FAILED' : 'DEADLINE_EXCEEDED');
    task.reject(overloaded(isUnread || isClosed ? cause : 'WORKER_TIMEOUT'));
  }

  return {
    request<T>(request: unknown): Promise<T> {
      if (isClosed || waiting.length >= waitingMax) return Promise.reject(overloaded('QUEUE_FULL'));
      const { promise, resolve, reject } = Promise.withResolvers<T>();
      const arrivedAt = performance.now();
      const task: Task = { request, arrivedAt, dueAt: 0, timer: undefined, resolve, reject, deaths: 0 };
      deadlines.begin(task);
      waiting.push(task);
      dispatch();
      return promise.finally(() => clearTimeout(task.timer));
    },
    figures: () => ({ waiting: waiting.length, working: workingOf(workers) }),
    async close() {
      isClosed = true;
      const all = [...workers];
      for (const task of [...waiting, ...all.flatMap((worker) => worker.task ?? [])])
        cancel(task, 'POOL_CLOSED');
      for (const worker of all) worker.end();
      await Promise.all(all.map((worker) => worker.exited));
    },
  };
}

interface Deadlines {
  begin(task: Task): void;
  /** Called for the tasks that waited for nothing but the start of a worker: they have their whole time for the work. */
  beginWork(task: Task): void;
}

function openDeadlines(
  { waitMsMax, startMsMax = LIMITS.workerStartMsMax }: PoolSettings,
  isWaitingForStart: (task: Task) => boolean,
  cancel: (task: Task, code?: OverloadCause) => void,
): Deadlines {
  function setDue(task: Task, dueAt: number): void {
    clearTimeout(task.timer);
    task.dueAt = dueAt;
    task.timer = setTimeout(expire, dueAt - performance.now(), task);
  }

  function expire(task: Task): void {
    const latest = task.arrivedAt + startMsMax + waitMsMax;
    if (!isWaitingForStart(task)) cancel(task);
    else if (task.dueAt < latest) setDue(task, latest);
    else cancel(task, 'WORKER_START_TIMEOUT');
  }

  return {
    begin: (task) => setDue(task, task.arrivedAt + waitMsMax),
    beginWork(task) {
      setDue(task, Math.min(performance.now(), task.arrivedAt + startMsMax) + waitMsMax);
    },
  };
}

const isReady = ({ state }: Worker) => state === 'free' || state === 'working';

const workingOf = (workers: ReadonlySet<Worker>) => [...workers].filter(({ task }) => task).length;

/**
 * The first request that has half of its time left, or whose worker died. Those before it are rejected: else every worker of a full
 * queue would work on what is late when it is done, and nothing would be answered.
 */
function nextTask(waiting: Task[], waitMsMax: number): Task | undefined {
  const latest = performance.now() + waitMsMax / 2;
  for (let task = waiting.shift(); task; task = waiting.shift()) {
    if (task.deaths > 0 || task.dueAt >= latest) return task;
    task.reject(overloaded('DEADLINE_EXCEEDED'));
  }
  return undefined;
}

/** Throws where the program cannot be run. */
function startWorker(
  {
    command,
    startMsMax = LIMITS.workerStartMsMax,
    idleMsMax = LIMITS.workerIdleMsMax,
    niceness,
  }: PoolSettings,
  events: WorkerEvents,
): Worker {
  let state: Worker['state'] = 'starting';
  let task: Task | undefined;
  let timer: ReturnType<typeof setTimeout> | undefined;

  function endAfter(ms: number): void {
    clearTimeout(timer);
    timer = setTimeout(end, ms).unref();
  }

  function release(): void {
    const before = state;
    state = 'free';
    task = undefined;
    endAfter(idleMsMax);
    events.free(self, before);
  }

  function end(): void {
    state = 'ending';
    child.kill('SIGKILL');
  }

  const child = startWorkerProcess(
    { command, isBackground: true, ...(niceness === undefined ? {} : { niceness }) },
    {
      onReady: () => state === 'starting' && release(),
      onExit() {
        clearTimeout(timer);
        const before = state;
        state = 'ending';
        events.exited(self, before);
      },
    },
  );
  // One that never gets ready ends here as well. The idle time of a test is shorter than a start.
  endAfter(Math.max(idleMsMax, startMsMax));

  const self: Worker = {
    get state() {
      return state;
    },
    get task() {
      return task;
    },
    exited: child.exited,
    assign(assigned) {
      clearTimeout(timer);
      state = 'working';
      task = assigned;
      const settling = (settle: (result: never) => void) => (result: unknown) => {
        // A worker that is killed may respond all the same, too late.
        if (state !== 'working') return;
        settle(result as never);
        release();
      };
      child.request(assigned.request).then(settling(assigned.resolve), settling(assigned.reject));
    },
    end,
  };
  return self;
}
