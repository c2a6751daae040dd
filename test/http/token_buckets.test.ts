import { expect, test } from 'bun:test';
import { LIMITS } from '../../src/model/limits.ts';
import { openTokenBuckets, ratePerProcess } from '../../src/model/token_buckets.ts';

/** Buckets with a clock that only `pass` advances. */
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
])('a rate of %p in %p seconds allows that many at once, and not one more', (requests, seconds) => {
  const buckets = bucketsAt(requests, seconds);
  expect(buckets.takes('a', requests + 5)).toBe(requests);
  expect(buckets.takes('b', 1)).toBe(1);
  buckets.pass(seconds * 1_000);
  expect(buckets.takes('a', requests + 5)).toBe(requests);
});

test('a bucket refills evenly, and reports the time to the next token', () => {
  const buckets = bucketsAt(4, 2);
  const first = buckets.take('a');
  expect([first.isExhausted, first.remaining]).toEqual([false, 3]);
  expect(first.msToNext).toBeCloseTo(500);
  buckets.takes('a', 3);
  const exhausted = buckets.take('a');
  expect([exhausted.isExhausted, exhausted.remaining]).toEqual([true, 0]);
  expect(exhausted.msToNext).toBeCloseTo(500);
  buckets.pass(499);
  expect(buckets.take('a').isExhausted).toBe(true);
  buckets.pass(1);
  expect(buckets.take('a').isExhausted).toBe(false);
  buckets.pass(1_250);
  expect(buckets.take('a').remaining).toBe(1);
  buckets.pass(60_000);
  expect(buckets.peek('a')).toEqual({ isExhausted: false, remaining: 4, msToNext: 0 });
});

test('a rejected take and a peek take no token', () => {
  const buckets = bucketsAt(2, 2);
  buckets.takes('a', 2);
  for (let count = 0; count < 100; count += 1) buckets.take('a');
  for (let count = 0; count < 100; count += 1) buckets.peek('a');
  buckets.pass(1_000);
  expect(buckets.peek('a').remaining).toBe(1);
  expect(buckets.takes('a', 5)).toBe(1);
});

test('beyond rateBucketsMax the least recently used bucket is dropped', () => {
  const buckets = bucketsAt(1, 3_600);
  for (let key = 0; key < LIMITS.rateBucketsMax; key += 1) buckets.take(String(key));
  expect(buckets.peek('0').isExhausted).toBe(true);
  buckets.take('one more');
  expect(buckets.peek('0').isExhausted).toBe(false);
  expect(buckets.peek('1').isExhausted).toBe(true);
  expect(buckets.peek('one more').isExhausted).toBe(true);
});

test('a take makes a bucket the most recently used one', () => {
  const buckets = bucketsAt(2, 3_600);
  for (let key = 0; key < LIMITS.rateBucketsMax; key += 1) buckets.take(String(key));
  buckets.take('0');
  buckets.take('one more');
  expect(['0', '1', '2'].map((key) => buckets.peek(key).remaining)).toEqual([0, 2, 1]);
});

test('each of several processes has an equal part of a rate, at least one request', () => {
  expect(ratePerProcess({ requests: 100, seconds: 60 }, 1)).toEqual({ requests: 100, seconds: 60 });
  expect(ratePerProcess({ requests: 100, seconds: 60 }, 3)).toEqual({ requests: 33, seconds: 60 });
  expect(ratePerProcess({ requests: 2, seconds: 60 }, 3)).toEqual({ requests: 1, seconds: 60 });
});
