import { describe, expect, test } from 'bun:test';
import { openCounterLog } from '../../src/log/counters.ts';
import { Fault } from '../../src/model/fault.ts';
import { LIMITS } from '../../src/model/limits.ts';
import { type AuditEntry, createAuditEntry } from '../../src/model/log/audit_entry.ts';
import { systemClock } from '../../src/ops/process/clock.ts';

type Options = Parameters<typeof openCounterLog>[2];

/** A log whose store rejects with `error` if there is one. */
function openFixture(options: Options = {}) {
  const state = {
    error: undefined as unknown,
    /** What a write waits for. */
    wait: undefined as Promise<void> | undefined,
    appends: [] as (readonly AuditEntry[])[],
    uses: [] as string[][],
  };
  const reports: unknown[] = [];
  const store = {
    async append(entries: readonly AuditEntry[]) {
      state.appends.push(entries);
      if (state.wait) await state.wait;
      if (state.error) throw state.error;
      written.push(...entries);
    },
    async recordClientUsage(clientIds: readonly string[]) {
      if (state.error) throw state.error;
      state.uses.push([...clientIds].sort());
    },
  };
  const written: AuditEntry[] = [];
  const onPending = (pending: unknown) => reports.push(pending);
  const log = openCounterLog(store, systemClock, { onPending, ...options });
  return {
    ...{ state, written, reports, log },
    /** An event of a key from an address. */
    add(key: string, address?: string, keysMax?: number) {
      const caller = { actor: key, address, requestId: undefined };
      const fields = { object: key, detail: { reason: 'test' } };
      const entry = createAuditEntry('access.refused', fields, { now: systemClock.now, caller });
      return log.add(key, entry, keysMax);
    },
    numbers: () => written.map(({ object, detail }) => `${object} ${detail.count ?? 1}`),
  };
}

const unavailable = new Fault('unavailable');

describe('counted events', () => {
  test('the first event of a key is an entry at once, and further ones share an entry of the last with their number', async () => {
    const { add, log, written } = openFixture();
    await add('shop', '192.0.2.1');
    expect(written).toMatchObject([{ object: 'shop', id: expect.any(String), detail: { reason: 'test' } }]);
    for (const host of [2, 3, 3]) expect(add('shop', `192.0.2.${host}`)).toBeUndefined();
    await add('pos');
    expect(written).toHaveLength(2);
    await log.stop();
    expect(written).toHaveLength(3);
    expect(written[2]).toMatchObject({
      ...{ object: 'shop', id: expect.any(String), address: '192.0.2.3' },
      detail: { reason: 'test', count: 3, addresses: ['192.0.2.2', '192.0.2.3'] },
    });
    expect(new Date(String(written[2]?.detail.since)).getTime()).toBeLessThanOrEqual(written[2]?.at ?? 0);
    expect(new Set(written.map(({ id }) => id)).size).toBe(3);
  });

  test('the entry of events from many addresses has the first 16 of them', async () => {
    const { add, log, written } = openFixture();
    for (let host = 0; host <= 100; host += 1) add('shop', `192.0.2.${host}`);
    await log.stop();
    const first = Array.from({ length: LIMITS.addressesLoggedMax }, (_, at) => `192.0.2.${at + 1}`);
    expect(written[1]?.detail).toMatchObject({ count: 100, addresses: first });
  });

  test('a caller in a loop has one entry per interval, and one more event afterwards is written at once', async () => {
    const intervalMs = 40;
    const { add, log, written } = openFixture({ intervalMs });
    let count = 0;
    const began = performance.now();
    while (performance.now() - began < 5 * intervalMs) {
      await add('shop');
      count += 1;
      await Bun.sleep(1);
    }
    const logged = () => written.reduce((sum, { detail }) => sum + Number(detail.count ?? 1), 0);
    // The entry of the last interval, and an interval without an event.
    while (logged() < count) await Bun.sleep(1);
    await Bun.sleep(3 * intervalMs);
    const intervals = (performance.now() - began) / intervalMs;
    expect(written.length).toBeLessThanOrEqual(Math.ceil(intervals) + 1);
    expect(logged()).toBe(count);
    const before = written.length;
    await add('shop');
    expect(written).toHaveLength(before + 1);
    await log.stop();
    expect(written).toHaveLength(before + 1);
  });

  test('events beyond the number of keys are counted together, by reason', async () => {
    const { add, log, written } = openFixture();
    for (let at = 0; at < 5; at += 1) add(`shop ${at}`, '192.0.2.1', 2);
    add('shop 1', '192.0.2.1', 2);
    await log.stop();
    expect(written.map(({ actor, object, detail }) => [actor, object, detail.count])).toEqual([
      ['shop 0', 'shop 0', undefined],
      ['shop 1', 'shop 1', undefined],
      ['others', undefined, undefined],
      ['shop 1', 'shop 1', undefined],
      ['others', undefined, 2],
    ]);
    expect(written[4]).toMatchObject({ address: undefined, detail: { reason: 'test' } });
  });

  test('100,000 keys of an action are counted apart', async () => {
    const { add, log, written } = openFixture();
    for (let at = 0; at <= LIMITS.eventsCountedMax; at += 1) add(`${at}`);
    expect(written.filter(({ actor }) => actor === 'others')).toHaveLength(1);
    await log.stop();
    expect(written).toHaveLength(LIMITS.eventsCountedMax + 1);
  });
});

