import { afterAll, describe, expect, test } from 'bun:test';
import { LIMITS } from '../../src/model/limits.ts';
import type { Engine } from '../../src/ops/store/open.ts';
import type { SignInAttempt } from '../../src/sign_in/budgets.ts';
import { openSignInQueue } from '../../src/sign_in/queue.ts';
import { freshDatabase } from '../support/database.ts';
import { checkedOf, deviceToken, freshAttempts, manualClock, openProcess } from './sign_in_fixtures.ts';

const db = await freshDatabase();
/** Two processes over one database. */
const engines = [await db.open(), await db.open()] as const;
afterAll(() => Promise.all(engines.map((engine) => engine.close())));

const MINUTE_MS = 60_000;

function openProcesses() {
  const clock = manualClock();
  const [one, other] = engines.map(({ budgets }) => openProcess(budgets, clock)) as [
    ReturnType<typeof openProcess>,
    ReturnType<typeof openProcess>,
  ];
  return { clock, one, other };
}

/** As many attempts at a name, each from an address of its own. */
const fromMany = (attemptOf: ReturnType<typeof freshAttempts>, name: string, count: number, net = '10.0.0') =>
  Array.from({ length: count }, (_, at) => attemptOf(name, `${net}.${at}`));

const repeated = (attempt: SignInAttempt, count: number) => new Array<SignInAttempt>(count).fill(attempt);

describe('wrong passwords of a name from one network', () => {
  test('are checked 10 times on all processes together, and one more after each minute and a half', async () => {
    const { clock, one, other } = openProcesses();
    const attempt = freshAttempts()('jane', '192.0.2.1');
    expect(await checkedOf(one.guess, repeated(attempt, 6))).toBe(6);
    expect(await checkedOf(other.guess, repeated(attempt, 10))).toBe(4);
    expect(await one.guess(attempt)).toBe(90);
    clock.pass(89_000);
    expect(await one.guess(attempt)).toBe(1);
    clock.pass(1_000);
    expect(await checkedOf(one.guess, repeated(attempt, 3))).toBe(1);
    clock.pass(15 * MINUTE_MS);
    expect(await checkedOf(other.guess, repeated(attempt, 20))).toBe(10);
  });

  test('leave other names, networks, profiles and realms as they are', async () => {
    const { one } = openProcesses();
    const attemptOf = freshAttempts();
    await checkedOf(one.guess, repeated(attemptOf('jane', '192.0.2.1'), 10));
    const others = [
      attemptOf('john', '192.0.2.1'),
      attemptOf('jane', '192.0.2.2'),
      attemptOf('jane', '192.0.2.1', { profileId: freshAttempts()('x').profileId }),
      freshAttempts()('jane', '192.0.2.1'),
    ];
    expect(await checkedOf(one.guess, others)).toBe(4);
    expect(await one.guess(attemptOf('jane', '192.0.2.1'))).toBe(90);
  });

  test('are counted for the /64 of an IPv6 address', async () => {
    const { one } = openProcesses();
    const attemptOf = freshAttempts();
    const near = Array.from({ length: 12 }, (_, at) => attemptOf('jane', `2001:db8::${at + 1}`));
    expect(await checkedOf(one.guess, near)).toBe(10);
    expect(await one.guess(attemptOf('jane', '2001:db8:0:1::1'))).toBe('no device');
  });
});

