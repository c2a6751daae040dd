import { afterAll, beforeAll, expect, test } from 'bun:test';
import { openDecoys } from '../../../src/auth/sign_in/decoys.ts';
import { openDeviceTokens } from '../../../src/auth/sign_in/device_token.ts';
import {
  openPasswordCheck,
  type PasswordCheckDeps,
  type PasswordCheckRequest,
} from '../../../src/auth/sign_in/password_check.ts';
import { openSignInQueue } from '../../../src/auth/sign_in/queue.ts';
import type { Uuid } from '../../../src/domain/id.ts';
import { decoyHash, newHashKind } from '../../../src/domain/password_hash.ts';
import { systemClock } from '../../../src/platform/clock.ts';
import type { Engine } from '../../../src/store/open.ts';
import { freshDatabase } from '../../support/database.ts';
import { freshAttempts, KEYS, manualClock, openProcess } from './sign_in_fixtures.ts';

let engine: Engine;

beforeAll(async () => {
  engine = await (await freshDatabase()).open();
});
afterAll(() => engine.close());

const COST = { memoryKib: 8_192, passes: 1 };

function openCheck(deps: Partial<PasswordCheckDeps>) {
  const clock = manualClock();
  const { credentials } = engine;
  const budgets = openProcess(engine.budgets, clock);
  const check = openPasswordCheck({
    ...{ credentials, budgets, rehash: () => undefined },
    devices: openDeviceTokens(KEYS, systemClock),
    queue: openSignInQueue(clock.monotonic),
    decoys: openDecoys({ credentials, keys: KEYS, cost: COST, clock }),
    compare: async () => ({ isRight: false, isCut: false }),
    ...deps,
  });
  return { budgets, check };
}

const attemptOf = freshAttempts();

function requestOf(username: string, more: Partial<PasswordCheckRequest> = {}): PasswordCheckRequest {
  const { realmId, profileId, clientId, address } = attemptOf(username);
  return {
    realmId,
    profileId,
    clientId,
    address,
    username,
    password: 'guess',
    deviceToken: undefined,
    ...more,
  };
}

test('a check that ends without a result counts as a wrong password', async () => {
  const { budgets, check } = openCheck({ compare: () => Promise.reject(new Error('too late')) });
  const outcomes: unknown[] = [];
  for (let count = 0; count < 101; count += 1)
    outcomes.push(await check(requestOf('slow')).catch(({ message }) => message));
  expect(new Set(outcomes.slice(0, 100))).toEqual(new Set(['too late']));
  expect(outcomes.at(-1)).toEqual({ kind: 'throttled', retryAfterS: 600 });
  expect(await budgets.admit(attemptOf('slow'))).toEqual({ retryAfterS: 600 });
});

test.each([
  ['without a device token', undefined],
  ['with a device token that is not valid', 'A'.repeat(70)],
])('a throttled attempt %s verifies no hash', async (_, deviceToken) => {
  const infoId = systemClock.mintId();
  const reads: string[] = [];
  const find = (realmId: Uuid, profileId: Uuid) => {
    reads.push('credential');
    return {
      ...{ realmId, profileId, infoId, userId: infoId, isNormalised: true, version: 'v' },
      get hash() {
        reads.push('hash');
        return decoyHash(newHashKind(COST));
      },
    };
  };
  const { check } = openCheck({ credentials: { find } });
  const guess = () => check(requestOf(`known ${deviceToken}`, { deviceToken }));
  expect(await guess()).toEqual({ kind: 'wrong' });
  expect(reads).toContain('hash');
  for (let count = 1; count < 100; count += 1) await guess();
  reads.length = 0;
  expect(await guess()).toEqual({ kind: 'throttled', retryAfterS: 600 });
  expect(reads).toEqual(deviceToken === undefined ? [] : ['credential']);
});

test('one attempt more than 256 whose budgets are being read is refused, and the place of a failed one is free', async () => {
  const read = Promise.withResolvers<never>();
  const { check } = openCheck({
    budgets: { ...openProcess(engine.budgets, manualClock()), admit: () => read.promise },
  });
  const messages: string[] = [];
  const send = () =>
    check(requestOf('jane')).catch((error) => messages.push(error.cause?.code ?? error.message));
  const sent = Array.from({ length: 256 }, send);
  await send();
  expect(messages).toEqual(['QUEUE_FULL']);
  read.reject(new Error('no database'));
  await Promise.all(sent);
  await send();
  expect(messages.slice(1)).toEqual(new Array(257).fill('no database'));
});
