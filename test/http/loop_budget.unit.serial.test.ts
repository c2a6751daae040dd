import { expect, test } from 'bun:test';
import { LIMITS } from '../../src/domain/limits.ts';
import type { Call } from '../../src/http/pipeline/call.ts';
import { openLoopBudget } from '../../src/http/pipeline/loop_budget.ts';

const call = { address: () => undefined } as unknown as Call;
const MEASURED_MS = 2_000;
const TURN_MS = 1;
const POLL_MS = 0.1;

/** Takes turns by several callers on a clock that turns and polls advance; returns the share of the time that the turns used. */
async function usedShare(hasLookups: boolean, workShare = 0, pollMs = POLL_MS): Promise<number> {
  const clock = { now: 0, workMs: 0 };
  const budget = openLoopBudget({ now: () => clock.now, workMs: () => clock.workMs });
  let usedMs = 0;
  const callers = Array.from({ length: 8 }, async () => {
    while (clock.now < MEASURED_MS) {
      await budget.turn();
      clock.now += TURN_MS;
      usedMs += TURN_MS;
    }
  });
  let isDone = false;
  const completion = Promise.all(callers).then(() => {
    isDone = true;
  });
  while (!isDone) {
    if (hasLookups && clock.now < MEASURED_MS) budget.countLookup(call);
    clock.now += pollMs;
    clock.workMs += pollMs * workShare;
    await new Promise((resolve) => setImmediate(resolve));
  }
  await completion;
  return usedMs / clock.now;
}

test('turns use at most loopSharePercent of the event loop while lookups come, and more without them', async () => {
  const most = (LIMITS.loopSharePercent + 5) / 100;
  const beside = await usedShare(true);
  expect([beside > 0, beside < most]).toEqual([true, true]);
  expect(await usedShare(false)).toBeGreaterThan(most);
});

test('while commits outside of turns use the share, one turn runs every turnPauseMsMax', async () => {
  // The pauses are real time, in which the clock of many short polls is not far ahead.
  const share = await usedShare(true, (2 * LIMITS.loopSharePercent) / 100, POLL_MS / 5);
  const allowed = TURN_MS / LIMITS.turnPauseMsMax;
  expect([share > allowed / 3, share < allowed * 2]).toEqual([true, true]);
});

/** A budget whose share is used up while lookups come, and its clock. */
function usedUp() {
  const clock = { now: 0, workMs: 0 };
  const budget = openLoopBudget({ now: () => clock.now, workMs: () => clock.workMs });
  clock.workMs = LIMITS.loopDebtMsMax * 2;
  budget.countLookup(call);
  return { clock, budget };
}

test('a request whose turn does not come within turnWaitMsMax is overloaded, other work waits on', async () => {
  const { clock, budget } = usedUp();
  // These get the turns that are allowed every turnPauseMsMax.
  void budget.turn();
  void budget.turn();
  let hasTurn = false;
  const turn = budget.turn().then(() => {
    hasTurn = true;
  });
  const admitted = Promise.resolve(budget.admit(call)).catch(({ code }) => code);
  clock.now += LIMITS.turnWaitMsMax - 1;
  clock.workMs += LIMITS.turnWaitMsMax;
  budget.countLookup(call);
  await Bun.sleep(LIMITS.lookupPauseMs * 4);
  expect([hasTurn, Bun.peek(admitted)]).toEqual([false, admitted]);
  clock.now += 1;
  budget.countLookup(call);
  expect(await admitted).toBe('overloaded');
  clock.now += LIMITS.turnWaitMsMax;
  await turn;
});

test('a request beyond turnsWaitingMax is overloaded at once', () => {
  const { budget } = usedUp();
  for (let count = 0; count < LIMITS.turnsWaitingMax; count += 1)
    Promise.resolve(budget.admit(call)).catch(() => undefined);
  expect(() => budget.admit(call)).toThrow('overloaded');
});
