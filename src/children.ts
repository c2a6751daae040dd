import { constants, setPriority } from 'node:os';
import { type Complaint, Fault, type FaultCode, overloaded } from './domain/fault.ts';
import { LIMITS } from './domain/limits.ts';

export interface ChildrenSettings {
  /** The command line of one child, its program by an absolute path. Every user of the machine can read it. */
  readonly command: readonly string[];
  /** How many work at once: each child works on one question at a time. */
  readonly atOnce: number;
  /** How many questions wait; one more is refused. */
  readonly waitingMax: number;
  /** From the question to its answer, in milliseconds. */
  readonly waitMsMax: number;
  /**
   * A child that works on one question for longer is killed, in milliseconds; `waitMsMax` unless given. Until then it
   * works on where its answer is late: a start would cost more than the rest of the work.
   */
  readonly workMsMax?: number;
  /** A child without a question for this long is ended; `LIMITS.childIdleMsMax` unless given. */
  readonly idleMsMax?: number;
}

/**
 * Processes of this program that do what would hold its event loop up. They start with the first question, run at the
 * lowest priority, see nothing of the environment, keep no process alive, and end when they are idle or their parent is
 * gone.
 */
export interface Children {
  /**
   * Answers what the child's `handle` makes of the question; both must be cloneable. Rejects with the Fault that
   * `handle` threw, `internal` for any other error, and `overloaded` where too many wait, where the answer is late or
   * could not come in time any more, or where two children died over the question. So a question can be asked twice.
   */
  ask<T>(question: unknown): Promise<T>;
  figures(): ChildrenFigures;
  /** Kills every child, whatever it does. A question without its answer rejects with `overloaded`. */
  close(): Promise<void>;
}

export interface ChildrenFigures {
  readonly waiting: number;
  readonly working: number;
  /** None can be started just now. */
  readonly isResting: boolean;
}

/** Between starts that failed, so that a child that cannot start takes no processor. */
const [RESTART_MS_MIN, RESTART_MS_MAX] = [200, 5_000];

/** A question is asked again after the first death, which may have been anyone's; after the second it is suspect. */
const DEATHS_MAX = 2;

/** What a child says to its parent. */
type Report =
  | { readonly kind: 'ready' }
  | { readonly kind: 'answer'; readonly answer: unknown }
  | {
      readonly kind: 'fault';
      readonly code: FaultCode;
      readonly complaints: readonly Complaint[];
      readonly trace: Trace;
    };

/** What the log may have of an error: a message could hold a value of the question. */
interface Trace {
  readonly code: string;
  readonly frames: string;
}

interface Question {
  readonly asked: unknown;
  readonly dueAt: number;
  readonly resolve: (answer: never) => void;
  readonly reject: (error: unknown) => void;
  deaths: number;
}

interface Child {
  readonly exited: Promise<unknown>;
  /** It was ready once; only then does it take a question. */
  readonly isReady: boolean;
  /** It was told to end, so its death tells nothing. */
  readonly isEnding: boolean;
  /** What it works on. */
  readonly question: Question | undefined;
  take(question: Question): void;
  end(): void;
}

/** What the parent hears of a child. */
interface Ear {
  /** So long it worked on a question, whether it came to an answer or was given up. */
  worked(ms: number): void;
  /** It has nothing to do, for the first time or again. */
  free(): void;
  /** It is gone. */
  ended(child: Child): void;
}

