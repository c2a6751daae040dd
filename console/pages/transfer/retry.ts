import { type Problem, problemOf } from '../../api/problem.ts';
import { session } from '../../session/session.ts';

/** What many requests of one piece of work have in common: when one of them has to wait, all do. */
export interface Patience {
  /**
   * Asks until there is an answer, or a refusal that waiting does not change. A busy or lost service is asked again when
   * it said so; without a session, or a right, the work stands still until it goes on. Throws Problem, or the reason of
   * the signal.
   */
  ask<T>(question: () => Promise<T>): Promise<T>;
  /** Lets work that stands still go on. */
  goOn(): void;
}

interface PatienceProps {
  readonly signal: AbortSignal;
  /** Told why nothing moves; undefined when it does again. */
  readonly onWaiting: (problem: Problem | undefined) => void;
}

const STANDING = new Set<Problem['kind']>(['ended', 'forbidden']);

function tokenNow(): string | undefined {
  return session.get().open?.token;
}

export function patience({ signal, onWaiting }: PatienceProps): Patience {
  let gate: Promise<void> | undefined;
  let open: (() => void) | undefined;

  /** One wait for all; who comes while it lasts waits along. */
  function hold(problem: Problem): void {
    if (gate) return;
    onWaiting(problem);
    gate = new Promise<void>((resolve) => {
      const isStanding = STANDING.has(problem.kind);
      const timer = isStanding ? undefined : setTimeout(() => open?.(), (problem.waitSeconds ?? 2) * 1_000);
      open = () => {
        clearTimeout(timer);
        gate = undefined;
        open = undefined;
        onWaiting(undefined);
        resolve();
      };
      signal.addEventListener('abort', () => open?.(), { once: true });
    });
  }

  /** Undefined where it is worth another attempt. */
  async function attempt<T>(question: () => Promise<T>): Promise<{ readonly answer: T } | undefined> {
    const token = tokenNow();
    try {
      return { answer: await question() };
    } catch (error) {
      signal.throwIfAborted();
      const problem = problemOf(error);
      const isStanding = STANDING.has(problem.kind);
      if (problem.waitSeconds === undefined && !isStanding) throw problem;
      // What was asked with a token of before is asked once more with the one that came since.
      const isLate = isStanding && tokenNow() !== undefined && tokenNow() !== token;
      if (!isLate) hold(problem);
      return undefined;
    }
  }

  return {
    async ask(question) {
      for (;;) {
        while (gate) await gate;
        signal.throwIfAborted();
        const done = await attempt(question);
        if (done) return done.answer;
      }
    },
    goOn: () => open?.(),
  };
}

/** Does something with each of many, a few at a time. Rejects with the first error, when those under way are done. */
export async function eachOf<T>(
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
