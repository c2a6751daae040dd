import { expect, test } from 'bun:test';
import type { Call } from '../../src/http/pipeline/call.ts';
import { openLoopBudget } from '../../src/http/pipeline/loop_budget.ts';
import { LIMITS } from '../../src/model/limits.ts';

const call = { address: () => undefined } as unknown as Call;
const MEASURED_MS = 1_000;
const TURN_MS = 1;

/**
 * Takes turns by several callers; each advances the clock by TURN_MS. Between turns the clock is that of the system, as the budget's timers
 * are. Returns the share of the time that the turns used.
 */
async function usedShare(hasLookups: boolean, workShare = 0): Promise<number> {
  const start = performance.now();
  let usedMs = 0;
  const now = () => performance.now() - start + usedMs;
  const budget = openLoopBudget({ now, workMs: () => now() * workShare });
  const callers = Array.from({ length: 8 }, async () => {
    while (now() < MEASURED_MS) {
      await budget.turn();
      usedMs += TURN_MS;
    }
  });
  let isDone = false;
  const completion = Promise.all(callers).then(() => {
    isDone = true;
  });
  while (!isDone) {
    if (hasLookups && now() < MEASURED_MS) budget.countLookup();
    await new Promise((resolve) => setImmediate(resolve));
  }
  await completion;
  return usedMs / now();
}

test('turns use at most loopSharePercent of the event loop while lookups arrive, and more without them', async () => {
  const least = (2 / 3) * (LIMITS.loopSharePercent / 100);
  const most = (LIMITS.loopSharePercent + 5) / 100;
  let used = 0;
  // A busy machine may leave this process less.
  for (let tries = 0; tries < 10 && used <= least; tries += 1) {
    used = await usedShare(true);
    expect(used).toBeLessThan(most);
  }
  expect(used).toBeGreaterThan(least);
  expect(await usedShare(false)).toBeGreaterThan(most);
});

test('while commits outside of turns use the share, one turn runs every turnPauseMsMax', async () => {
  const share = await usedShare(true, (2 * LIMITS.loopSharePercent) / 100);
  const allowed = TURN_MS / LIMITS.turnPauseMsMax;
  expect([share > allowed / 3, share < allowed * 2]).toEqual([true, true]);
});

/** A budget whose share is used up while lookups arrive, and its clock. */
function usedUp() {
  const clock = { now: 0, workMs: 0 };
  const budget = openLoopBudget({ now: () => clock.now, workMs: () => clock.workMs });
  clock.workMs = LIMITS.loopDebtMsMax * 2;
  budget.countLookup();
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
  budget.countLookup();
  await Bun.sleep(LIMITS.lookupPauseMs * 4);
  expect([hasTurn, Bun.peek(admitted)]).toEqual([false, admitted]);
  clock.now += 1;
  budget.countLookup();
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