describe('wrong passwords of a name', () => {
  test('are checked 100 times from any number of networks, and one more after each 10 minutes', async () => {
    const { clock, one } = openProcesses();
    const attemptOf = freshAttempts();
    expect(await checkedOf(one.guess, fromMany(attemptOf, 'jane', 120))).toBe(100);
    clock.pass(10 * MINUTE_MS - 1_000);
    expect(await one.guess(attemptOf('jane', '192.0.2.1'))).toBe(1);
    clock.pass(1_000);
    expect(await checkedOf(one.guess, fromMany(attemptOf, 'jane', 3))).toBe(1);
  });

  test('are all that is counted for a client that reports no addresses', async () => {
    const { one } = openProcesses();
    expect(await checkedOf(one.guess, repeated(freshAttempts()('jane'), 120))).toBe(100);
  });

  test('do not keep out a known device, whose own are checked 10 times and one more after each 2.4 hours; else it counts as none', async () => {
    const { clock, one } = openProcesses();
    const attemptOf = freshAttempts();
    await checkedOf(one.guess, fromMany(attemptOf, 'jane', 100));
    const known = attemptOf('jane', '192.0.2.1', { device: deviceToken() });
    expect(await one.admit(known)).toEqual(known);
    expect(await checkedOf(one.guess, repeated(known, 12))).toBe(10);
    clock.pass(144 * MINUTE_MS - 1);
    expect(await one.guess(known)).toBe('no device');
    clock.pass(1);
    expect(await one.guess(known)).toBe('device');
    expect(await one.guess(known)).toBe('no device');
    const fresh = attemptOf('john', '192.0.2.1', { device: known.device });
    await checkedOf(one.guess, repeated(fresh, 10));
    expect(await one.admit(fresh)).toEqual({ ...fresh, device: undefined });
  });

  test('are refilled for an administrator, in every process within a second', async () => {
    const { clock, one, other } = openProcesses();
    const jane = freshAttempts()('jane');
    await checkedOf(one.guess, repeated(jane, 100));
    expect(await one.throttles(jane)).toEqual([
      { attempts: 'without_device', until: clock.now() + 10 * MINUTE_MS },
    ]);
    expect([await one.guess(jane), await other.guess(jane)]).toEqual([600, 600]);
    await one.refill(jane);
    expect([await one.guess(jane), await other.guess(jane)]).toEqual(['no device', 600]);
    clock.pass(1_000);
    expect(await other.guess(jane)).toBe('no device');
    expect(await other.throttles(jane)).toEqual([]);
  });

  test('wrong passwords throttle a network and a device, each until a time of its own, of several until that of the last', async () => {
    const { clock, one, other } = openProcesses();
    const attemptOf = freshAttempts();
    const jane = attemptOf('jane', '192.0.2.1');
    await checkedOf(one.guess, repeated(jane, 9));
    expect(await other.throttles(jane)).toEqual([]);
    await one.guess(jane);
    clock.pass(30_000);
    await checkedOf(one.guess, repeated(attemptOf('jane', '192.0.2.2'), 10));
    const known = attemptOf('jane', '192.0.2.3', { device: deviceToken() });
    await checkedOf(one.guess, repeated(known, 10));
    const until = (minutes: number) => clock.now() + minutes * MINUTE_MS;
    expect(await other.throttles(jane)).toEqual([
      { attempts: 'network', until: until(1.5) },
      { attempts: 'device', until: until(144) },
    ]);
    expect(await other.throttles(attemptOf('john'))).toEqual([]);
    clock.pass(1.5 * MINUTE_MS);
    expect((await other.throttles(jane)).map(({ attempts }) => attempts)).toEqual(['device']);
  });
});

describe('a list of leaked passwords', () => {
  test('is checked 100 times from one address', async () => {
    const { clock, one } = openProcesses();
    const attemptOf = freshAttempts();
    const list = Array.from({ length: 120 }, (_, at) => attemptOf(`user${at}`, '192.0.2.1'));
    expect(await checkedOf(one.guess, list)).toBe(100);
    clock.pass(9_000);
    expect(await one.guess(attemptOf('one more', '192.0.2.1'))).toBe('no device');
  });
});

describe('wrong passwords that cannot be stored', () => {
  test('are checked once a minute and name, and once in 9 seconds and network', async () => {
    const clock = manualClock();
    const store = { ...engines[0].budgets, take: () => Promise.reject(new Error('read-only')) };
    const one = openProcess(store, clock);
    const attemptOf = freshAttempts();
    const [jane, john] = [attemptOf('jane', '192.0.2.1'), attemptOf('john', '192.0.2.1')];
    const failure = (attempt: SignInAttempt) => one.guess(attempt).catch(({ message }) => message);
    expect([await failure(jane), await failure(jane), await failure(john)]).toEqual(['read-only', 60, 9]);
    expect(await failure(attemptOf('jane', '192.0.2.2'))).toBe(60);
    clock.pass(9_000);
    expect([await failure(jane), await failure(john)]).toEqual([51, 'read-only']);
    clock.pass(51_000);
    expect(await failure(jane)).toBe('read-only');
  });

  test('are remembered for 100,000 names, and one more forgets the first', async () => {
    const store = { ...engines[0].budgets, take: () => Promise.reject(new Error('read-only')) };
    const one = openProcess(store, manualClock());
    const attemptOf = freshAttempts();
    const count = (name: string) => one.countWrong(attemptOf(name)).catch(() => undefined);
    for (let at = 0; at < LIMITS.rateBucketsMax; at += 1) await count(`user${at}`);
    const [first, second] = [attemptOf('user0'), attemptOf('user1')];
    expect(await one.admit(first)).toEqual({ retryAfterS: 60 });
    await count('one more');
    expect([await one.admit(first), await one.admit(second)]).toEqual([first, { retryAfterS: 60 }]);
  });

  test('are not overlooked after an attempt whose budgets were read before', async () => {
    const { clock, other } = openProcesses();
    const { budgets } = engines[0];
    const read = Promise.withResolvers<void>();
    let reads = 0;
    const one = openProcess(
      {
        ...budgets,
        take: () => Promise.reject(new Error('read-only')),
        async fullAt(...key) {
          reads += 1;
          if (reads === 1) await read.promise;
          return budgets.fullAt(...key);
        },
      },
      clock,
    );
    const jane = freshAttempts()('jane');
    await checkedOf(other.guess, repeated(jane, 99));
    const early = one.admit(jane);
    await one.guess(jane).catch(() => undefined);
    await other.guess(jane);
    read.resolve();
    expect(await early).toEqual({ retryAfterS: 600 });
    await other.refill(jane);
    clock.pass(1_000);
    expect(await one.admit(jane)).toEqual({ retryAfterS: 59 });
  });
});

