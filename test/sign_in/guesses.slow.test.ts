import { afterAll, expect, test } from 'bun:test';
import { openSignInQueue } from '../../src/sign_in/queue.ts';
import { openSignUp } from '../../src/sign_in/sign_up.ts';
import { isCitusEngine } from '../support/citus_cluster.ts';
import { freshDatabase } from '../support/database.ts';
import { checkedOf, deviceToken, freshAttempts, manualClock, openProcess } from './sign_in_fixtures.ts';

const db = await freshDatabase();
const engine = await db.open();
afterAll(() => engine.close());

const HOUR_MS = 3_600_000;
/** Every guess reads buckets, which takes a cluster three round trips. */
const GUESSES = isCitusEngine ? 2_000 : 10_000;
const OWNER_SIGN_INS = 100;

/** Sends GUESSES at a name from 1,000 addresses within 5 hours; returns the outcomes, and how often the owner was admitted. */
async function attack(isKnown: boolean) {
  const clock = manualClock();
  const { guess, admit } = openProcess(engine.budgets, clock);
  const attemptOf = freshAttempts();
  const device = deviceToken();
  const outcomes: (string | number)[] = [];
  let ownerIn = 0;
  for (let at = 0; at < GUESSES; at += 1) {
    outcomes.push(await guess(attemptOf('jane', `10.0.${(at % 1_000) >> 8}.${at & 255}`)));
    if (isKnown && at % (GUESSES / OWNER_SIGN_INS) === 0) {
      const admitted = await admit(attemptOf('jane', '192.0.2.1', { device }));
      if ('clientId' in admitted && admitted.device) ownerIn += 1;
    }
    clock.pass((5 * HOUR_MS) / GUESSES);
  }
  return { outcomes, ownerIn };
}

test('of thousands of guesses at a name from 1,000 addresses, 100 and six an hour are checked, while its owner signs in', async () => {
  const known = await attack(true);
  const checked = known.outcomes.filter((outcome) => outcome === 'no device').length;
  expect(checked).toBeGreaterThanOrEqual(100);
  expect(checked).toBeLessThanOrEqual(100 + 5 * 6);
  expect(known.ownerIn).toBe(OWNER_SIGN_INS);
  const unknown = await attack(false);
  expect(unknown.outcomes).toEqual(known.outcomes);
});

test('a list of leaked passwords is checked 1,000 times from one /48, whatever its addresses', async () => {
  const { guess } = openProcess(engine.budgets, manualClock());
  const attemptOf = freshAttempts();
  const list = Array.from({ length: 1_010 }, (_, at) => attemptOf(`user${at}`, `2001:db8:1:${at}::1`));
  expect(await checkedOf(guess, list)).toBe(1_000);
  expect(await guess(attemptOf('jane', '2001:db8:2::1'))).toBe('no device');
});

test.each([[1], [1_000]])(
  'of thousands of sign-ups from %p addresses, ten of each address hash a password',
  async (addresses) => {
    const clock = manualClock();
    const signUp = openSignUp(openProcess(engine.budgets, clock), openSignInQueue(clock.monotonic));
    const attemptOf = freshAttempts();
    let hashed = 0;
    for (let at = 0; at < GUESSES; at += 1) {
      const from = at % addresses;
      const attempt = attemptOf(`user${at}`, `10.1.${from >> 8}.${from & 255}`);
      if ('isHashed' in (await signUp(attempt, async () => ({ isHashed: true })))) hashed += 1;
    }
    expect(hashed).toBe(Math.min(GUESSES, 10 * addresses));
  },
);
