import type { SignInAttempt, SignInBudgets, ThrottledSignIn } from './budgets.ts';
import type { SignInQueue } from './queue.ts';

/**
 * Limits sign-ups, each of which hashes a password. A sign-up within its budget runs in its turn among the password checks. It takes from
 * the budget before it runs, so that usernames which are taken count as well. Rejects with Fault `overloaded` if the queue is full.
 */
export function openSignUp(
  budgets: Pick<SignInBudgets, 'throttledSource' | 'takeFromSource'>,
  queue: Pick<SignInQueue, 'run'>,
) {
  return async <T extends object>(
    attempt: SignInAttempt,
    create: () => Promise<T>,
  ): Promise<T | ThrottledSignIn> => {
    const source = { ...attempt, kind: 'sign-up' } as const;
    const runInTurn = async () => {
      const throttled = await budgets.throttledSource(source);
      if (throttled) return throttled;
      await budgets.takeFromSource(source);
      return create();
    };
    return (await budgets.throttledSource(source)) ?? queue.run(attempt, runInTurn, true);
  };
}