describe('a counter log whose store accepts no writes', () => {
  test('events are counted without a wait, and written once the store accepts writes', async () => {
    const { add, log, state, numbers, reports } = openFixture({ intervalMs: 10 });
    state.error = unavailable;
    await add('shop');
    expect(reports).toEqual([{ pending: 1, dropped: 0 }]);
    for (const key of ['shop', 'pos', 'pos']) expect(add(key)).toBeUndefined();
    while (state.appends.length < 4) await Bun.sleep(1);
    expect(state.appends.map(({ length }) => length)).toEqual(Array(state.appends.length).fill(1));
    state.error = undefined;
    while (numbers().length < 3) await Bun.sleep(1);
    expect(numbers()).toEqual(['shop 1', 'shop 1', 'pos 2']);
    await log.stop();
    expect(reports.slice(1)).toEqual([{ pending: 0, dropped: 0 }]);
    expect(numbers()).toHaveLength(3);
  });

  test('an entry whose write fails after the end of an interval is written at the end of the next one', async () => {
    const { state, add, log, numbers } = openFixture({ intervalMs: 5 });
    const failure = Promise.withResolvers<never>();
    state.wait = failure.promise;
    const added = add('shop');
    await Bun.sleep(20);
    state.wait = undefined;
    failure.reject(unavailable);
    await added;
    while (numbers().length === 0) await Bun.sleep(1);
    expect(numbers()).toEqual(['shop 1']);
    await log.stop();
    expect(numbers()).toHaveLength(1);
  });

  test('entries whose write has an unknown outcome are written again with the same IDs, before newer ones', async () => {
    const { add, log, state } = openFixture();
    state.error = new Fault('unknown_outcome');
    await add('shop');
    add('pos');
    await log.stop();
    add('pos');
    state.error = undefined;
    await log.stop();
    const [first = [], again, retried, counted, ...more] = state.appends;
    for (const entries of [again, retried?.slice(0, 1)]) expect(entries).toEqual([...first]);
    for (const entries of [retried?.slice(1), counted]) expect(entries).toMatchObject([{ object: 'pos' }]);
    expect(more).toEqual([]);
  });

  test('what cannot be written at the stop is reported as lost', async () => {
    const { add, log, state, reports } = openFixture();
    state.error = unavailable;
    await add('shop');
    add('shop');
    add('pos');
    await log.stop();
    expect(reports).toEqual([
      { pending: 1, dropped: 0 },
      { pending: 0, dropped: 3 },
    ]);
  });
});

describe('a counter log with an unexpected error of its store', () => {
  test('the first event is rejected, and so is the next one', async () => {
    const { add, log, state, numbers } = openFixture();
    state.error = new TypeError('broken');
    expect(await add('shop')?.catch((error) => error)).toBe(state.error);
    expect(await add('shop')?.catch((error) => error)).toBe(state.error);
    state.error = undefined;
    await add('shop');
    await log.stop();
    expect(numbers()).toEqual(['shop 1']);
  });

  test('counted events are written later, and the error is reported', async () => {
    const errors: unknown[] = [];
    const onError = (error: unknown) => errors.push(error);
    const { add, log, state, numbers } = openFixture({ intervalMs: 5, onError });
    const broken = new TypeError('broken');
    await add('shop');
    state.error = broken;
    add('shop');
    while (errors.length === 0) await Bun.sleep(1);
    expect(errors[0]).toBe(broken);
    add('shop');
    state.error = undefined;
    await log.stop();
    expect(numbers().reduce((sum, each) => sum + Number(each.split(' ')[1]), 0)).toBe(3);
  });
});

test('the use of clients alone is stored once per interval, and again after a failure', async () => {
  const { log, state } = openFixture({ intervalMs: 5 });
  state.error = unavailable;
  for (const callerId of ['shop', 'pos', 'console:jane', 'shop']) log.use(callerId);
  await Bun.sleep(20);
  expect(state.uses).toEqual([]);
  state.error = undefined;
  while (state.uses.length === 0) await Bun.sleep(1);
  expect(state.uses).toEqual([['pos', 'shop']]);
  log.use('shop');
  while (state.uses.length === 1) await Bun.sleep(1);
  expect(state.uses[1]).toEqual(['shop']);
  log.use('pos');
  await log.stop();
  await log.stop();
  expect(state.uses.slice(2)).toEqual([['pos']]);
});
