import { expect, test } from 'bun:test';
import { decoyHash, type MadeHash } from '../../src/model/password_hash.ts';
import { systemClock } from '../../src/ops/process/clock.ts';
import { openRehash } from '../../src/sign_in/credentials.ts';
import type { Credential } from '../../src/sign_in/store/credentials.ts';

test('one password is hashed again at a time, and the next sign-in tries again after a skipped or failed one', async () => {
  const hashing: PromiseWithResolvers<MadeHash>[] = [];
  const rehash = openRehash({
    credentials: { rehash: async () => true },
    hashPassword() {
      const made = Promise.withResolvers<MadeHash>();
      hashing.push(made);
      return made.promise;
    },
    cost: { memoryKib: 64, passes: 1 },
    clock: systemClock,
  });
  const [realmId, profileId, userId] = [systemClock.mintId(), systemClock.mintId(), systemClock.mintId()];
  const send = () => {
    const credential: Credential = {
      ...{ realmId, profileId, userId, infoId: systemClock.mintId(), version: 'v' },
      ...{ hash: decoyHash('$2b$04$'), isNormalised: false },
    };
    return rehash({ credential, password: 'password', check: { isRight: true, isCut: false } });
  };
  const first = send();
  expect([await send(), await send(), hashing.length]).toEqual([false, false, 1]);
  hashing[0]?.reject(new Error('overloaded'));
  expect(await first.catch(({ message }) => message)).toBe('overloaded');
  const next = send();
  hashing[1]?.resolve({ hash: decoyHash('$2b$12$'), isNormalised: true });
  expect([await next, hashing.length]).toEqual([true, 2]);
});
