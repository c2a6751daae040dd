import type { SignInAttempt, SignInBudgets, ThrottledSignIn } from './budgets.ts';
import type { SignInQueue } from './queue.ts';

export type SignUp = ReturnType<typeof openSignUp>;

/**
 * Limits sign-ups, each of which hashes a password. A sign-up within its budget runs in its turn among the password checks. It takes from
 * the budget before it runs, so that usernames which are taken count as well. Rejects with Fault `overloaded` if the queue is full.
 */
export function openSignUp(
  budgets: Pick<SignInBudgets, 'exhaustedSignUp' | 'takeSignUp'>,
  queue: Pick<SignInQueue, 'run'>,
) {
  return async <T extends object>(
    attempt: SignInAttempt,
    create: () => Promise<T>,
  ): Promise<T | ThrottledSignIn> =>
    budgets.exhaustedSignUp(attempt) ??
    queue.run(attempt, async () => (await budgets.takeSignUp(attempt)) ?? create(), true);
}
