import { describe, expect, test } from 'bun:test';
import { LIMITS } from '../../src/model/limits.ts';
import { openAdmission } from '../../src/sql/admission.ts';

/** Admission over a clock that the test moves. */
function createAdmission() {
  let at = 5_000;
  const admission = openAdmission(() => at);
  const enter = (count: number) => {
    for (let done = 0; done < count; done += 1) admission.enter();
  };
  return {
    ...admission,
    enter,
    pass: (ms: number) => {
      at += ms;
    },
    /** Admits and completes `perSecond` requests a second for `ms`, one at a time. */
    serve(perSecond: number, ms: number) {
      for (let passed = 0; passed < ms; passed += 1_000 / perSecond) {
        admission.enter();
        at += 1_000 / perSecond;
        admission.leave(1);
      }
    },
    /** Admits requests until admission is overloaded, and returns their number. */
    fill(most = 100_000) {
      let count = 0;
      for (; count < most && !admission.isOverloaded(); count += 1) admission.enter();
      return count;
    },
  };
}

const EXPECTED = (perSecond: number) => (perSecond * LIMITS.workWaitMsMax) / 1_000;

test.each([1_000, 5_000, 40_000])(
  'at %p requests a second, admission admits the work of workWaitMsMax',
  (perSecond) => {
    const admission = createAdmission();
    admission.serve(perSecond, 2_000);
    const count = admission.fill();
    expect(count).toBeGreaterThanOrEqual(EXPECTED(perSecond));
    expect(count).toBeLessThanOrEqual(EXPECTED(perSecond) + 2);
  },
);

test('admission admits workAdmittedMin requests even when they wait longer than workWaitMsMax', () => {
  const admission = createAdmission();
  admission.serve(100, 5_000);
  expect(admission.fill()).toBe(LIMITS.workAdmittedMin);
});

test('admission admits fewer than workAdmittedMin when they would wait longer than workOverdueMsMax', () => {
  const admission = createAdmission();
  admission.serve(20, 5_000);
  const most = (20 * LIMITS.workOverdueMsMax) / 1_000;
  expect(admission.fill()).toBeWithin(most, most + 3);
});

test('admission admits workSampleMin requests however slow the engine is', () => {
  const admission = createAdmission();
  admission.serve(1, 5_000);
  expect(admission.fill()).toBe(LIMITS.workSampleMin);
});

test('admission refuses nothing before it has measured any work', () => {
  const admission = createAdmission();
  admission.enter(50_000);
  admission.pass(3_000);
  expect(admission.isOverloaded()).toBe(false);
});

test('admission opens again when admitted work is done', () => {
  const admission = createAdmission();
  admission.serve(1_000, 2_000);
  admission.fill();
  expect(admission.isOverloaded()).toBe(true);
  admission.pass(100);
  admission.leave(100);
  expect(admission.isOverloaded()).toBe(false);
});

test('admission closes while no work completes, and reopens at the former rate', () => {
  const admission = createAdmission();
  admission.serve(1_000, 2_000);
  admission.enter(300);
  expect(admission.isOverloaded()).toBe(false);
  admission.pass(2_000);
  expect(admission.isOverloaded()).toBe(true);
  admission.giveUp(300);
  expect(admission.isOverloaded()).toBe(false);
  admission.serve(1_000, 3_000);
  expect(admission.fill()).toBeGreaterThan(EXPECTED(1_000) * 0.9);
});

test('admission ignores time in which nothing waits', () => {
  const admission = createAdmission();
  admission.serve(2_000, 2_000);
  admission.pass(3_600_000);
  expect(admission.fill()).toBeGreaterThanOrEqual(EXPECTED(2_000));
});

test('admission does not count abandoned work as done', () => {
  const admission = createAdmission();
  admission.serve(1_000, 2_000);
  for (let round = 0; round < 20; round += 1) {
    admission.enter(1_000);
    admission.pass(1_000);
    admission.giveUp(1_000);
  }
  admission.serve(400, 20);
  expect(admission.fill()).toBeLessThanOrEqual(EXPECTED(400));
});

describe('admission in the long run', () => {
  /** Requests arrive at `perMs`; the engine completes them in groups, each in `groupMs(size)`. */
  function overload(groupMs: (size: number) => number, perMs: number) {
    const admission = createAdmission();
    let waiting = 0;
    let done = 0;
    let worst = 0;
    let passed = 0;
    for (let group = 0; group < 400; group += 1) {
      const size = Math.max(1, Math.min(waiting, LIMITS.writesGroupedMax));
      if (waiting === 0) {
        admission.enter(1);
        waiting = 1;
      }
      const ms = groupMs(size);
      for (let coming = 0; coming < ms * perMs; coming += 1) {
        admission.pass(1 / perMs);
        if (admission.isOverloaded()) continue;
        admission.enter(1);
        waiting += 1;
      }
      admission.leave(size);
      waiting -= size;
      done += size;
      passed += ms;
      if (group > 200) worst = Math.max(worst, waiting);
    }
    return { perSecond: (done / passed) * 1_000, worst };
  }

  test('an engine whose commits take constant time runs at full throughput', () => {
    const { perSecond } = overload(() => 50, 10);
    // Every request that arrives completes, because one commit takes all that wait.
    expect(perSecond).toBeGreaterThan(9_000);
  });

  test('an engine whose commits take linear time has a queue of workWaitMsMax', () => {
    const { perSecond, worst } = overload((size) => 1 + size * 0.2, 10);
    expect(perSecond).toBeGreaterThan(4_500);
    expect(worst / perSecond).toBeLessThan((LIMITS.workWaitMsMax / 1_000) * 1.3);
  });
});
