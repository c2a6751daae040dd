import { expect, test } from 'bun:test';
import { withTimeout } from '../../src/platform/timeout.ts';

const late = (): never => {
  throw new Error('late');
};

test('a promise that settles in time settles the same way', async () => {
  expect(await withTimeout(Promise.resolve('value'), 60_000, late)).toBe('value');
  await expect(withTimeout(Promise.reject(new Error('failed')), 60_000, late)).rejects.toThrow('failed');
});

test('after the time the value or error of onTimeout counts, and a later rejection is ignored', async () => {
  const { promise, reject } = Promise.withResolvers<string>();
  expect(await withTimeout(promise, 1, () => 'default')).toBe('default');
  await expect(withTimeout(promise, 1, late)).rejects.toThrow('late');
  reject(new Error('nobody waits for this'));
});

test('the outcome of onTimeout counts even where it makes the promise settle', async () => {
  const { promise, reject } = Promise.withResolvers<string>();
  const cancelled = withTimeout(promise, 1, () => {
    reject(new Error('cancelled'));
    return late();
  });
  await expect(cancelled).rejects.toThrow('late');
});
