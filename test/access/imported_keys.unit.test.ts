import { expect, test } from 'bun:test';
import type { CryptoKey } from 'jose';
import { openImportedKeys } from '../../src/access/keys/imported_keys.ts';
import type { SigningKey } from '../../src/access/store/access.ts';

/** The cache of imported signing keys. */

const keyOf = (kid: string) => ({ kid }) as SigningKey;
const [first, second] = [keyOf('one'), keyOf('other')] as [SigningKey, SigningKey];

function openObserved() {
  const loaded: string[] = [];
  const failing = new Set<string>();
  const imported = openImportedKeys(async ({ kid }) => {
    loaded.push(kid);
    if (failing.has(kid)) throw new Error('it does not decrypt');
    return { kid } as unknown as CryptoKey;
  });
  return { loaded, failing, ...imported };
}

test('a signing key is imported once for concurrent callers', async () => {
  const { get, loaded } = openObserved();
  const [imported, again] = await Promise.all([get(first), get(first)]);
  expect(again).toBe(imported as CryptoKey);
  await get(second);
  expect(await get(first)).toBe(imported as CryptoKey);
  expect(loaded).toEqual(['one', 'other']);
});

test('a signing key whose import failed is imported again', async () => {
  const { get, failing, loaded } = openObserved();
  failing.add('one');
  await expect(get(first)).rejects.toThrow('it does not decrypt');
  failing.clear();
  await get(first);
  expect(loaded).toEqual(['one', 'one']);
});

test('retained signing keys stay loaded, and all others are dropped', async () => {
  const { get, retainOnly, failing, loaded } = openObserved();
  for (const key of [first, second]) await get(key);
  retainOnly([first, second]);
  failing.add('one').add('other');
  for (const key of [first, second]) await get(key);
  retainOnly([second, keyOf('never read')]);
  await get(second);
  await expect(get(first)).rejects.toThrow('it does not decrypt');
  expect(loaded).toEqual(['one', 'other', 'one']);
});