export function openChildren(settings: ChildrenSettings): Children {
  const { atOnce, waitingMax, waitMsMax } = settings;
  const children = new Set<Child>();
  const waiting: Question[] = [];
  const rest = openRest(proceed);
  const pace = openPace(waitMsMax);
  let isClosed = false;

  /** Hands out what waits, and starts a child for each question that none will come to. */
  function proceed(): void {
    for (const child of children) {
      const question = isFree(child) ? next() : undefined;
      if (question) child.take(question);
    }
    const starting = [...children].filter(({ isReady, isEnding }) => !isReady && !isEnding).length;
    let missing = Math.min(waiting.length - starting, atOnce - children.size);
    for (; missing > 0 && !rest.isResting(); missing -= 1) start();
  }

  /**
   * The first question that can be answered in time. Those before it cannot, and are refused unasked: else a queue that
   * is full for once would have every child at work on what is late when it is done, and nothing would be answered.
   */
  function next(): Question | undefined {
    const latest = performance.now() + pace.neededMs();
    let question = waiting.shift();
    for (; question && question.dueAt < latest; question = waiting.shift()) {
      question.reject(overloaded('NO_TIME_LEFT'));
    }
    return question;
  }

  function start(): void {
    try {
      children.add(startChild(settings, { worked: pace.add, free: hasStarted, ended }));
    } catch {
      // The program is not there, or the system has no room for one more process.
      rest.begin();
    }
  }

  function hasStarted(): void {
    rest.forget();
    proceed();
  }

  function ended(child: Child): void {
    children.delete(child);
    if (!child.isEnding && !child.isReady) rest.begin();
    if (!child.isEnding && child.question) askAgain(child.question);
    proceed();
  }

  function askAgain(question: Question): void {
    question.deaths += 1;
    if (question.deaths >= DEATHS_MAX) question.reject(overloaded('CHILD_DIED'));
    else if (performance.now() < question.dueAt) waiting.unshift(question);
  }

  /** Takes a question back that nobody waits for any more. */
  function dismiss(question: Question, code = rest.isResting() ? 'CHILD_NOT_STARTED' : 'CHILD_LATE'): void {
    const place = waiting.indexOf(question);
    if (place >= 0) waiting.splice(place, 1);
    question.reject(overloaded(code));
  }

  return {
    ask<T>(asked: unknown): Promise<T> {
      const isLate = pace.neededMs((waiting.length + working(children)) / atOnce) > waitMsMax;
      if (isClosed || isLate || waiting.length >= waitingMax) return Promise.reject(overloaded('QUEUE_FULL'));
      const { promise, resolve, reject } = Promise.withResolvers<T>();
      const question = { asked, dueAt: performance.now() + waitMsMax, resolve, reject, deaths: 0 };
      // This timer alone keeps the process alive until the answer is there.
      const timer = setTimeout(dismiss, waitMsMax, question);
      waiting.push(question);
      proceed();
      return promise.finally(() => clearTimeout(timer));
    },
    figures: () => ({ waiting: waiting.length, working: working(children), isResting: rest.isResting() }),
    async close() {
      isClosed = true;
      const all = [...children];
      const open = [...waiting, ...all.flatMap(({ question }) => question ?? [])];
      for (const question of open) dismiss(question, 'CLOSED');
      for (const child of all) child.end();
      await Promise.all(all.map(({ exited }) => exited));
    },
  };
}

/** How many questions are under way: they stand before one that comes, as those that wait do. */
const working = (children: ReadonlySet<Child>) => [...children].filter(({ question }) => question).length;

function isFree({ isReady, isEnding, question }: Child): boolean {
  return isReady && !isEnding && question === undefined;
}

interface Pace {
  add(ms: number): void;
  /** `before`: how many answers go before it. */
  neededMs(before?: number): number;
}

/**
 * How long an answer may well take: the estimate that TCP makes of a round trip, its mean and four mean deviations (RFC
 * 6298, 2). Never more than three quarters of what a question has, so that one that comes in time is always asked, and
 * an estimate that is too long mends itself.
 */
function openPace(waitMsMax: number): Pace {
  let mean: number | undefined;
  let deviation = 0;
  return {
    add(ms) {
      deviation = mean === undefined ? ms / 2 : deviation + (Math.abs(ms - mean) - deviation) / 4;
      mean = mean === undefined ? ms : mean + (ms - mean) / 8;
    },
    neededMs: (before = 0) => before * (mean ?? 0) + Math.min((mean ?? 0) + 4 * deviation, waitMsMax * 0.75),
  };
}

interface Rest {
  isResting(): boolean;
  begin(): void;
  forget(): void;
}

/** The pause after a failed start: it doubles until one succeeds. `wake` is called at its end. */
function openRest(wake: () => void): Rest {
  let nextMs = RESTART_MS_MIN;
  let timer: ReturnType<typeof setTimeout> | undefined;
  const end = () => {
    timer = undefined;
    wake();
  };
  return {
    isResting: () => timer !== undefined,
    begin() {
      // Several starts that fail together are one failure.
      if (timer) return;
      timer = setTimeout(end, nextMs);
      timer.unref();
      nextMs = Math.min(nextMs * 2, RESTART_MS_MAX);
    },
    forget() {
      nextMs = RESTART_MS_MIN;
    },
  };
}

/**
 * Has its whole start, and each thread the runtime makes of it, at the lowest priority. It becomes the program, so
 * process and channel are the child's. Undefined where the system has none.
 */
const NICE = Bun.which('nice', { PATH: '/usr/bin:/bin' });
const LOWEST = String(constants.priority.PRIORITY_LOW);

