import { overloaded } from '../../model/fault.ts';
import { LIMITS } from '../../model/limits.ts';
import type { Call } from './call.ts';

export type LoopBudget = ReturnType<typeof openLoopBudget>;

interface LoopBudgetDeps {
  /** Milliseconds of the event loop, so far, for work that is done outside of turns, such as commits. */
  readonly workMs: () => number;
  readonly now?: () => number;
}

interface Waiting {
  readonly dueAt: number;
  readonly resolve: (value: undefined) => void;
  readonly reject: (error: unknown) => void;
}

/** Turns between two polls of the event loop for requests. */
const TURNS_PER_POLL = 8;
/** Polls without a lookup that end the limit: after one, lookups may wait because this process did not run. */
const QUIET_POLLS = 3;
/** Time of a request outside of its turn: reading, authentication, writing and their objects. */
const RUNTIME_MS = 0.04;

/**
 * Shares the event loop between lookups, which never wait, and all other work, which waits for its turn
 * (docs/decisions/0017-overload-and-rates.md). A turn runs as a task of its own. The event loop runs all promise reactions of a
 * task before the next task, so the time between two tasks is what the turn used until it waits for a socket, a file or a worker.
 */
export function openLoopBudget(deps: LoopBudgetDeps) {
  const { now = () => performance.now() } = deps;
  const share = openLoopShare({ ...deps, now });
  let waiting: Waiting[] = [];
  let isScheduled = false;
  let startedAt = 0;
  let turns = 0;
  let atOnce = 1;

  /** Plans the next turns, or waits until the share allows one. */
  function schedule(): void {
    rejectOverdue();
    isScheduled = waiting.length > 0;
    if (!isScheduled) return;
    const pauseMs = share.pauseMs();
    if (pauseMs > 0) {
      setTimeout(schedule, pauseMs);
      return;
    }
    turns = 0;
    setImmediate(() => {
      startedAt = now();
      // Without lookups all of them begin at once, so that writes share a commit.
      atOnce = share.isLimited() ? 1 : Math.ceil(waiting.length / TURNS_PER_POLL);
    });
    for (let count = 0; count < TURNS_PER_POLL; count += 1) setImmediate(takeTurn);
    setImmediate(() => {
      share.spend(usedMs());
      schedule();
    });
  }

  const usedMs = (): number => now() - startedAt + turns * RUNTIME_MS;

  function takeTurn(): void {
    if (turns > 0 && share.isLimited() && usedMs() >= share.leftMs()) return;
    for (const { resolve } of waiting.splice(0, atOnce)) {
      turns += 1;
      resolve(undefined);
    }
  }

  function rejectOverdue(): void {
    const at = now();
    if (!waiting.some(({ dueAt }) => dueAt <= at)) return;
    const overdue = waiting.filter(({ dueAt }) => dueAt <= at);
    waiting = waiting.filter(({ dueAt }) => dueAt > at);
    for (const { reject } of overdue) reject(overloaded('DEADLINE_EXCEEDED'));
  }

  function enter(waitMsMax: number): Promise<undefined> {
    const { promise, resolve, reject } = Promise.withResolvers<undefined>();
    waiting.push({ dueAt: now() + waitMsMax, resolve, reject });
    if (!isScheduled) schedule();
    return promise;
  }

  return {
    /** Counts a lookup. */
    countLookup: share.countLookup,
    /** Waits for a turn. Rejects with Fault `overloaded` if too many requests wait, or after LIMITS.turnWaitMsMax. */
    admit(call: Pick<Call, 'address'>): Promise<undefined> {
      // Read while the connection is open, so that a caller that disconnects early is logged as well.
      call.address();
      if (waiting.length >= LIMITS.turnsWaitingMax) throw overloaded('QUEUE_FULL');
      return enter(LIMITS.turnWaitMsMax);
    },
    /** Waits for a turn for as long as it takes: for work that has no request, or whose request was admitted. */
    turn: (): Promise<void> => enter(Number.POSITIVE_INFINITY),
  };
}

/**
 * A token bucket of milliseconds, which limits nothing while no lookup arrives. It allows a turn every LIMITS.turnPauseMsMax: commits
 * that take no turn, as of webhooks, could otherwise use the whole share.
 */
function openLoopShare({ workMs, now }: Required<LoopBudgetDeps>) {
  let leftMs: number = LIMITS.loopShareMsMax;
  let refilledAt = now();
  let workSeenMs = 0;
  let lookups = 0;
  let lookupsSeen = 0;
  let lookupSeenAt = Number.NEGATIVE_INFINITY;
  let quietPolls = QUIET_POLLS;
  let turnedAt = Number.NEGATIVE_INFINITY;

  function refill(): void {
    const at = now();
    const work = workMs();
    const earnedMs = ((at - refilledAt) * LIMITS.loopSharePercent) / 100 - (work - workSeenMs);
    leftMs = Math.min(LIMITS.loopShareMsMax, Math.max(leftMs + earnedMs, -LIMITS.loopDebtMsMax));
    refilledAt = at;
    workSeenMs = work;
    quietPolls += 1;
    if (lookups === lookupsSeen) return;
    quietPolls = 0;
    lookupsSeen = lookups;
    lookupSeenAt = at;
  }

  const isLimited = (): boolean =>
    refilledAt - lookupSeenAt < LIMITS.lookupPauseMs || quietPolls < QUIET_POLLS;

  return {
    countLookup() {
      lookups += 1;
      return undefined;
    },
    leftMs: () => leftMs,
    isLimited,
    spend(ms: number): void {
      leftMs -= ms;
      turnedAt = now();
    },
    /** Milliseconds until the next turn may run. */
    pauseMs(): number {
      refill();
      if (leftMs > 0 || !isLimited() || now() - turnedAt >= LIMITS.turnPauseMsMax) return 0;
      // Lookups may end before the share is refilled.
      return Math.min(Math.ceil((-leftMs * 100) / LIMITS.loopSharePercent) + 1, LIMITS.lookupPauseMs);
    },
  };
}
