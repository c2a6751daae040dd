import { describe, expect, test } from 'bun:test';
import { Fault } from '../../src/model/fault.ts';
import { parseIpAddress } from '../../src/model/ip_address.ts';
import { systemClock } from '../../src/ops/process/clock.ts';
import type { SignInAttempt } from '../../src/sign_in/budgets.ts';
import {
  openSignInQueue,
  SIGN_IN_PLACES_MAX,
  SIGN_UP_PLACES_MAX,
  STRANGER_PLACES_MAX,
  UNADDRESSED_PLACES_MAX,
} from '../../src/sign_in/queue.ts';

const REALM = systemClock.mintId();
const PROFILE = systemClock.mintId();
const DEVICE = { id: 'device', version: 'v' };

function attemptOf(usernameKey: string, address?: string, more: Partial<SignInAttempt> = {}): SignInAttempt {
  return {
    ...{ realmId: REALM, profileId: PROFILE, usernameKey, clientId: 'shop', device: undefined },
    address: address === undefined ? undefined : parseIpAddress(address),
    ...more,
  };
}

/** Attempts of different names and addresses. */
const distinct = (count: number, more: Partial<SignInAttempt> = {}) =>
  Array.from({ length: count }, (_, at) => attemptOf(`user${at}`, `192.0.2.${at}`, more));

/** A queue whose checks end when the test says so. */
function openQueue() {
  let at = 0;
  const queue = openSignInQueue(() => at);
  const started: string[] = [];
  const ends: (() => void)[] = [];
  const causes: string[] = [];
  function enter(
    attempt: SignInAttempt,
    label = attempt.usernameKey,
    isSignUp: boolean | undefined = undefined,
  ): Promise<unknown> {
    const check = () => {
      started.push(label);
      return new Promise<void>((resolve) => ends.push(resolve));
    };
    return queue.run(attempt, check, isSignUp).catch((error) => {
      if (!(error instanceof Fault)) throw error;
      causes.push((error.cause as { code: string }).code);
    });
  }
  return {
    ...{ queue, started, causes, enter },
    enterAll: (attempts: readonly SignInAttempt[]) => attempts.map((attempt) => enter(attempt)),
    pass: (ms: number) => {
      at += ms;
    },
    /** Ends the check that began first. */
    async endOne() {
      ends.shift()?.();
      await Bun.sleep(0);
    },
  };
}

/** How many of these attempts find no place. */
async function refusedOf(attempts: readonly SignInAttempt[]): Promise<number> {
  const { enterAll, causes } = openQueue();
  enterAll(attempts);
  await Bun.sleep(0);
  expect(new Set(causes)).toEqual(new Set(causes.length > 0 ? ['QUEUE_FULL'] : []));
  return causes.length;
}