/** Starts one child. Throws where the program cannot be run. */
function startChild(settings: ChildrenSettings, ear: Ear): Child {
  const { command, waitMsMax, workMsMax = waitMsMax, idleMsMax = LIMITS.childIdleMsMax } = settings;
  let isReady = false;
  let isEnding = false;
  let question: Question | undefined;
  let takenAt = 0;
  const child = Bun.spawn(NICE ? [NICE, '-n', LOWEST, ...command] : [...command], {
    env: {},
    // Its standard error is ours, for what the runtime itself has to say. Faults come as reports.
    stdio: ['ignore', 'ignore', 'inherit'],
    serialization: 'advanced',
    ipc: hear,
    onExit() {
      clearTimeout(limit);
      ear.ended(self);
      isEnding = true;
    },
  });
  child.unref();
  // One that never gets ready ends here as well.
  let limit = setTimeout(end, idleMsMax).unref();

  function hear(report: Report): void {
    // The last words of one that is given up come too late.
    if (isEnding) return;
    isReady = true;
    const answered = question;
    question = undefined;
    if (answered) {
      ear.worked(performance.now() - takenAt);
      settle(answered, report);
    }
    clearTimeout(limit);
    limit = setTimeout(end, idleMsMax).unref();
    ear.free();
  }

  function giveUp(): void {
    ear.worked(workMsMax);
    question?.reject(overloaded('CHILD_LATE'));
    end();
  }

  function end(): void {
    isEnding = true;
    // Whoever waits for its end is not to be cut short.
    child.ref();
    child.kill('SIGKILL');
  }

  const self: Child = {
    exited: child.exited,
    get isReady() {
      return isReady;
    },
    get isEnding() {
      return isEnding;
    },
    get question() {
      return question;
    },
    take(taken) {
      clearTimeout(limit);
      limit = setTimeout(giveUp, workMsMax).unref();
      takenAt = performance.now();
      question = taken;
      try {
        child.send({ question: taken.asked });
      } catch (error) {
        // A closed channel is the death of the child, which is heard of elsewhere; anything else is a bug of who asks.
        if ((error as { code?: unknown }).code !== 'ERR_IPC_CHANNEL_CLOSED') {
          taken.reject(error);
          end();
        } else child.kill('SIGKILL');
      }
    },
    end,
  };
  return self;
}

function settle({ resolve, reject }: Question, report: Report): void {
  if (report.kind === 'answer') resolve(report.answer as never);
  if (report.kind === 'fault') reject(new Fault(report.code, report.complaints, causeOf(report.trace)));
}

/** The error of a child as the log of its parent can tell it. */
function causeOf({ code, frames }: Trace): Error {
  const error = Object.assign(new Error('in a child process'), { code });
  error.stack = frames;
  return error;
}

/**
 * The child's side: answers questions until the parent goes away. `handle` may throw; what a Fault says is passed on by
 * its code and complaints, anything else is a bug: `internal`. No message of an error leaves the child.
 */
export async function serveParent(handle: (question: unknown) => unknown | Promise<unknown>): Promise<void> {
  lowerPriority();
  // A terminal and a service manager signal every process of a group; what is in flight is the parent's to end.
  const ignore = () => undefined;
  for (const signal of SIGNALS) process.on(signal, ignore);
  process.on('message', ({ question }: { question: unknown }) => attempt(handle, question));
  const gone = new Promise((resolve) => process.once('disconnect', resolve));
  tell({ kind: 'ready' });
  if (process.connected) await gone;
  for (const signal of SIGNALS) process.off(signal, ignore);
}

const SIGNALS = ['SIGTERM', 'SIGINT'] as const;

/** Where the system has no `nice` to start with. One that forbids it gets its answers all the same. */
function lowerPriority(): void {
  try {
    setPriority(constants.priority.PRIORITY_LOW);
  } catch {}
}

async function attempt(handle: (question: unknown) => unknown, question: unknown): Promise<void> {
  try {
    tell({ kind: 'answer', answer: await handle(question) });
  } catch (error) {
    const [code, complaints] =
      error instanceof Fault ? [error.code, error.complaints] : ['internal' as const, []];
    tell({ kind: 'fault', code, complaints, trace: traceOf(error instanceof Fault ? error.cause : error) });
  }
}

function tell(report: Report): void {
  if (process.connected) process.send?.(report);
}

function traceOf(error: unknown): Trace {
  if (!(error instanceof Error)) return { code: typeof error, frames: '' };
  const { code } = error as { readonly code?: unknown };
  const frames = (error.stack ?? '').split('\n').filter((line) => line.startsWith('    at '));
  return { code: typeof code === 'string' ? code : error.name, frames: frames.join('\n') };
}
