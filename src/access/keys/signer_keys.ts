import { attempt } from '../../model/attempt.ts';
import { Fault } from '../../model/fault.ts';
import { type Clock, NIL_UUID } from '../../model/id.ts';
import { signerKeyId } from '../../model/imported_hash.ts';
import { readDerivedKey } from '../../model/password_hash.ts';
import type { AuthStore } from '../store/access.ts';
import type { SecretLocation } from '../store/sealed.ts';
import type { Keyring } from './keyring.ts';

const PREFIX = 'firebase ';
const locationOf = (id: string): SecretLocation => ({
  ...{ table: 'instance_secret', column: 'sealed', realm: NIL_UUID },
  id: `${PREFIX}${id}`,
});

/** The signer keys of Firebase projects, each of which all hashes of its project need. The master key seals them. */
export function openSignerKeys(
  store: Pick<AuthStore, 'secret' | 'secretNames' | 'insertSecret'>,
  keyring: Pick<Keyring, 'seal' | 'open'>,
  clock: Pick<Clock, 'now'>,
) {
  return {
    async add(key: Uint8Array): Promise<void> {
      const location = locationOf(signerKeyId(key));
      const sealed = keyring.seal('instance-secret', location, Buffer.from(key).toString('base64'), 'base64');
      await store.insertSecret(location.id, sealed, clock.now());
    },
    ids: async (): Promise<ReadonlySet<string>> =>
      new Set((await store.secretNames(PREFIX)).map((name) => name.slice(PREFIX.length))),
    /**
     * The key that a hash names, in base64; undefined if it names none, or one that is not stored. Rejects with Fault `unavailable` if the
     * master key does not open it.
     */
    async find(hash: string): Promise<string | undefined> {
      const id = signerKeyIdIn(hash);
      if (id === undefined) return undefined;
      const location = locationOf(id);
      const sealed = await store.secret(location.id);
      if (!sealed) return undefined;
      const key = attempt(() => keyring.open('instance-secret', location, sealed, 'base64'));
      if (key === undefined) throw new Fault('unavailable', [], new Error('a signer key does not open'));
      return key;
    },
  };
}

/** The ID of the signer key that a stored hash names. */
export function signerKeyIdIn(hash: string): string | undefined {
  const derived = readDerivedKey(hash);
  return derived && 'N' in derived ? derived.signerKeyId : undefined;
}
