import { afterEach, beforeEach, expect, jest, test } from 'bun:test';
import { openVerifiedTokenCache, type VerifiedToken } from '../../src/auth/tokens/verified_tokens.ts';
import { LIMITS } from '../../src/domain/limits.ts';

/** How long a verified token is cached; test/auth/rights.test.ts covers the rights of cached tokens. */

const TURN_MS = LIMITS.verifiedTokensTurnMs;

beforeEach(() => {
  jest.useFakeTimers();
});
afterEach(() => {
  jest.clearAllTimers();
  jest.useRealTimers();
});

function entry(): VerifiedToken {
  return { notBefore: 0, expiresAt: Number.POSITIVE_INFINITY, resolvePrincipal: () => undefined };
}

test('an unused token stays in the cache until its second rotation', () => {
  const verified = openVerifiedTokenCache();
  const [token, other] = [entry(), entry()];
  verified.set('token', token);
  verified.set('other', other);
  jest.advanceTimersByTime(2 * TURN_MS - 1);
  expect([verified.get('token'), verified.get('other')]).toEqual([token, other]);
});

test('an unused token is gone after two rotations even without traffic', () => {
  const verified = openVerifiedTokenCache();
  for (const name of ['first', 'last']) {
    verified.set(name, entry());
    verified.get(name);
  }
  expect(jest.getTimerCount()).toBe(1);
  jest.advanceTimersByTime(2 * TURN_MS);
  expect([verified.get('first'), verified.get('last')]).toEqual([undefined, undefined]);
  expect(jest.getTimerCount()).toBe(0);
});

test.each([['alone'], ['with others']])('a token used in each rotation stays in the cache: %s', (load) => {
  const verified = openVerifiedTokenCache();
  const busy = entry();
  verified.set('busy', busy);
  for (let turn = 0; turn < 5; turn += 1) {
    jest.advanceTimersByTime(TURN_MS - 1);
    expect(verified.get('busy')).toBe(busy);
    if (load !== 'alone') verified.set(`other ${turn}`, entry());
  }
});

test('a deleted token is gone from both generations of the cache', () => {
  const verified = openVerifiedTokenCache();
  verified.set('token', entry());
  jest.advanceTimersByTime(TURN_MS);
  expect(verified.get('token')).toBeDefined();
  verified.delete('token');
  expect(verified.get('token')).toBeUndefined();
});

test('a token cached after a rotation expires in its turn as well', () => {
  const verified = openVerifiedTokenCache();
  verified.set('token', entry());
  jest.advanceTimersByTime(2 * TURN_MS);
  verified.set('later', entry());
  jest.advanceTimersByTime(2 * TURN_MS);
  expect(verified.get('later')).toBeUndefined();
});

test('a full cache rotates at once and restarts its timer', () => {
  const verified = openVerifiedTokenCache();
  const half = LIMITS.verifiedTokensMax / 2;
  const last = entry();
  jest.advanceTimersByTime(1);
  for (let at = 0; at < half; at += 1) verified.set(String(at), entry());
  jest.advanceTimersByTime(TURN_MS - 1);
  verified.set('last', last);
  jest.advanceTimersByTime(TURN_MS);
  expect(jest.getTimerCount()).toBe(1);
  expect([verified.get('0'), verified.get('last')]).toEqual([undefined, last]);
});