describe('the queue of password checks', () => {
  test('has 48 places for attempts without a device, and 16 more for those with one', async () => {
    expect([SIGN_IN_PLACES_MAX, STRANGER_PLACES_MAX]).toEqual([64, 48]);
    const withDevice = distinct(17, { device: DEVICE });
    expect(await refusedOf(distinct(48))).toBe(0);
    expect(await refusedOf(distinct(49))).toBe(1);
    expect(await refusedOf([...distinct(48), ...withDevice.slice(0, 16)])).toBe(0);
    expect(await refusedOf([...distinct(48), ...withDevice])).toBe(1);
    expect(await refusedOf(distinct(65, { device: DEVICE }))).toBe(1);
  });

  test('has 16 places for sign-ups, among those for attempts without a device', async () => {
    expect(SIGN_UP_PLACES_MAX).toBe(16);
    const { enter, enterAll, causes } = openQueue();
    const attempts = distinct(49);
    for (const attempt of attempts.slice(0, 17)) enter(attempt, 'new', true);
    await Bun.sleep(0);
    expect(causes).toEqual(['QUEUE_FULL']);
    enterAll(attempts.slice(17));
    await Bun.sleep(0);
    expect(causes).toEqual(['QUEUE_FULL']);
    enterAll([attemptOf('more', '198.51.100.1')]);
    await Bun.sleep(0);
    expect(causes).toEqual(['QUEUE_FULL', 'QUEUE_FULL']);
  });

  test('has two places for sign-ups of a name, which take none from its sign-ins', async () => {
    const { enter, causes } = openQueue();
    for (const isSignUp of [true, false])
      for (const at of [1, 2, 3]) enter(attemptOf('jane', `192.0.2.${at}`), 'jane', isSignUp);
    await Bun.sleep(0);
    expect(causes).toEqual(['QUEUE_FULL', 'QUEUE_FULL']);
  });

  test('has two places of a name with a device and two without', async () => {
    const ofName = (count: number, more: Partial<SignInAttempt>) =>
      Array.from({ length: count }, (_, at) => attemptOf('jane', `192.0.2.${at}`, more));
    expect(await refusedOf([...ofName(2, {}), ...ofName(2, { device: DEVICE })])).toBe(0);
    expect(await refusedOf([...ofName(3, {}), ...ofName(3, { device: DEVICE })])).toBe(2);
    const others = [{ profileId: systemClock.mintId() }, { realmId: systemClock.mintId() }];
    expect(
      await refusedOf([...ofName(2, {}), ...others.map((other) => attemptOf('jane', '192.0.2.9', other))]),
    ).toBe(0);
  });

  test('has four places of an address with a device and four without, and an IPv6 /48 is one address', async () => {
    const from = (address: (at: number) => string, count: number, more = {}) =>
      Array.from({ length: count }, (_, at) => attemptOf(`user${at}`, address(at), more));
    expect(
      await refusedOf([...from(() => '192.0.2.1', 4), ...from(() => '192.0.2.1', 4, { device: DEVICE })]),
    ).toBe(0);
    expect(await refusedOf(from(() => '192.0.2.1', 5))).toBe(1);
    expect(await refusedOf(from((at) => `2001:db8:1:${at}::1`, 5))).toBe(1);
    expect(await refusedOf(from((at) => `2001:db8:${at}::1`, 5))).toBe(0);
  });

  test('has 32 places for attempts of a client without addresses, of any kind', async () => {
    expect(UNADDRESSED_PLACES_MAX).toBe(32);
    const ofClient = (clientId: string, count: number, more = {}) =>
      Array.from({ length: count }, (_, at) =>
        attemptOf(`${clientId}${at}`, undefined, { clientId, ...more }),
      );
    const mixed = [...ofClient('a', 16), ...ofClient('a', 17, { device: DEVICE })];
    expect(await refusedOf(mixed.slice(0, 32))).toBe(0);
    expect(await refusedOf(mixed)).toBe(1);
    expect(await refusedOf([...ofClient('a', 32), ...ofClient('b', 16)])).toBe(0);
    // Its attempts with addresses take other places.
    expect(await refusedOf([...distinct(16, { clientId: 'a' }), ...ofClient('a', 32)])).toBe(0);
  });

  test('serves one attempt at a time, one with a device next, and otherwise in the order of arrival', async () => {
    const { enter, endOne, started, queue } = openQueue();
    enter(attemptOf('a', '192.0.2.1'));
    enter(attemptOf('b', '192.0.2.2'));
    enter(attemptOf('c', '192.0.2.3'));
    enter(attemptOf('d', '192.0.2.4', { device: DEVICE }));
    expect(queue.figures()).toEqual({ waiting: 3, working: 1 });
    for (let count = 0; count < 4; count += 1) {
      expect(started).toHaveLength(count + 1);
      await endOne();
    }
    expect(started).toEqual(['a', 'd', 'b', 'c']);
  });

  test('serves an attempt without a device after each one with a device, however many of these arrive', async () => {
    const { enter, endOne, started } = openQueue();
    for (const at of [1, 2, 3]) enter(attemptOf(`user${at}`, `192.0.2.${at}`));
    for (let count = 0; count < 6; count += 1) {
      for (const name of ['known', 'known']) enter(attemptOf(name, '192.0.2.9', { device: DEVICE }));
      await endOne();
    }
    expect(started).toEqual(['user1', 'known', 'user2', 'known', 'user3', 'known', 'known']);
  });

  test('gives up an attempt that waits for 2.5 seconds, and never starts its check', async () => {
    const { enter, endOne, pass, started, causes } = openQueue();
    enter(attemptOf('a', '192.0.2.1'));
    enter(attemptOf('b', '192.0.2.2'));
    pass(1);
    enter(attemptOf('c', '192.0.2.3'));
    pass(2_499);
    await endOne();
    expect([started, causes]).toEqual([['a', 'c'], ['DEADLINE_EXCEEDED']]);
  });

  test('does not give up a check that has begun, however long it takes', async () => {
    const { enter, endOne, pass, started, causes, queue } = openQueue();
    enter(attemptOf('a', '192.0.2.1'));
    pass(2_500);
    enter(attemptOf('b', '192.0.2.2'));
    expect([causes, queue.figures()]).toEqual([[], { waiting: 1, working: 1 }]);
    await endOne();
    expect([started, causes]).toEqual([['a', 'b'], []]);
  });

  test('frees the place of a check that fails', async () => {
    const { queue } = openQueue();
    const failing = queue.run(attemptOf('a'), () => Promise.reject(new Error('no worker')));
    expect(await failing.catch(({ message }) => message)).toBe('no worker');
    await Bun.sleep(0);
    expect(queue.figures()).toEqual({ waiting: 0, working: 0 });
    expect(await queue.run(attemptOf('a'), async () => 1)).toBe(1);
  });
});
