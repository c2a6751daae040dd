import { expect, test } from 'bun:test';
import { LIMITS } from '../../src/domain/limits.ts';
import { openTokenBuckets, ratePerProcess } from '../../src/domain/token_buckets.ts';

/** Buckets over a clock that stands still unless it is moved. */
function bucketsAt(requests: number, seconds: number) {
  let at = 1_000_000;
  const buckets = openTokenBuckets({ requests, seconds }, () => at);
  return {
    ...buckets,
    pass: (ms: number) => {
      at += ms;
    },
    takes: (key: string, count: number) =>
      Array.from({ length: count }, () => buckets.take(key)).filter(({ isExhausted }) => !isExhausted).length,
  };
}

test.each([
  [1, 1],
  [3, 1],
  [7, 3],
  [100, 60],
  [6_000, 60],
])('%p in %p seconds: so many at once, and not one more', (requests, seconds) => {
  const buckets = bucketsAt(requests, seconds);
  expect(buckets.takes('a', requests + 5)).toBe(requests);
  expect(buckets.takes('b', 1)).toBe(1);
  buckets.pass(seconds * 1_000);
  expect(buckets.takes('a', requests + 5)).toBe(requests);
});

test('it refills evenly, and says when there is one more', () => {
  const buckets = bucketsAt(4, 2);
  const first = buckets.take('a');
  expect([first.isExhausted, first.remaining]).toEqual([false, 3]);
  expect(first.msToNext).toBeCloseTo(500);
  buckets.takes('a', 3);
  const spent = buckets.take('a');
  expect([spent.isExhausted, spent.remaining]).toEqual([true, 0]);
  expect(spent.msToNext).toBeCloseTo(500);
  buckets.pass(499);
  expect(buckets.take('a').isExhausted).toBe(true);
  buckets.pass(1);
  expect(buckets.take('a').isExhausted).toBe(false);
  buckets.pass(1_250);
  expect(buckets.take('a').remaining).toBe(1);
  buckets.pass(60_000);
  expect(buckets.peek('a')).toEqual({ isExhausted: false, remaining: 4, msToNext: 0 });
});

test('what is refused takes nothing, and neither does a look', () => {
  const buckets = bucketsAt(2, 2);
  buckets.takes('a', 2);
  for (let count = 0; count < 100; count += 1) buckets.take('a');
  for (let count = 0; count < 100; count += 1) buckets.peek('a');
  buckets.pass(1_000);
  expect(buckets.peek('a').remaining).toBe(1);
  expect(buckets.takes('a', 5)).toBe(1);
});

test('rateBucketsMax: for one more the one that was longest not taken from is forgotten', () => {
  const buckets = bucketsAt(1, 3_600);
  for (let key = 0; key < LIMITS.rateBucketsMax; key += 1) buckets.take(String(key));
  expect(buckets.peek('0').isExhausted).toBe(true);
  buckets.take('one more');
  expect(buckets.peek('0').isExhausted).toBe(false);
  expect(buckets.peek('1').isExhausted).toBe(true);
  expect(buckets.peek('one more').isExhausted).toBe(true);
});

test('who is taken from again is not the one that was longest not taken from', () => {
  const buckets = bucketsAt(2, 3_600);
  for (let key = 0; key < LIMITS.rateBucketsMax; key += 1) buckets.take(String(key));
  buckets.take('0');
  buckets.take('one more');
  expect(['0', '1', '2'].map((key) => buckets.peek(key).remaining)).toEqual([0, 2, 1]);
});

test('each of several processes has its part, and never nothing', () => {
  expect(ratePerProcess({ requests: 100, seconds: 60 }, 1)).toEqual({ requests: 100, seconds: 60 });
  expect(ratePerProcess({ requests: 100, seconds: 60 }, 3)).toEqual({ requests: 33, seconds: 60 });
  expect(ratePerProcess({ requests: 2, seconds: 60 }, 3)).toEqual({ requests: 1, seconds: 60 });
});
