import { type Problem, toProblem } from '../../api/problem.ts';
import type { Observable } from '../../observable.ts';
import { session } from '../../session/session.ts';

/** A running import or export. */
export interface TransferRun<State> {
  readonly state: Observable<State>;
  cancel(): void;
  resume(): void;
}

/** Shared by the requests of one transfer: when one has to wait, all wait. */
export interface RetryGate {
  /**
   * Retries a request until it succeeds or fails permanently. Waits as long as a busy service asks for, and for the
   * next sign-in; without a scope it waits for `resume`. Throws Problem, or the reason of the signal.
   */
  run<T>(request: () => Promise<T>): Promise<T>;
  /** Continues after `resume` by the user. */
  resume(): void;
}

interface RetryGateOptions {
  readonly signal: AbortSignal;
  /** Called with the reason of waiting, and with undefined afterwards. */
  readonly onWait: (problem: Problem | undefined) => void;
}

function tokenNow(): string | undefined {
  return session.get().open?.token;
}

export function retryGate({ signal, onWait }: RetryGateOptions): RetryGate {
  let gate: Promise<void> | undefined;
  let open: (() => void) | undefined;

  /** One wait for all requests. */
  function closeGate(problem: Problem): void {
    if (gate) return;
    onWait(problem);
    gate = new Promise<void>((resolve) => {
      const needsUser = problem.kind === 'forbidden';
      const timer = needsUser ? undefined : setTimeout(() => open?.(), (problem.waitSeconds ?? 2) * 1_000);
      open = () => {
        clearTimeout(timer);
        gate = undefined;
        open = undefined;
        onWait(undefined);
        resolve();
      };
      signal.addEventListener('abort', () => open?.(), { once: true });
    });
  }

  /** Undefined if it should be retried. */
  async function attempt<T>(request: () => Promise<T>): Promise<{ readonly answer: T } | undefined> {
    const token = tokenNow();
    try {
      return { answer: await request() };
    } catch (error) {
      signal.throwIfAborted();
      const problem = toProblem(error);
      const needsUser = problem.kind === 'forbidden';
      if (problem.waitSeconds === undefined && !needsUser) throw problem;
      // The request used an old token: retry with the new one.
      const hasNewToken = needsUser && tokenNow() !== undefined && tokenNow() !== token;
      if (!hasNewToken) closeGate(problem);
      return undefined;
    }
  }

  return {
    async run(request) {
      for (;;) {
        while (gate) await gate;
        signal.throwIfAborted();
        const success = await attempt(request);
        if (success) return success.answer;
      }
    },
    resume: () => open?.(),
  };
}

/** Browsers open six connections per host: one stays free for the user. */
const CONCURRENCY = 5;

/**
 * Runs an action for each item with limited concurrency. Rejects with the first error after running actions
 * end.
 */
export async function forEachLimited<T>(
  items: AsyncIterable<T> | Iterable<T>,
  action: (item: T) => Promise<void>,
): Promise<void> {
  const running = new Set<Promise<void>>();
  const errors: unknown[] = [];
  for await (const item of items) {
    const work = action(item)
      .catch((error: unknown) => {
        errors.push(error);
      })
      .finally(() => running.delete(work));
    running.add(work);
    if (running.size >= CONCURRENCY) await Promise.race(running);
    if (errors.length > 0) break;
  }
  await Promise.all(running);
  if (errors.length > 0) throw errors[0];
}
