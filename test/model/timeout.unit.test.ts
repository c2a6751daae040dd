import { expect, test } from 'bun:test';
import { withTimeout } from '../../src/model/timeout.ts';

const late = (): never => {
  throw new Error('late');
};

test('withTimeout settles as a promise that settles in time', async () => {
  expect(await withTimeout(Promise.resolve('value'), 60_000, late)).toBe('value');
  await expect(withTimeout(Promise.reject(new Error('failed')), 60_000, late)).rejects.toThrow('failed');
});

test('withTimeout settles as onTimeout after the time, and ignores a later rejection', async () => {
  const { promise, reject } = Promise.withResolvers<string>();
  expect(await withTimeout(promise, 1, () => 'default')).toBe('default');
  await expect(withTimeout(promise, 1, late)).rejects.toThrow('late');
  reject(new Error('rejected after the time'));
});

test('withTimeout settles as onTimeout even if onTimeout settles the promise', async () => {
  const { promise, reject } = Promise.withResolvers<string>();
  const cancelled = withTimeout(promise, 1, () => {
    reject(new Error('cancelled'));
    return late();
  });
  await expect(cancelled).rejects.toThrow('late');
});
