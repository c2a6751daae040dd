import type { CryptoKey } from 'jose';
import type { SigningKey } from '../port.ts';

export type LoadKey = (key: SigningKey) => Promise<CryptoKey>;

export interface ImportedKeys {
  readonly get: LoadKey;
  /** Lets go of all but these. */
  retainOnly(keys: readonly SigningKey[]): void;
}

/** One half of each signing key is read once per process, and again only where that failed, or it was let go. */
export function openImportedKeys(load: LoadKey): ImportedKeys {
  const loaded = new Map<string, Promise<CryptoKey>>();
  return {
    get(key) {
      const known = loaded.get(key.kid);
      if (known) return known;
      const loading = load(key);
      loaded.set(key.kid, loading);
      loading.catch(() => loaded.delete(key.kid));
      return loading;
    },
    retainOnly(keys) {
      const kids = new Set(keys.map(({ kid }) => kid));
      for (const kid of loaded.keys()) if (!kids.has(kid)) loaded.delete(kid);
    },
  };
}
