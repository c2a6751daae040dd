import { afterAll, expect, test } from 'bun:test';
import { overloaded } from '../../src/model/fault.ts';
import type { Uuid } from '../../src/model/id.ts';
import { decoyHash, newHashKind } from '../../src/model/password_hash.ts';
import { systemClock } from '../../src/ops/process/clock.ts';
import { openDecoys } from '../../src/sign_in/decoys.ts';
import { openDeviceTokens } from '../../src/sign_in/device_token.ts';
import {
  openPasswordCheck,
  type PasswordCheckDeps,
  type PasswordCheckRequest,
} from '../../src/sign_in/password_check.ts';
import { openSignInQueue } from '../../src/sign_in/queue.ts';
import type { Credential } from '../../src/sign_in/store/credentials.ts';
import { freshDatabase } from '../support/database.ts';
import { freshAttempts, KEYS, manualClock, openProcess } from './sign_in_fixtures.ts';

const engine = await (await freshDatabase()).open();
afterAll(() => engine.close());

const COST = { memoryKib: 8_192, passes: 1 };

function openCheck(deps: Partial<PasswordCheckDeps>) {
  const clock = manualClock();
  const { credentials } = engine;
  const budgets = openProcess(engine.budgets, clock);
  const queue = openSignInQueue(clock.monotonic);
  const check = openPasswordCheck({
    ...{ credentials, budgets, queue, rehash: () => undefined },
    devices: openDeviceTokens(KEYS, systemClock),
    decoys: openDecoys({ credentials, keys: KEYS, cost: COST, clock }),
    findSignerKey: async () => undefined,
    compare: async () => ({ isRight: false, isCut: false }),
    ...deps,
  });
  return { budgets, queue, check };
}

const RIGHT = async () => ({ isRight: true, isCut: false });
const attemptOf = freshAttempts();
const INFO = systemClock.mintId();

function credentialOf(realmId: Uuid, profileId: Uuid, more: Partial<Credential> = {}): Credential {
  const hash = decoyHash(newHashKind(COST));
  return { realmId, profileId, infoId: INFO, userId: INFO, isNormalised: true, version: 'v', hash, ...more };
}

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

test.each([
  ['ends without a result', () => new Error('too late')],
  ['ends too late', () => overloaded('WORKER_TIMEOUT')],
  ['ends with its worker', () => overloaded('WORKER_EXITED')],
])('a check that %s counts as a wrong password', async (name, errorOf) => {
  const { budgets, check } = openCheck({ compare: () => Promise.reject(errorOf()) });
  const outcomes: unknown[] = [];
  for (let count = 0; count < 101; count += 1)
    outcomes.push(await check(requestOf(name)).catch(({ message }) => message));
  expect(new Set(outcomes.slice(0, 100))).toEqual(new Set([errorOf().message]));
  expect(outcomes.at(-1)).toEqual({ kind: 'throttled', retryAfterS: 600 });
  expect(await budgets.admit(attemptOf(name))).toEqual({ retryAfterS: 600 });
});

test.each(['QUEUE_FULL', 'DEADLINE_EXCEEDED', 'WORKER_START_TIMEOUT', 'WORKER_START_FAILED'] as const)(
  'a check that no worker began, because of %s, takes from no budget',
  async (code) => {
    const { check } = openCheck({ compare: () => Promise.reject(overloaded(code)) });
    for (let count = 0; count < 101; count += 1) {
      const failure = await check(requestOf(code)).catch(({ cause }) => cause.code);
      expect(failure).toBe(code);
    }
  },
);

test.each([
  ['without a device token', undefined],
  ['with a device token that is not valid', 'A'.repeat(70)],
])('a throttled attempt %s reads no credential', async (_, deviceToken) => {
  const reads: string[] = [];
  const find = (realmId: Uuid, profileId: Uuid) => {
    reads.push('credential');
    return {
      ...credentialOf(realmId, profileId),
      get hash() {
        reads.push('hash');
        return decoyHash(newHashKind(COST));
      },
    };
  };
  const { check } = openCheck({ credentials: { find } });
  const guess = () => check(requestOf(`known ${deviceToken}`, { deviceToken }));
  expect(await guess()).toEqual({ kind: 'wrong' });
  expect(reads).toEqual(['credential', 'hash']);
  for (let count = 1; count < 100; count += 1) await guess();
  reads.length = 0;
  expect(await guess()).toEqual({ kind: 'throttled', retryAfterS: 600 });
  expect(reads).toEqual([]);
});

test('an attempt that waited while another one took the last token of the name is throttled without a check', async () => {
  let compared = 0;
  const { budgets, queue, check } = openCheck({
    async compare() {
      compared += 1;
      while (queue.figures().waiting === 0) await Bun.sleep(1);
      return { isRight: false, isCut: false };
    },
  });
  const name = 'last token';
  for (let count = 0; count < 99; count += 1) await budgets.countWrong(attemptOf(name));
  const outcomes = await Promise.all([check(requestOf(name)), check(requestOf(name))]);
  expect(outcomes).toContainEqual({ kind: 'wrong' });
  expect(outcomes).toContainEqual({ kind: 'throttled', retryAfterS: 600 });
  expect(compared).toBe(1);
});

