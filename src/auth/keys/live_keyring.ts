import type { Clock } from '../../domain/id.ts';
import { ciphertextKeyId } from '../../domain/text/ciphertext.ts';
import type { AuthStore } from '../../store/auth/access.ts';
import type { SealedStore } from '../../store/auth/sealed_store.ts';
import { assertOpensAll, assertOpensSealed, type Keyring, keyCheckOf, openKeyring } from './keyring.ts';

/**
 * The keyring of a process: the configured master keys. Every ciphertext names its key, so values sealed by the current and
 * the previous key both decrypt while the master key is being changed.
 */
export interface LiveKeyring extends Keyring {
  /** Seals from now on with the newest of these keys that is configured: those with a stored key check, newest last. */
  activateNewest(keyIds: readonly string[]): void;
}

export function openLiveKeyring(
  masters: readonly Uint8Array[],
  clock: Pick<Clock, 'randomBytes'>,
): LiveKeyring {
  const keyrings = new Map<string, Keyring>();
  for (const keyring of masters.map((key) => openKeyring(key, clock))) keyrings.set(keyring.keyId, keyring);
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
      const keyring = keyrings.get(ciphertextKeyId(sealed)) ?? active;
      return keyring.open(purpose, location, sealed);
    },
    activateNewest(keyIds) {
      const available = keyIds.flatMap((keyId) => keyrings.get(keyId) ?? []);
      active = available.at(-1) ?? active;
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
