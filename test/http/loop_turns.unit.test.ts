import { expect, test } from 'bun:test';
import type { Call } from '../../src/http/pipeline/call.ts';
import { openLoopBudget } from '../../src/http/pipeline/loop_budget.ts';
import { LIMITS } from '../../src/model/limits.ts';

/** Turn by turn, on a clock that only the test advances: when turns run, how many at once, and when the limit ends. */

const call = { address: () => undefined } as unknown as Call;

/** A budget whose polls of the loop are counted. */
function createBudget() {
  const clock = { now: 0, workMs: 0 };
  let polls = 0;
  const budget = openLoopBudget({
    now: () => clock.now,
    workMs: () => {
      polls += 1;
      return clock.workMs;
    },
  });
  return { clock, budget, polls: () => polls };
}

/** Lets so many tasks of the event loop run. */
async function tasks(count: number): Promise<void> {
  for (let task = 0; task < count; task += 1) await new Promise((resolve) => setImmediate(resolve));
}

/** Takes turns that use so many milliseconds each. Returns how many of them each poll allowed. */
async function turnsPerPoll(
  isWithLookup: boolean,
  turns: number,
  turnMs: number,
): Promise<readonly number[]> {
  const { clock, budget, polls } = createBudget();
  if (isWithLookup) budget.countLookup();
  const perPoll: number[] = [];
  let done = 0;
  for (let turn = 0; turn < turns; turn += 1) {
    void budget.turn().then(() => {
      clock.now += turnMs;
      perPoll[polls() - 1] = (perPoll[polls() - 1] ?? 0) + 1;
      done += 1;
    });
  }
  for (let passed = 0; done < turns && passed < 100; passed += 1) await tasks(1);
  return perPoll;
}

test('while lookups arrive, eight short turns run between two polls of the loop, each as a task of its own', async () => {
  expect(await turnsPerPoll(true, 20, 0)).toEqual([8, 8, 4]);
});

test('while lookups arrive, no further turn begins once the share is used', async () => {
  expect((await turnsPerPoll(true, 20, LIMITS.loopShareMsMax / 2))[0]).toBe(2);
});

test('without lookups all turns begin before the next poll, however long they are', async () => {
  expect(await turnsPerPoll(false, 20, 0)).toEqual([20]);
  expect(await turnsPerPoll(false, 20, LIMITS.loopShareMsMax)).toEqual([20]);
});

test('a budget for whose turn nothing waits uses no time of the loop', async () => {
  const { budget, polls } = createBudget();
  await budget.turn();
  await tasks(20);
  const before = polls();
  await tasks(50);
  expect(polls()).toBe(before);
});

/** A budget in debt after a turn at time 0 and a lookup that the last poll has seen, with one turn waiting. */
async function indebted() {
  const created = createBudget();
  const { clock, budget, polls } = created;
  budget.countLookup();
  await budget.turn();
  await tasks(20);
  clock.workMs = 2 * LIMITS.loopDebtMsMax;
  budget.countLookup();
  const state = { turnAtPoll: 0 };
  void budget.turn().then(() => {
    state.turnAtPoll = polls();
  });
  /** Waits for so many polls. */
  const afterPolls = async (count: number) => {
    for (const until = polls() + count; polls() < until && state.turnAtPoll === 0; ) await Bun.sleep(1);
  };
  return { ...created, state, afterPolls };
}

test('the limit does not end while less than lookupPauseMs passed since the last lookup, after any number of polls', async () => {
  const { clock, state, afterPolls } = await indebted();
  await afterPolls(6);
  clock.now = LIMITS.lookupPauseMs - 0.001;
  await afterPolls(6);
  expect(state.turnAtPoll).toBe(0);
  clock.now = LIMITS.lookupPauseMs;
  await afterPolls(2);
  expect(state.turnAtPoll).toBeGreaterThan(0);
});

test('the limit does not end before the third poll without a lookup, however long the process did not run', async () => {
  const { clock, budget, state, polls, afterPolls } = await indebted();
  budget.countLookup();
  await afterPolls(1);
  const before = polls();
  clock.now = 2 * LIMITS.lookupPauseMs;
  await afterPolls(4);
  expect(state.turnAtPoll - before).toBe(3);
});

test('while the share is used, a turn runs exactly turnPauseMsMax after the last one', async () => {
  const { clock, budget, state, afterPolls } = await indebted();
  const passTime = async (to: number) => {
    clock.now = to;
    clock.workMs += LIMITS.turnPauseMsMax;
    for (let poll = 0; poll < 3; poll += 1) {
      budget.countLookup();
      await afterPolls(1);
    }
  };
  await passTime(LIMITS.turnPauseMsMax - 0.001);
  expect(state.turnAtPoll).toBe(0);
  await passTime(LIMITS.turnPauseMsMax);
  expect(state.turnAtPoll).toBeGreaterThan(0);
});

test('requests that waited too long leave their places to others', async () => {
  const { clock, budget } = createBudget();
  clock.workMs = 2 * LIMITS.loopDebtMsMax;
  budget.countLookup();
  const admitAll = () =>
    Array.from({ length: LIMITS.turnsWaitingMax }, () =>
      Promise.resolve(budget.admit(call)).catch(({ code }) => code),
    );
  const first = admitAll();
  clock.now += LIMITS.turnWaitMsMax;
  clock.workMs += LIMITS.turnWaitMsMax;
  budget.countLookup();
  const outcomes = await Promise.all(first);
  expect(outcomes.filter((outcome) => outcome === 'overloaded').length).toBeGreaterThan(
    LIMITS.turnsWaitingMax - 10,
  );
  expect(admitAll).not.toThrow();
});
