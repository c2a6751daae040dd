import type { Clock } from '../../domain/id.ts';
import { ciphertextKeyId } from '../../domain/text/ciphertext.ts';
import type { AuthStore, SealedStore } from '../port.ts';
import { assertOpensAll, assertOpensSealed, type Keyring, keyCheckOf, openKeyring } from './keyring.ts';

/**
 * The keyring of a running process: the configured master keys, and those added to the key file later. Every
 * ciphertext names its key, so values sealed by the old and the new key both decrypt while the master key is
 * being changed.
 */
export interface LiveKeyring extends Keyring {
  /**
   * Seals from now on with the newest available key. `keyIds` are the keys with a stored key check, newest
   * last.
   */
  activateNewest(keyIds: readonly string[]): void;
}

/** `reread` reads the key file again; it is called when a ciphertext names an unknown key. */
export function openLiveKeyring(
  masters: readonly Uint8Array[],
  reread: () => readonly Uint8Array[],
  clock: Pick<Clock, 'randomBytes'>,
): LiveKeyring {
  const keyrings = new Map<string, Keyring>();
  const add = (keys: readonly Uint8Array[]): void => {
    for (const keyring of keys.map((key) => openKeyring(key, clock))) {
      if (!keyrings.has(keyring.keyId)) keyrings.set(keyring.keyId, keyring);
    }
  };

  function find(keyId: string): Keyring | undefined {
    if (!keyrings.has(keyId)) addReread();
    return keyrings.get(keyId);
  }

  /** If the key file cannot be read now, the loaded keys stay in use. */
  function addReread(): void {
    try {
      add(reread());
    } catch {
      // The caller fails anyway: the ciphertext in question does not decrypt.
    }
  }

  add(masters);
  const [first] = keyrings.values();
  if (!first) throw new Error('a keyring needs a master key');
  let active = first;

  return {
    get keyId() {
      return active.keyId;
    },
    seal: (purpose, location, plain) => active.seal(purpose, location, plain),
    digest: (purpose, text) => active.digest(purpose, text),
    open(purpose, location, sealed) {
      const keyring = find(ciphertextKeyId(sealed)) ?? active;
      return keyring.open(purpose, location, sealed);
    },
    activateNewest(keyIds) {
      active = keyIds.map(find).findLast((keyring) => keyring !== undefined) ?? active;
    },
  };
}

/**
 * Checks that the master key belongs to the database: a key stores its key check where there is none and it decrypts all
 * that is sealed, which is nothing at first; every later key must decrypt the check. While the master key is being changed
 * there are two key checks, and both keys are required. Throws Refusal for a wrong key.
 */
export async function assertKeyringMatches(
  keyring: LiveKeyring,
  store: Pick<AuthStore, 'keyChecks' | 'insertKeyCheck'>,
  sealed: Pick<SealedStore, 'values'>,
  clock: Clock,
): Promise<void> {
  if ((await store.keyChecks()).length === 0) {
    await assertOpensSealed(keyring, sealed);
    await store.insertKeyCheck(keyCheckOf(keyring), clock.now());
  }
  const keyChecks = await store.keyChecks();
  assertOpensAll(keyring, keyChecks);
  keyring.activateNewest(keyChecks.map(({ keyId }) => keyId));
}
