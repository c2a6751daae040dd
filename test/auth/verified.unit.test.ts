import { afterEach, beforeEach, expect, jest, test } from 'bun:test';
import { openVerified, type Verified } from '../../src/auth/tokens/verified_tokens.ts';
import { LIMITS } from '../../src/domain/limits.ts';

/** How long a checked token is remembered. What it is worth meanwhile is judged in rights.test.ts. */

const TURN_MS = LIMITS.verifiedTokensTurnMs;

beforeEach(() => {
  jest.useFakeTimers();
});
afterEach(() => {
  jest.clearAllTimers();
  jest.useRealTimers();
});

function entry(): Verified {
  return { notBefore: 0, expiresAt: Number.POSITIVE_INFINITY, principalIn: () => undefined };
}

test('until two turns are over a token is remembered that nobody showed', () => {
  const verified = openVerified();
  const [token, other] = [entry(), entry()];
  verified.remember('token', token);
  verified.remember('other', other);
  jest.advanceTimersByTime(2 * TURN_MS - 1);
  expect([verified.recall('token'), verified.recall('other')]).toEqual([token, other]);
});

test('behind them nothing is left of it where no other one came, whether it was the last one or not', () => {
  const verified = openVerified();
  for (const name of ['first', 'last']) {
    verified.remember(name, entry());
    verified.recall(name);
  }
  expect(jest.getTimerCount()).toBe(1);
  jest.advanceTimersByTime(2 * TURN_MS);
  expect([verified.recall('first'), verified.recall('last')]).toEqual([undefined, undefined]);
  expect(jest.getTimerCount()).toBe(0);
});

test.each([['alone'], ['beside others']])('shown in each turn it stays: %s', (company) => {
  const verified = openVerified();
  const busy = entry();
  verified.remember('busy', busy);
  for (let turn = 0; turn < 5; turn += 1) {
    jest.advanceTimersByTime(TURN_MS - 1);
    expect(verified.recall('busy')).toBe(busy);
    if (company !== 'alone') verified.remember(`other ${turn}`, entry());
  }
});

test('one that is to be forgotten is gone from both generations', () => {
  const verified = openVerified();
  verified.remember('token', entry());
  jest.advanceTimersByTime(TURN_MS);
  expect(verified.recall('token')).toBeDefined();
  verified.forget('token');
  expect(verified.recall('token')).toBeUndefined();
});

test('the next one is forgotten in its time as well', () => {
  const verified = openVerified();
  verified.remember('token', entry());
  jest.advanceTimersByTime(2 * TURN_MS);
  verified.remember('later', entry());
  jest.advanceTimersByTime(2 * TURN_MS);
  expect(verified.recall('later')).toBeUndefined();
});

test('full, it turns at once, and the time of a turn begins anew', () => {
  const verified = openVerified();
  const half = LIMITS.verifiedTokensMax / 2;
  const kept = entry();
  jest.advanceTimersByTime(1);
  for (let at = 0; at < half; at += 1) verified.remember(String(at), entry());
  jest.advanceTimersByTime(TURN_MS - 1);
  verified.remember('kept', kept);
  jest.advanceTimersByTime(TURN_MS);
  expect(jest.getTimerCount()).toBe(1);
  expect([verified.recall('0'), verified.recall('kept')]).toEqual([undefined, kept]);
});
