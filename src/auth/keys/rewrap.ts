import { type AuditContext, createAuditEntry } from '../../domain/audit_entry.ts';
import { Refusal } from '../../domain/fault.ts';
import { ciphertextKeyId } from '../../domain/text/ciphertext.ts';
import type { AuthStore, ResealedValue, SealedStore, SealedValue } from '../port.ts';
import { type Keyring, keyCheckOf, openKeyring, opensKeyCheck, purposeOf } from './keyring.ts';
import { openLiveKeyring } from './live_keyring.ts';

/** A change of the master key: from the configured keys to the next one. */
export interface MasterKeyChange {
  readonly currentKeys: readonly Uint8Array[];
  readonly nextKey: Uint8Array;
  /** Saves these keys durably to the key file; does nothing where the key is given by value. */
  readonly saveKeys: (keys: readonly Uint8Array[]) => void;
  readonly store: SealedStore & Pick<AuthStore, 'keyChecks'>;
  readonly clock: AuditContext;
}

export interface MasterKeyChanged {
  readonly keyId: string;
  /** The retired keys; empty where there was nothing left to do. */
  readonly ended: readonly string[];
  readonly resealed: number;
}

/** Values per commit; other writers get their turn in between. */
const BATCH = 500;
/** Other processes may seal with the old key until they have read the next one. */
const ROUNDS_MAX = 100;

/**
 * Changes the master key while services run. It may be interrupted anywhere and run again, because at every
 * moment each key that a stored value names has a key check and is in the key file. Steps: add the next key
 * to the key file, add its key check, seal every value again, remove the old key checks with the last of
 * them, and leave only the next key in the file. Throws Refusal with the next step.
 */
export async function changeMasterKey(change: MasterKeyChange): Promise<MasterKeyChanged> {
  const { currentKeys, nextKey, saveKeys: keep, store, clock } = change;
  const target = openKeyring(nextKey, clock);
  const keys = [nextKey, ...currentKeys];
  const keyring = openLiveKeyring(keys, () => [], clock);
  const keyChecks = await store.keyChecks();
  const unopened = keyChecks.find((keyCheck) => !opensKeyCheck(keyring, keyCheck));
  if (unopened) throw keyMissing(unopened.keyId);
  const ended = keyChecks.map(({ keyId }) => keyId).filter((keyId) => keyId !== target.keyId);
  if (ended.length > 0) keep(keys);
  if (!(await store.addKeyCheck(keyCheckOf(target), clock.now()))) {
    keep(currentKeys);
    throw new Refusal('the master key is already being changed to another key: complete that change first');
  }
  const resealed = await resealAll(store, { keyring, target, clock });
  keep([nextKey]);
  return { keyId: target.keyId, ended, resealed };
}

function keyMissing(keyId: string): Refusal {
  return new Refusal(
    `the database requires master key ${keyId}, which was not given: set AUTHREALM_MASTER_KEY_FILE to its file, ` +
      'or add it to the key file on its own line',
  );
}

/**
 * Reseals until no value names another key and the other key checks are removed. Returns the number of
 * values.
 */
async function resealAll(
  store: SealedStore,
  {
    keyring,
    target,
    clock,
  }: { readonly keyring: Keyring; readonly target: Keyring; readonly clock: AuditContext },
): Promise<number> {
  let resealed = 0;
  const auditEntry = createAuditEntry('master-key.changed', { object: target.keyId, detail: {} }, clock);
  for (let round = 0; round < ROUNDS_MAX; round += 1) {
    resealed += await resealRound(store, keyring, target);
    if (await store.retireOtherKeys(target.keyId, auditEntry)) return resealed;
  }
  throw new Refusal(
    'other processes still encrypt with the old master key: run this command again after they have exited',
  );
}

async function resealRound(store: SealedStore, keyring: Keyring, target: Keyring): Promise<number> {
  const unreadable: string[] = [];
  let resealed = 0;
  let values = await store.values(target.keyId, undefined, BATCH);
  while (values.length > 0) {
    const opened = values.map((value) => reseal(value, keyring, target));
    const ready = opened.filter((each) => each !== undefined);
    await store.replace(ready);
    resealed += ready.length;
    unreadable.push(...values.filter((_, at) => !opened[at]).map(describeValue));
    values = await store.values(target.keyId, values.at(-1)?.location, BATCH);
  }
  if (unreadable.length > 0) throw valuesUnreadable(unreadable);
  return resealed;
}

/** Undefined if the value does not decrypt. */
function reseal(
  { location, sealed }: SealedValue,
  keyring: Keyring,
  target: Keyring,
): ResealedValue | undefined {
  try {
    const plain = keyring.open(purposeOf(location), location, sealed);
    return { location, seen: sealed, sealed: target.seal(purposeOf(location), location, plain) };
  } catch {
    return undefined;
  }
}

function describeValue({ location, sealed }: SealedValue): string {
  return `${location.table} ${location.id} (encrypted with key ${ciphertextKeyId(sealed)})`;
}

function valuesUnreadable(unreadable: readonly string[]): Refusal {
  return new Refusal(
    `${unreadable.length} encrypted values cannot be decrypted, so the old master key stays in use next to the new one: ` +
      `${unreadable.slice(0, 5).join(', ')}. Withdraw these signing keys, enter these client secrets again, then run this command again`,
  );
}
