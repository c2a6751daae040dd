import type { CryptoKey } from 'jose';
import type { SigningKey } from '../store/access.ts';

/**
 * Imports one half of each signing key once per process; again only after a failure, or after it was dropped.
 */
export function openImportedKeys(load: (key: SigningKey) => Promise<CryptoKey>) {
  const loaded = new Map<string, Promise<CryptoKey>>();
  return {
    get(key: SigningKey): Promise<CryptoKey> {
      const known = loaded.get(key.kid);
      if (known) return known;
      const loading = load(key);
      loaded.set(key.kid, loading);
      loading.catch(() => loaded.delete(key.kid));
      return loading;
    },
    /** Drops all other keys from memory. */
    retainOnly(keys: readonly SigningKey[]): void {
      const kids = new Set(keys.map(({ kid }) => kid));
      for (const kid of loaded.keys()) if (!kids.has(kid)) loaded.delete(kid);
    },
  };
}
