import { expect, test } from 'bun:test';
import { type Buckets, openBuckets } from '../src/domain/token_buckets.ts';
import { openPrepaid } from '../src/http/prepaid.ts';

/** What counts over a clock that stands still, and how often the key was asked for. */
function counted(requests: number, seed = 1) {
  const buckets: Buckets = openBuckets({ requests, seconds: 3_600 }, () => 1_000_000);
  const prepaid = openPrepaid(buckets, seed);
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

test('the key is asked for once in sixteen times where there is plenty, and each time where there is little', () => {
  const plenty = counted(1_000_000);
  plenty.passed('token', '192.0.2.1', 16_000);
  expect(plenty.asked()).toBeLessThan(1_010);
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
