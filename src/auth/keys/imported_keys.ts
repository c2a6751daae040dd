import type { CryptoKey } from 'jose';
import type { SigningKey } from '../port.ts';

export type LoadKey = (key: SigningKey) => Promise<CryptoKey>;

export interface ImportedKeys {
  readonly of: LoadKey;
  /** Lets go of all but these. */
  keep(keys: readonly SigningKey[]): void;
}

/** One half of each signing key is read once per process, and again only where that failed, or it was let go. */
export function openImported(load: LoadKey): ImportedKeys {
  const loaded = new Map<string, Promise<CryptoKey>>();
  return {
    of(key) {
      const known = loaded.get(key.kid);
      if (known) return known;
      const loading = load(key);
      loaded.set(key.kid, loading);
      loading.catch(() => loaded.delete(key.kid));
      return loading;
    },
    keep(keys) {
      const kept = new Set(keys.map(({ kid }) => kid));
      for (const kid of loaded.keys()) if (!kept.has(kid)) loaded.delete(kid);
    },
  };
}
