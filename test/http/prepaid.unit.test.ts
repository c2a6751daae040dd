import { heapSize } from 'bun:jsc';
import { expect, test } from 'bun:test';
import { LIMITS } from '../../src/domain/limits.ts';
import { type Buckets, openBuckets } from '../../src/domain/token_buckets.ts';
import { openPrepaid } from '../../src/http/prepaid.ts';

/** What counts over a clock that moves when it is told to, and how often the key was asked for. */
function counted(requests: number, seconds = 3_600) {
  let at = 1_000_000;
  const now = () => at;
  const buckets: Buckets = openBuckets({ requests, seconds }, now);
  const prepaid = openPrepaid({ buckets, markOf: (shown) => Bun.hash.xxHash32(shown, 1), now });
  let asked = 0;
  const take = (shown: string, key: string) =>
    prepaid.take(shown, () => {
      asked += 1;
      return key;
    });
  return {
    buckets,
    take,
    asked: () => asked,
    advance: (milliseconds: number) => {
      at += milliseconds;
    },
    passed: (shown: string, key: string, count: number) =>
      Array.from({ length: count }, () => take(shown, key)).filter(({ isSpent }) => !isSpent).length,
  };
}

test('who comes again and again is let through exactly as often as without', () => {
  for (const requests of [1, 2, 63, 64, 100, 1_000, 6_400]) {
    const { passed } = counted(requests);
    expect(passed('token', '192.0.2.1', requests + 100)).toBe(requests);
  }
});

test('the key is asked for once in sixty-four times where there is plenty, and each time where there is little', () => {
  const plenty = counted(1_000_000);
  plenty.passed('token', '192.0.2.1', 16_000);
  expect(plenty.asked()).toBeLessThan(260);
  const little = counted(100);
  little.passed('token', '192.0.2.1', 100);
  expect(little.asked()).toBeGreaterThan(90);
});

test('who shows something new each time pays for one each time', () => {
  const { passed, buckets } = counted(10_000);
  for (let count = 0; count < 1_000; count += 1) passed(`token ${count}`, '192.0.2.1', 1);
  expect(buckets.look('192.0.2.1').remaining).toBe(9_000);
});

test('several who show the same are let through no more often together than each by itself', () => {
  const { take } = counted(1_000);
  const passed = Array.from({ length: 5_000 }, (_, count) =>
    take('token', count % 16 === 0 ? '192.0.2.1' : '192.0.2.2'),
  ).filter(({ isSpent }) => !isSpent);
  expect(passed.length).toBeLessThanOrEqual(2_000);
});

test('what is left is never told as more than it is', () => {
  const { take, buckets } = counted(1_000);
  for (let count = 0; count < 700; count += 1) {
    expect(take('token', '192.0.2.1').remaining).toBeLessThanOrEqual(1_000 - (count + 1));
  }
  expect(buckets.look('192.0.2.1').remaining).toBeLessThanOrEqual(300);
});

test('nobody saves up in lots: after a pause a rate lets through at once what it says', () => {
  const { passed, advance } = counted(10_000, 10);
  const tokens = Array.from({ length: 500 }, (_, count) => `token ${count}`);
  const passedOf = (count: number) =>
    tokens.reduce((sum, token) => sum + passed(token, '192.0.2.1', count), 0);
  // Much of what is paid for then is left.
  expect(passedOf(16)).toBeLessThan(6_000);
  advance(10_000);
  expect(passedOf(100)).toBeLessThanOrEqual(10_000);
});

test('who comes steadily pays for no more than he asks for, however often that is', () => {
  for (const everyMs of [1, 3, 7, 20, 40, 60, 150]) {
    const { take, advance, buckets } = counted(100_000);
    for (let count = 0; count < 3_000; count += 1) {
      take('token', '192.0.2.1');
      advance(everyMs);
    }
    // What is left of the last lot, and what came back meanwhile.
    const back = Math.ceil((3_000 * everyMs * 100_000) / 3_600_000);
    const { remaining } = buckets.look('192.0.2.1');
    expect(remaining).toBeGreaterThanOrEqual(Math.min(100_000, 100_000 - 3_000 + back) - 17);
    expect(buckets.look('192.0.2.1').remaining).toBeLessThanOrEqual(100_000 - 3_000 + back);
  }
});

test('who comes in bursts gets back what he paid for and did not use', () => {
  const { passed, advance, buckets } = counted(100_000);
  // 36 ms for each: what comes back meanwhile is less than what each burst takes.
  for (let burst = 0; burst < 100; burst += 1) {
    passed('token', '192.0.2.1', 70);
    advance(1_000);
  }
  const back = Math.ceil((100 * 1_000) / 36);
  expect(buckets.look('192.0.2.1').remaining).toBeGreaterThanOrEqual(100_000 - 7_000 + back - 64);
  expect(buckets.look('192.0.2.1').remaining).toBeLessThanOrEqual(100_000 - 7_000 + back);
});

test('so does who never comes again, once another one does', () => {
  const { passed, advance, buckets } = counted(1_000_000);
  passed('token', '192.0.2.1', 70);
  advance(100);
  passed('another', '192.0.2.2', 1);
  advance(3_600_000 / 1_000_000);
  expect(buckets.look('192.0.2.1').remaining).toBe(Math.floor(1_000_000 - 70 + 103.6 / 3.6));
});

test('who was away pays for one again', () => {
  const { passed, advance, asked } = counted(1_000_000);
  passed('token', '192.0.2.1', 100);
  const before = asked();
  advance(100);
  passed('token', '192.0.2.1', 3);
  expect(asked() - before).toBe(2);
});

test('bucketsMax: of so many others the one that was first is forgotten, with what it had paid for', () => {
  const { passed, take, asked } = counted(1_000_000);
  passed('token', '192.0.2.1', 2);
  // Some of them have the same checksum.
  for (let count = 0; count < LIMITS.bucketsMax + 200; count += 1) take(`token ${count}`, '192.0.2.2');
  const before = asked();
  take('token', '192.0.2.1');
  expect(asked()).toBe(before + 1);
});

test('what is paid for is there until so many others came', () => {
  const { passed, take, asked } = counted(1_000_000);
  passed('token', '192.0.2.1', 2);
  for (let count = 0; count < LIMITS.bucketsMax - 1; count += 1) take(`token ${count}`, '192.0.2.2');
  const before = asked();
  take('token', '192.0.2.1');
  expect(asked()).toBe(before);
});

test('what no longer holds leaves nothing behind', () => {
  const { take, advance } = counted(1_000_000);
  const keep = (tokens: number) => {
    for (let count = 0; count < tokens; count += 1) {
      take(`token ${count}`, '192.0.2.1');
      advance(1);
    }
    Bun.gc(true);
    return heapSize();
  };
  const before = keep(1_000);
  expect(keep(50_000) - before).toBeLessThan(1_000_000);
  // Who comes again stands last again: what came after him goes before him.
  for (let count = 0; count < 50_000; count += 1) {
    take('token', '192.0.2.1');
    take(`other ${count}`, '192.0.2.1');
    advance(1);
  }
  Bun.gc(true);
  expect(heapSize() - before).toBeLessThan(1_000_000);
});
