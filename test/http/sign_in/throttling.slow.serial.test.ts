import { afterAll, describe, expect, test } from 'bun:test';
import { comparableResponse } from '../../support/service.ts';
import { createPassword, DEVICE_HEADER, from, manyOf, startGuessedService } from '../../support/sign_in.ts';

/** What wrong passwords do to later requests: docs/decisions/0024-sign-in-by-password.md. */

const { service, accounts, signIn, statusOf, guess } = await startGuessedService();
afterAll(() => service.stop());
const { db, clock } = service;

describe('wrong passwords', () => {
  test('of one name from many addresses are checked a hundred times, and an unknown name looks the same', async () => {
    const jane = await createPassword(db, accounts);
    const nobody = { ...jane, username: 'nobody-here@example.com' };
    const both = [jane, nobody];
    // At the same time, so that both names are refilled at the same time.
    const statuses = await Promise.all(
      both.map((of, at) => guess(of, 102, (index) => `198.51.${100 + at}.${index}`)),
    );
    for (const ofName of statuses) expect(ofName).toEqual([...manyOf(400, 100), 429, 429]);
    const answers = await Promise.all(both.map((of) => signIn(of, 'one more', from('203.0.113.9'))));
    const [known = 0, unknown = 0] = answers.map(({ headers }) => Number(headers.get('retry-after')));
    expect(known).toBeGreaterThan(0);
    expect(Math.abs(known - unknown)).toBeLessThanOrEqual(1);
    const withoutWait = (answer = '') => answer.replace(/"retry-after","\d+"/, '');
    const [ofKnown, ofUnknown] = await Promise.all(answers.map(comparableResponse));
    expect(withoutWait(ofUnknown)).toBe(withoutWait(ofKnown));
    clock.advance(600_000);
    expect(await statusOf(jane, jane.password, from('203.0.113.9'))).toBe(201);
  });

  test('do not block the owner on a device that has signed in', async () => {
    const jane = await createPassword(db, accounts);
    const first = await signIn(jane, jane.password, from('203.0.113.20'));
    const device = first.headers.get(DEVICE_HEADER) ?? '';
    expect((await guess(jane, 101, (index) => `198.51.102.${index}`)).at(-1)).toBe(429);
    expect(await statusOf(jane, jane.password, from('203.0.113.20'))).toBe(429);
    for (let count = 0; count < 5; count += 1)
      expect(await statusOf(jane, jane.password, from('203.0.113.20', { [DEVICE_HEADER]: device }))).toBe(
        201,
      );
  });

  test('with a device token count for the device alone: ten, and a hundred in all', async () => {
    const jane = await createPassword(db, accounts);
    const first = await signIn(jane, jane.password, from('203.0.113.40'));
    const headers = from('203.0.113.40', { [DEVICE_HEADER]: first.headers.get(DEVICE_HEADER) ?? '' });
    for (let round = 0; round < 10; round += 1) {
      for (let count = 0; count < 10; count += 1)
        expect(await statusOf(jane, 'wrong horse', headers)).toBe(400);
      if (round < 9) expect(await statusOf(jane, jane.password, headers)).toBe(201);
      clock.advance(900_000);
    }
    // Now it counts as none: the next ten are those of its address.
    expect(await guess(jane, 11, () => '203.0.113.40')).toEqual([...manyOf(400, 10), 429]);
    expect(await statusOf(jane, jane.password, headers)).toBe(429);
  });

  test('over many names from one /48 are checked a thousand times', async () => {
    const jane = await createPassword(db, accounts);
    const statuses = new Map<number, number>();
    const startedAt = clock.monotonic();
    for (let index = 0; index < 1_040; index += 1) {
      const of = { ...jane, username: `leaked-${index}@example.com` };
      const address = `2001:db8:7:${(index % 64).toString(16)}::1`;
      const status = await statusOf(of, 'leaked', from(address));
      statuses.set(status, (statuses.get(status) ?? 0) + 1);
    }
    expect(statuses.get(400)).toBeGreaterThanOrEqual(990);
    // One more each 900 ms.
    const refilled = Math.ceil((clock.monotonic() - startedAt) / 900);
    expect(statuses.get(400)).toBeLessThanOrEqual(1_000 + refilled);
    expect(statuses.get(429)).toBeGreaterThan(0);
    expect(await statusOf(jane, jane.password, from('2001:db8:8::2'))).toBe(201);
  });
});

test('right passwords of one name are answered sixty times in a quarter of an hour', async () => {
  const jane = await createPassword(db, accounts);
  const startedAt = clock.monotonic();
  let answered = 0;
  while ((await statusOf(jane, jane.password, from(`203.0.114.${answered}`))) === 201) answered += 1;
  expect(answered).toBeGreaterThanOrEqual(60);
  // One more each 15 s.
  expect(answered).toBeLessThanOrEqual(60 + Math.ceil((clock.monotonic() - startedAt) / 15_000));
  expect(await statusOf(jane, jane.password, from('203.0.114.0'))).toBe(429);
});
