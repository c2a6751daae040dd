import { expect, test } from 'bun:test';
import type { CryptoKey } from 'jose';
import { openImportedKeys } from '../../src/auth/keys/imported_keys.ts';
import type { SigningKey } from '../../src/auth/port.ts';

/** What stays of a key that was read, and for how long. */

const keyOf = (kid: string) => ({ kid }) as SigningKey;
const [one, other] = [keyOf('one'), keyOf('other')] as [SigningKey, SigningKey];

function watched() {
  const loaded: string[] = [];
  const failing = new Set<string>();
  const imported = openImportedKeys(async ({ kid }) => {
    loaded.push(kid);
    if (failing.has(kid)) throw new Error('it does not open');
    return { kid } as unknown as CryptoKey;
  });
  return { loaded, failing, ...imported };
}

test('a signing key is imported once for concurrent callers', async () => {
  const { get: of, loaded } = watched();
  const [first, second] = await Promise.all([of(one), of(one)]);
  expect(second).toBe(first as CryptoKey);
  await of(other);
  expect(await of(one)).toBe(first as CryptoKey);
  expect(loaded).toEqual(['one', 'other']);
});

test('a signing key whose import failed is imported again', async () => {
  const { get: of, failing, loaded } = watched();
  failing.add('one');
  await expect(of(one)).rejects.toThrow('it does not open');
  failing.clear();
  await of(one);
  expect(loaded).toEqual(['one', 'one']);
});

test('retained signing keys stay loaded, and all others are dropped', async () => {
  const { get: of, retainOnly: keep, failing, loaded } = watched();
  for (const key of [one, other]) await of(key);
  keep([one, other]);
  failing.add('one').add('other');
  for (const key of [one, other]) await of(key);
  keep([other, keyOf('never read')]);
  await of(other);
  await expect(of(one)).rejects.toThrow('it does not open');
  expect(loaded).toEqual(['one', 'other', 'one']);
});
