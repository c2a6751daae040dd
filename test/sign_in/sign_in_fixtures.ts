import { openLogKeys } from '../../src/log/keys.ts';
import { parseIpAddress } from '../../src/model/ip_address.ts';
import { systemClock } from '../../src/ops/process/clock.ts';
import { openSignInBudgets, type SignInAttempt, type SignInBudgets } from '../../src/sign_in/budgets.ts';
import type { DeviceToken } from '../../src/sign_in/device_token.ts';
import type { BudgetStore } from '../../src/sign_in/store/budgets.ts';

export const KEYS = openLogKeys(new Uint8Array(32).fill(1), systemClock);

/** A time of day that is the same in every run. */
const START = 20_000 * 86_400_000;

/** A clock that only `pass` moves: forward, or its wall clock alone by `setBack`. */
export function manualClock() {
  let wall = START;
  let monotonic = 0;
  return {
    now: () => wall,
    monotonic: () => monotonic,
    pass(ms: number): void {
      wall += ms;
      monotonic += ms;
    },
    /** As long as an exhausted bucket may be remembered passes as well. */
    setBack(ms: number): void {
      wall -= ms;
      monotonic += 1_000;
    },
  };
}

/** Attempts in one realm and profile that no other test uses. */
export function freshAttempts() {
  const [realmId, profileId] = [systemClock.mintId(), systemClock.mintId()];
  return (usernameKey: string, address?: string, more: Partial<SignInAttempt> = {}): SignInAttempt => ({
    ...{ realmId, profileId, usernameKey, clientId: 'shop', device: undefined },
    address: address === undefined ? undefined : parseIpAddress(address),
    ...more,
  });
}

export function deviceToken(): DeviceToken {
  return { id: Buffer.from(systemClock.randomBytes(16)).toString('base64url'), version: '' };
}

/** The budgets of one process. */
export function openProcess(store: BudgetStore, clock: ReturnType<typeof manualClock>) {
  const budgets = openSignInBudgets(store, KEYS, clock);
  return { ...budgets, guess: (attempt: SignInAttempt) => guess(budgets, attempt) };
}

/** Sends a wrong password. Resolves to whether it was checked, and with a device or without. */
async function guess(
  budgets: SignInBudgets,
  attempt: SignInAttempt,
): Promise<'device' | 'no device' | number> {
  const admitted = await budgets.admit(attempt);
  if ('retryAfterS' in admitted) return admitted.retryAfterS;
  await budgets.countWrong(admitted);
  return admitted.device ? 'device' : 'no device';
}

/** How many of these guesses were checked. */
export async function checkedOf(
  send: (attempt: SignInAttempt) => Promise<'device' | 'no device' | number>,
  attempts: Iterable<SignInAttempt>,
): Promise<number> {
  let checked = 0;
  for (const attempt of attempts) if (typeof (await send(attempt)) === 'string') checked += 1;
  return checked;
}
