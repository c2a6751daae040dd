import { attempt } from '../../model/attempt.ts';
import { Refusal } from '../../model/fault.ts';
import { type AuditContext, createAuditEntry } from '../../model/log/audit_entry.ts';
import { ciphertextKeyId } from '../../model/text/ciphertext.ts';
import type { AuthStore } from '../store/access.ts';
import type { ResealedValue, SealedStore } from '../store/sealed.ts';
import { type Keyring, keyCheckOf, openKeyring, purposeOf, sealedPages } from './keyring.ts';

export interface MasterKeyChange {
  /** The new key first; they open every key check and every sealed value of the database. */
  readonly keys: readonly Uint8Array[];
  readonly store: SealedStore & Pick<AuthStore, 'keyChecks'>;
  readonly clock: AuditContext;
}

export type MasterKeyChanged = Awaited<ReturnType<typeof changeMasterKey>>;

/** Other processes may seal with the old key until they have read the next key check. */
const ROUNDS_MAX = 100;

/**
 * Changes the master key while services run that have both keys. It may be interrupted anywhere and run again, because at every
 * moment each key that a stored value names has a key check. Steps: add the key check of the new key, seal every value again,
 * remove the old key checks with the last of them. Returns the retired keys, none where there was nothing left to do, and the
 * number of values. Throws Refusal with the next step.
 */
export async function changeMasterKey({ keys, store, clock }: MasterKeyChange) {
  const [next] = keys;
  if (!next) throw new Error('a change of the master key needs the new key');
  const target = openKeyring([next], clock);
  const keyring = openKeyring(keys, clock);
  const { keyId } = target;
  const keyIds = (await store.keyChecks()).map((keyCheck) => keyCheck.keyId);
  const ended: readonly string[] = keyIds.filter((each) => each !== keyId);
  let resealed = 0;
  if (ended.length === 0) return { keyId, ended, resealed };
  if (!(await store.addKeyCheck(keyCheckOf(target), clock.now())))
    throw new Refusal('the master key is already being changed to another key: complete that change first');
  const auditEntry = createAuditEntry('master-key.changed', { object: keyId, detail: {} }, clock);
  for (let round = 0; round < ROUNDS_MAX; round += 1) {
    resealed += await resealRound(store, keyring, target);
    if (await store.retireOtherKeys(keyId, auditEntry)) return { keyId, ended, resealed };
  }
  throw new Refusal(
    'other processes still encrypt with the old master key: restart them with --master-key-file and --previous-master-key-file, ' +
      'then run this command again',
  );
}

async function resealRound(store: SealedStore, keyring: Keyring, target: Keyring): Promise<number> {
  const unreadable: string[] = [];
  let resealed = 0;
  // A page is a commit; other writers get their turn in between.
  for await (const values of sealedPages(store, target.keyId)) {
    const ready: ResealedValue[] = [];
    for (const { location, sealed: seen } of values) {
      const purpose = purposeOf(location);
      // Not every value is text: a signer key is bytes.
      const plain = attempt(() => keyring.open(purpose, location, seen, 'base64'));
      if (plain !== undefined)
        ready.push({ location, seen, sealed: target.seal(purpose, location, plain, 'base64') });
      else unreadable.push(`${location.table} ${location.id} (encrypted with key ${ciphertextKeyId(seen)})`);
    }
    await store.replace(ready);
    resealed += ready.length;
  }
  if (unreadable.length === 0) return resealed;
  throw new Refusal(
    `${unreadable.length} encrypted values cannot be decrypted, so the old master key stays in use next to the new one: ` +
      `${unreadable.slice(0, 5).join(', ')}. Withdraw these signing keys, enter these client secrets again, then run this command again`,
  );
}
