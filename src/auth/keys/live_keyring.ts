import type { Clock } from '../../domain/id.ts';
import { keyIdOf } from '../../domain/text/ciphertext.ts';
import type { AuthStore } from '../port.ts';
import { assertOpensAll, type Keyring, keyCheckOf, openKeyring } from './keyring.ts';

/**
 * The keyring of a process: the master keys it was given, and those that come while it runs. Every ciphertext names
 * its key, so while the master key is being changed what either key sealed opens.
 */
export interface LiveKeyring extends Keyring {
  /** Takes note of the keys that have a proof, the newest last: the newest one at hand seals from now on. */
  activateNewest(keyIds: readonly string[]): void;
}

/** `reread` answers the keys as they are given now; it is asked where a key is named that is not held. */
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

  /** A key file that cannot be read now brings nothing new; what is held goes on. */
  function addReread(): void {
    try {
      add(reread());
    } catch {
      // Told where it matters: the ciphertext in question does not open.
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
      const keyring = find(keyIdOf(sealed)) ?? active;
      return keyring.open(purpose, location, sealed);
    },
    activateNewest(keyIds) {
      active = keyIds.map(find).findLast((keyring) => keyring !== undefined) ?? active;
    },
  };
}

/**
 * Makes sure that the database and the master key belong together: the first key leaves its proof, every later one
 * must open it. Two proofs are there while the key is being changed; both keys are needed until that has ended. Throws
 * Refusal for a stranger's key.
 */
export async function assertKeyringMatches(
  keyring: LiveKeyring,
  store: AuthStore,
  clock: Clock,
): Promise<void> {
  if ((await store.keyChecks()).length === 0) await store.insertKeyCheck(keyCheckOf(keyring), clock.now());
  const keyChecks = await store.keyChecks();
  assertOpensAll(keyring, keyChecks);
  keyring.activateNewest(keyChecks.map(({ keyId }) => keyId));
}
