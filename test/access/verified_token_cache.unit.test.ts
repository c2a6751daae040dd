import { expect, test } from 'bun:test';
import { openVerifiedTokenCache, type VerifiedToken } from '../../src/access/tokens/verified_tokens.ts';
import { LIMITS } from '../../src/model/limits.ts';

/** Which verified tokens are cached; test/access/rights.test.ts covers the rights of cached tokens. */

const entry = (expiresAt = 1): VerifiedToken => ({
  notBefore: 0,
  expiresAt,
  resolvePrincipal: () => undefined,
});

test('a full cache drops its oldest token for another', () => {
  const verified = openVerifiedTokenCache();
  const [first, second] = [entry(), entry()];
  verified.set('first', first);
  verified.set('second', second);
  for (let at = 2; at < LIMITS.verifiedTokensMax; at += 1) verified.set(String(at), entry());
  expect([verified.get('first', 0), verified.get('second', 0)]).toEqual([first, second]);
  verified.set('one more', entry());
  expect([verified.get('first', 0), verified.get('second', 0)]).toEqual([undefined, second]);
});

test('an expired token is gone from the cache, also if it was the last one used', () => {
  const verified = openVerifiedTokenCache();
  const other = entry(2);
  verified.set('token', entry());
  verified.set('other', other);
  expect(verified.get('token', 0)).toBeDefined();
  expect(verified.get('token', 1)).toBeUndefined();
  expect([verified.get('token', 0), verified.get('other', 1)]).toEqual([undefined, other]);
});