test('two processes that check 64 wrong passwords at once exceed the budget by 2 at most', async () => {
  const { one, other } = openProcesses();
  const attemptOf = freshAttempts();
  await checkedOf(one.guess, fromMany(attemptOf, 'jane', 95));
  let checked = 0;
  const send = (process: ReturnType<typeof openProcess>) => {
    const queue = openSignInQueue(() => 0);
    return async (attempt: SignInAttempt): Promise<void> => {
      await queue.run(attempt, async () => {
        const admitted = await process.admit(attempt);
        if ('retryAfterS' in admitted) return;
        await Bun.sleep(5);
        checked += 1;
        await process.countWrong(admitted);
      });
    };
  };
  const senders = [send(one), send(other)];
  const flood = async (sender: (attempt: SignInAttempt) => Promise<void>, base: number) => {
    for (let at = 0; at < 16; at += 1)
      await Promise.all([0, 1].map((more) => sender(attemptOf('jane', `10.1.${base}.${2 * at + more}`))));
  };
  await Promise.all(senders.map(flood));
  expect(checked).toBeGreaterThanOrEqual(5);
  expect(checked).toBeLessThanOrEqual(7);
});

test('concurrent takes of two processes add up', async () => {
  const { realmId } = freshAttempts()('x');
  const key = { name: 'name', kind: 1, source: 'source' };
  const take = { ...key, fullAt: 1_010, refillMs: 10, fullAtMax: 1_000_000 };
  await Promise.all(
    Array.from({ length: 100 }, (_, at) => (engines[at % 2] as Engine).budgets.take(realmId, [take])),
  );
  expect(await engines[0].budgets.fullAt(realmId, [key, { ...key, kind: 2 }])).toEqual([2_000, 0]);
});

describe('a clock that is set back', () => {
  test('takes what it would refill in that time from a budget', async () => {
    const { clock, one } = openProcesses();
    const attemptOf = freshAttempts();
    await checkedOf(one.guess, fromMany(attemptOf, 'jane', 90));
    clock.setBack(30 * MINUTE_MS);
    expect(await checkedOf(one.guess, fromMany(attemptOf, 'jane', 20, '10.0.1'))).toBe(7);
  });

  test('exhausts a budget, and not for longer than the budget needs to refill', async () => {
    const { clock, one } = openProcesses();
    const jane = freshAttempts()('jane', '192.0.2.1');
    await one.guess(jane);
    clock.setBack(10 * 365 * 24 * 60 * MINUTE_MS);
    expect(await one.guess(jane)).toBe(600);
    clock.pass(10 * MINUTE_MS);
    expect(await one.guess(jane)).toBe('no device');
    clock.pass(1_000 * MINUTE_MS);
    expect(await checkedOf(one.guess, repeated(jane, 20))).toBe(10);
  });
});

describe('sign-ups', () => {
  /** How many of these sign-ups have a token. */
  async function takenOf(
    { throttledSource, takeFromSource }: ReturnType<typeof openProcess>,
    attempts: readonly SignInAttempt[],
  ): Promise<number> {
    let taken = 0;
    for (const attempt of attempts) {
      const signUp = { ...attempt, kind: 'sign-up' } as const;
      if (await throttledSource(signUp)) continue;
      await takeFromSource(signUp);
      taken += 1;
    }
    return taken;
  }

  test('from one network are ten on all processes together, of all names of a profile', async () => {
    const { clock, one, other } = openProcesses();
    const attemptOf = freshAttempts();
    const sent = (count: number) =>
      Array.from({ length: count }, (_, at) => attemptOf(`user${at}`, `2001:db8:1:1::${at}`));
    expect(await takenOf(one, sent(6))).toBe(6);
    expect(await takenOf(other, sent(10))).toBe(4);
    expect(await takenOf(one, sent(1))).toBe(0);
    const refused = { ...attemptOf('y', '2001:db8:1:1::1'), kind: 'sign-up' } as const;
    expect(await one.throttledSource(refused)).toEqual({ retryAfterS: 90 });
    expect(
      await takenOf(one, [attemptOf('y', '2001:db8:1:2::1'), freshAttempts()('y', '2001:db8:1:1::1')]),
    ).toBe(2);
    clock.pass(90_000);
    expect(await takenOf(one, sent(2))).toBe(1);
  });

  test('without an address are 60 of a client, and one more each second', async () => {
    const { clock, one } = openProcesses();
    const attemptOf = freshAttempts();
    const sent = (count: number, clientId: string) =>
      Array.from({ length: count }, (_, at) => attemptOf(`user${at}`, undefined, { clientId }));
    expect(await takenOf(one, sent(61, 'shop'))).toBe(60);
    expect(await takenOf(one, sent(1, 'other'))).toBe(1);
    clock.pass(1_000);
    expect(await takenOf(one, sent(2, 'shop'))).toBe(1);
  });

  test('take nothing from the budgets of wrong passwords', async () => {
    const { one } = openProcesses();
    const attempt = freshAttempts()('jane', '192.0.2.90');
    expect(await takenOf(one, repeated(attempt, 10))).toBe(10);
    expect(await checkedOf(one.guess, repeated(attempt, 11))).toBe(10);
  });
});