test.each([
  ['was deleted, or its user disabled,', undefined],
  ['now belongs to another link', { infoId: systemClock.mintId() }],
  ['has another password', { version: 'w' }],
])('a right password whose name %s during its check is counted as wrong', async (how, change) => {
  let reads = 0;
  const rehashed: unknown[] = [];
  const { check, budgets } = openCheck({
    credentials: {
      find(realmId, profileId) {
        reads += 1;
        return reads === 1
          ? credentialOf(realmId, profileId)
          : change && credentialOf(realmId, profileId, change);
      },
    },
    compare: RIGHT,
    rehash: (checked) => rehashed.push(checked),
  });
  const name = `a name that ${how}`;
  for (let count = 0; count < 99; count += 1) await budgets.countWrong(attemptOf(name));
  expect([await check(requestOf(name)), reads, rehashed]).toEqual([{ kind: 'wrong' }, 2, []]);
  expect(await budgets.admit(attemptOf(name))).toEqual({ retryAfterS: 600 });
});

test('a device token is valid for the name that it was made for, whose budget others have exhausted', async () => {
  const { budgets, check } = openCheck({
    credentials: {
      find: (realmId, profileId, key) => (key === 'nobody' ? undefined : credentialOf(realmId, profileId)),
    },
    compare: RIGHT,
  });
  const first = await check(requestOf('jane'));
  const deviceToken = first.kind === 'right' ? first.deviceToken : undefined;
  for (const name of ['jane', 'nobody'])
    for (let count = 0; count < 99; count += 1) await budgets.countWrong(attemptOf(name));
  expect(await check(requestOf('nobody', { deviceToken }))).toEqual({ kind: 'wrong' });
  await budgets.countWrong(attemptOf('jane'));
  for (const name of ['jane', 'nobody'])
    expect(await check(requestOf(name))).toMatchObject({ kind: 'throttled' });
  expect(await check(requestOf('jane', { deviceToken }))).toMatchObject({ kind: 'right' });
});

test('an attempt with the device token of an older password asks the budgets of strangers and takes a place of theirs', async () => {
  let version = 'v';
  const queued: unknown[] = [];
  const { budgets, check } = openCheck({
    credentials: { find: (realmId, profileId) => credentialOf(realmId, profileId, { version }) },
    queue: {
      run(attempt, work) {
        queued.push(attempt.device?.version);
        return work();
      },
    },
    compare: RIGHT,
  });
  const first = await check(requestOf('older'));
  const deviceToken = first.kind === 'right' ? first.deviceToken : undefined;
  const send = () => check(requestOf('older', { deviceToken }));
  await send();
  version = 'w';
  await send();
  expect(queued).toEqual([undefined, 'v', undefined]);
  for (let count = 0; count < 100; count += 1) await budgets.countWrong(attemptOf('older'));
  expect([await send(), queued.length]).toEqual([{ kind: 'throttled', retryAfterS: 600 }, 3]);
});

test('a credential without a hash is compared with a decoy, and never right', async () => {
  const compared: unknown[] = [];
  const { check } = openCheck({
    credentials: { find: (realmId, profileId) => credentialOf(realmId, profileId, { hash: undefined }) },
    async compare(request) {
      compared.push(request);
      return RIGHT();
    },
    decoys: { find: async () => ({ hash: 'a decoy', isNormalised: false }) },
  });
  expect(await check(requestOf('hashless'))).toEqual({ kind: 'wrong' });
  expect(compared).toEqual([{ hash: 'a decoy', isNormalised: false, password: 'guess' }]);
});

const ASTRAL = '\u{1f600}';

test.each([
  ['an empty password', { password: '' }, 0],
  ['a password of 1,024 bytes', { password: 'x'.repeat(1_024) }, 1],
  ['a password of 1,025 bytes', { password: 'x'.repeat(1_025) }, 0],
  ['a password with NUL', { password: 'guess\0' }, 1],
  ['a password with a lone surrogate', { password: 'guess\ud800' }, 0],
  ['a username of 255 characters', { username: ASTRAL.repeat(255) }, 1],
  ['a username of 256 characters', { username: 'x'.repeat(256) }, 0],
  ['a username with NUL', { username: 'jane\0' }, 0],
  ['a username with a lone surrogate', { username: 'jane\ud800' }, 0],
])('%s is wrong, and only compared with a hash where a record may have it', async (_, more, expected) => {
  let compared = 0;
  const { check } = openCheck({
    async compare() {
      compared += 1;
      return { isRight: false, isCut: false };
    },
  });
  expect([await check(requestOf('possible', more)), compared]).toEqual([{ kind: 'wrong' }, expected]);
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
