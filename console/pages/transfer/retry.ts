import { type Problem, toProblem } from '../../api/problem.ts';
import { session } from '../../session/session.ts';

/** What many requests of one piece of work have in common: when one of them has to wait, all do. */
export interface RetryGate {
  /**
   * Asks until there is an answer, or a refusal that waiting does not change. A busy or lost service is asked again when
   * it said so; without a session, or a right, the work stands still until it goes on. Throws Problem, or the reason of
   * the signal.
   */
  ask<T>(request: () => Promise<T>): Promise<T>;
  /** Lets work that stands still go on. */
  resume(): void;
}

interface RetryGateOptions {
  readonly signal: AbortSignal;
  /** Told why nothing moves; undefined when it does again. */
  readonly onWait: (problem: Problem | undefined) => void;
}

const NEEDS_USER = new Set<Problem['kind']>(['ended', 'forbidden']);

function tokenNow(): string | undefined {
  return session.get().open?.token;
}

export function retryGate({ signal, onWait }: RetryGateOptions): RetryGate {
  let gate: Promise<void> | undefined;
  let open: (() => void) | undefined;

  /** One wait for all; who comes while it lasts waits along. */
  function closeGate(problem: Problem): void {
    if (gate) return;
    onWait(problem);
    gate = new Promise<void>((resolve) => {
      const needsUser = NEEDS_USER.has(problem.kind);
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

  /** Undefined where it is worth another attempt. */
  async function attempt<T>(request: () => Promise<T>): Promise<{ readonly answer: T } | undefined> {
    const token = tokenNow();
    try {
      return { answer: await request() };
    } catch (error) {
      signal.throwIfAborted();
      const problem = toProblem(error);
      const needsUser = NEEDS_USER.has(problem.kind);
      if (problem.waitSeconds === undefined && !needsUser) throw problem;
      // What was asked with a token of before is asked once more with the one that came since.
      const hasNewToken = needsUser && tokenNow() !== undefined && tokenNow() !== token;
      if (!hasNewToken) closeGate(problem);
      return undefined;
    }
  }

  return {
    async ask(request) {
      for (;;) {
        while (gate) await gate;
        signal.throwIfAborted();
        const done = await attempt(request);
        if (done) return done.answer;
      }
    },
    resume: () => open?.(),
  };
}

/** Does something with each of many, a few at a time. Rejects with the first error, when those under way are done. */
export async function forEachLimited<T>(
  items: AsyncIterable<T> | Iterable<T>,
  atOnce: number,
  act: (item: T) => Promise<void>,
): Promise<void> {
  const under = new Set<Promise<void>>();
  const errors: unknown[] = [];
  for await (const item of items) {
    const work = act(item)
      .catch((error: unknown) => {
        errors.push(error);
      })
      .finally(() => under.delete(work));
    under.add(work);
    if (under.size >= atOnce) await Promise.race(under);
    if (errors.length > 0) break;
  }
  await Promise.all(under);
  if (errors.length > 0) throw errors[0];
}
