import { describe, expect, test } from 'bun:test';
import { LIMITS } from '../../src/domain/limits.ts';
import { openAdmission } from '../../src/store/admission.ts';

/** A gate over a clock that is moved by hand. */
function gateAt() {
  let at = 5_000;
  const gate = openAdmission(() => at);
  const enter = (count: number) => {
    for (let done = 0; done < count; done += 1) gate.enter();
  };
  return {
    ...gate,
    enter,
    pass: (ms: number) => {
      at += ms;
    },
    /** So many a second, each by itself, for a while, with nothing else inside. */
    serve(perSecond: number, ms: number) {
      for (let passed = 0; passed < ms; passed += 1_000 / perSecond) {
        gate.enter();
        at += 1_000 / perSecond;
        gate.leave(1);
      }
    },
    /** Lets in until it is full, and says how many. */
    fill(most = 100_000) {
      let count = 0;
      for (; count < most && !gate.isOverloaded(); count += 1) gate.enter();
      return count;
    },
  };
}

const EXPECTED = (perSecond: number) => (perSecond * LIMITS.workWaitMsMax) / 1_000;

test.each([1_000, 5_000, 40_000])('at %p a second it lets in what is done in workWaitMsMax', (perSecond) => {
  const gate = gateAt();
  gate.serve(perSecond, 2_000);
  const count = gate.fill();
  expect(count).toBeGreaterThanOrEqual(EXPECTED(perSecond));
  expect(count).toBeLessThanOrEqual(EXPECTED(perSecond) + 2);
});

test('workAdmittedMin: so many may wait for longer', () => {
  const gate = gateAt();
  gate.serve(100, 5_000);
  expect(gate.fill()).toBe(LIMITS.workAdmittedMin);
});

test('workOverdueMsMax: not all of them where it takes too long', () => {
  const gate = gateAt();
  gate.serve(20, 5_000);
  const most = (20 * LIMITS.workOverdueMsMax) / 1_000;
  expect(gate.fill()).toBeWithin(most, most + 3);
});

test('workSampleMin: so many are let in however slow it is', () => {
  const gate = gateAt();
  gate.serve(1, 5_000);
  expect(gate.fill()).toBe(LIMITS.workSampleMin);
});

test('admission refuses nothing before it has measured any work', () => {
  const gate = gateAt();
  gate.enter(50_000);
  gate.pass(3_000);
  expect(gate.isOverloaded()).toBe(false);
});

test('admission opens again when admitted work is done', () => {
  const gate = gateAt();
  gate.serve(1_000, 2_000);
  gate.fill();
  expect(gate.isOverloaded()).toBe(true);
  gate.pass(100);
  gate.leave(100);
  expect(gate.isOverloaded()).toBe(false);
});

test('while nothing is done it closes, and what comes after is done at the old pace again', () => {
  const gate = gateAt();
  gate.serve(1_000, 2_000);
  gate.enter(300);
  expect(gate.isOverloaded()).toBe(false);
  gate.pass(2_000);
  expect(gate.isOverloaded()).toBe(true);
  gate.giveUp(300);
  expect(gate.isOverloaded()).toBe(false);
  gate.serve(1_000, 3_000);
  expect(gate.fill()).toBeGreaterThan(EXPECTED(1_000) * 0.9);
});

test('admission ignores time in which nothing waits', () => {
  const gate = gateAt();
  gate.serve(2_000, 2_000);
  gate.pass(3_600_000);
  expect(gate.fill()).toBeGreaterThanOrEqual(EXPECTED(2_000));
});

test('admission does not count abandoned work as done', () => {
  const gate = gateAt();
  gate.serve(1_000, 2_000);
  for (let round = 0; round < 20; round += 1) {
    gate.enter(1_000);
    gate.pass(1_000);
    gate.giveUp(1_000);
  }
  gate.serve(400, 20);
  expect(gate.fill()).toBeLessThanOrEqual(EXPECTED(400));
});

describe('admission in the long run', () => {
  /** Twice as many come as can be done; `group` at a time are done, in so many milliseconds. */
  function overload(groupMs: (size: number) => number, perMs: number) {
    const gate = gateAt();
    let waiting = 0;
    let done = 0;
    let worst = 0;
    let passed = 0;
    for (let group = 0; group < 400; group += 1) {
      const size = Math.max(1, Math.min(waiting, LIMITS.writesGroupedMax));
      if (waiting === 0) {
        gate.enter(1);
        waiting = 1;
      }
      const ms = groupMs(size);
      for (let coming = 0; coming < ms * perMs; coming += 1) {
        gate.pass(1 / perMs);
        if (gate.isOverloaded()) continue;
        gate.enter(1);
        waiting += 1;
      }
      gate.leave(size);
      waiting -= size;
      done += size;
      passed += ms;
      if (group > 200) worst = Math.max(worst, waiting);
    }
    return { perSecond: (done / passed) * 1_000, worst };
  }

  test('an engine that takes as long for many as for one is used to the full', () => {
    const { perSecond } = overload(() => 50, 10);
    // All that comes is done, for a commit takes it all.
    expect(perSecond).toBeGreaterThan(9_000);
  });

  test('one that takes twice as long for twice as many has a queue of workWaitMsMax', () => {
    const { perSecond, worst } = overload((size) => 1 + size * 0.2, 10);
    expect(perSecond).toBeGreaterThan(4_500);
    expect(worst / perSecond).toBeLessThan((LIMITS.workWaitMsMax / 1_000) * 1.3);
  });
});
