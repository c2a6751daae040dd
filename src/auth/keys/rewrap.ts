import { actOf, type Occasion } from '../../domain/act.ts';
import { Refusal } from '../../domain/fault.ts';
import { keyIdOf } from '../../domain/text/ciphertext.ts';
import type { AccessStore, Resealed, SealedStore, SealedValue } from '../port.ts';
import { type Keyring, openKeyring, opensProof, proofOf, purposeAt } from './keyring.ts';
import { openLiveKeyring } from './live_keyring.ts';

/** A change of the master key: from the keys that are given now to the next one. */
export interface MasterKeyChange {
  readonly held: readonly Uint8Array[];
  readonly next: Uint8Array;
  /** Keeps these keys where processes read theirs, durably; nothing where the key is given by value. */
  readonly keep: (keys: readonly Uint8Array[]) => void;
  readonly store: SealedStore & Pick<AccessStore, 'keyChecks'>;
  readonly clock: Occasion;
}

export interface MasterKeyChanged {
  readonly keyId: string;
  /** The keys that have ended; none where there was nothing left to do. */
  readonly ended: readonly string[];
  readonly resealed: number;
}

/** Values that share a commit; others write in between. */
const BATCH = 500;
/** Others may seal by the old key until they hear of the next one. */
const ROUNDS_MAX = 100;

/**
 * Changes the master key while services run. At every moment all keys that a stored value names have a proof and stand
 * where processes read theirs, so it may be interrupted anywhere and run again:
 * the next key is kept beside the old ones; its proof is added; every value is sealed again; with the last of them the
 * old proofs go; the next key alone is kept. Throws Refusal with what to do.
 */
export async function changeMasterKey(change: MasterKeyChange): Promise<MasterKeyChanged> {
  const { held, next, keep, store, clock } = change;
  const target = openKeyring(next, clock);
  const keys = [next, ...held];
  const keyring = openLiveKeyring(keys, () => [], clock);
  const proofs = await store.keyChecks();
  const lost = proofs.find((proof) => !opensProof(keyring, proof));
  if (lost) throw keyMissing(lost.keyId);
  const ended = proofs.map(({ keyId }) => keyId).filter((keyId) => keyId !== target.keyId);
  if (ended.length > 0) keep(keys);
  if (!(await store.addKeyCheck(proofOf(target), clock.now()))) {
    keep(held);
    throw new Refusal('the master key is already being changed to another one: end that change first');
  }
  const resealed = await resealAll(store, { keyring, target, clock });
  keep([next]);
  return { keyId: target.keyId, ended, resealed };
}

function keyMissing(keyId: string): Refusal {
  return new Refusal(
    `the database asks for master key ${keyId}, which is not given: name its file by AUTHREALM_MASTER_KEY_FILE, ` +
      'or put it on a line of its own into the key file',
  );
}

/** Seals again until no value names another key and the other keys' proofs are gone. Answers how many values. */
async function resealAll(
  store: SealedStore,
  {
    keyring,
    target,
    clock,
  }: { readonly keyring: Keyring; readonly target: Keyring; readonly clock: Occasion },
): Promise<number> {
  let resealed = 0;
  const act = actOf('master-key.changed', { object: target.keyId, detail: {} }, clock);
  for (let round = 0; round < ROUNDS_MAX; round += 1) {
    resealed += await resealRound(store, keyring, target);
    if (await store.retireOtherKeys(target.keyId, act)) return resealed;
  }
  throw new Refusal('other commands keep sealing by the old master key: run this again when they have ended');
}

async function resealRound(store: SealedStore, keyring: Keyring, target: Keyring): Promise<number> {
  const closed: string[] = [];
  let resealed = 0;
  let values = await store.values(target.keyId, undefined, BATCH);
  while (values.length > 0) {
    const opened = values.map((value) => reseal(value, keyring, target));
    const ready = opened.filter((each) => each !== undefined);
    await store.replace(ready);
    resealed += ready.length;
    closed.push(...values.filter((_, at) => !opened[at]).map(nameOf));
    values = await store.values(target.keyId, values.at(-1)?.place, BATCH);
  }
  if (closed.length > 0) throw doNotOpen(closed);
  return resealed;
}

/** Undefined where the value does not open. */
function reseal({ place, sealed }: SealedValue, keyring: Keyring, target: Keyring): Resealed | undefined {
  try {
    const plain = keyring.open(purposeAt(place), place, sealed);
    return { place, seen: sealed, sealed: target.seal(purposeAt(place), place, plain) };
  } catch {
    return undefined;
  }
}

function nameOf({ place, sealed }: SealedValue): string {
  return `${place.table} ${place.id} (sealed by key ${keyIdOf(sealed)})`;
}

function doNotOpen(closed: readonly string[]): Refusal {
  return new Refusal(
    `${closed.length} sealed values do not open, so the old master key stays beside the new one: ` +
      `${closed.slice(0, 5).join(', ')}. Withdraw such a signing key, enter such a client secret again, then run this again`,
  );
}
