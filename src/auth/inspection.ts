import type { Check, ClientRealm, Rows, Sheet } from '../doctor/inspection.ts';
import type { Clock } from '../domain/id.ts';
import { keyIdOf } from '../domain/text/ciphertext.ts';
import { type Keyring, opensProof, purposeAt } from './keys/keyring.ts';
import { keySetAt } from './keys/signing.ts';
import type { AccessStore, Client, SealedStore, SealedValue, SigningKey } from './port.ts';

/** What the checks of access look at. All of it is asked for only when it is needed, and may throw then. */
export interface AccessUnderInspection {
  readonly store: () => {
    readonly access: Pick<AccessStore, 'table' | 'signingKeys' | 'keyChecks'>;
    readonly sealed: Pick<SealedStore, 'values'>;
  };
  /** Throws Refusal where there is no key to be had. */
  readonly keyring: () => Keyring;
  readonly unknownRealms: () => Rows<ClientRealm>;
  readonly clock: Pick<Clock, 'now'>;
}

const BATCH = 500;

/** The checks of keys and clients. */
export function accessChecks(of: AccessUnderInspection): readonly Check[] {
  return [
    { name: 'master key', run: (sheet) => checkMasterKey(of, sheet) },
    { name: 'sealed values', run: (sheet) => checkSealed(of, sheet) },
    { name: 'signing keys', run: (sheet) => checkSigningKeys(of, sheet) },
    { name: 'clients', run: (sheet) => checkClients(of, sheet) },
  ];
}

async function checkMasterKey({ store, keyring }: AccessUnderInspection, sheet: Sheet): Promise<void> {
  const proofs = await store().access.keyChecks();
  if (proofs.length === 0)
    sheet.find({ says: 'the database has no master key yet: its first start makes one' });
  if (proofs.length > 1) {
    sheet.find({
      says: 'the master key is being changed: run authrealm keys rewrap again where it was interrupted',
    });
  }
  for (const proof of proofs) {
    sheet.fact(`the database asks for key ${proof.keyId}`);
    if (!opensProof(keyring(), proof))
      sheet.find({ says: `key ${proof.keyId} is not the one that is given` });
  }
}

async function checkSealed({ store, keyring }: AccessUnderInspection, sheet: Sheet): Promise<void> {
  const { sealed } = store();
  let count = 0;
  let values = await sealed.values(undefined, undefined, BATCH);
  while (values.length > 0) {
    for (const value of values) if (!opens(keyring(), value)) sheet.find(closed(value));
    count += values.length;
    values = await sealed.values(undefined, values.at(-1)?.place, BATCH);
  }
  sheet.fact(`${count} of them`);
}

function opens(keyring: Keyring, { place, sealed }: SealedValue): boolean {
  try {
    keyring.open(purposeAt(place), place, sealed);
    return true;
  } catch {
    return false;
  }
}

function closed({ place, sealed }: SealedValue) {
  const { table, column, realm, id } = place;
  return { says: `${column} does not open; it names key ${keyIdOf(sealed)}`, table, realm, ids: [id] };
}

async function checkSigningKeys({ store, clock }: AccessUnderInspection, sheet: Sheet): Promise<void> {
  const keys = await store().access.signingKeys();
  const { signer, accepted } = keySetAt(keys, clock.now());
  if (!signer) sheet.find({ says: 'no key signs: the next start makes one' });
  for (const key of keys) sheet.fact(`${key.kid} ${stateOf(key, signer, accepted)}`);
  if (signer && signer.privateSealed.length === 0) {
    sheet.find({ says: 'the private half is gone: rotate', table: 'signing_key', ids: [signer.kid] });
  }
}

function stateOf(key: SigningKey, signer: SigningKey | undefined, accepted: ReadonlyMap<string, SigningKey>) {
  if (key.kid === signer?.kid) return 'signs';
  if (key.withdrawnAt !== undefined) return 'withdrawn';
  if (!accepted.has(key.kid)) return 'retired';
  return key.signsFrom > (signer?.signsFrom ?? 0) ? 'signs later' : 'accepted';
}

async function checkClients({ store, unknownRealms }: AccessUnderInspection, sheet: Sheet): Promise<void> {
  const clients: readonly Client[] = (await store().access.table(undefined))?.clients ?? [];
  const disabled = clients.filter(({ disabledAt }) => disabledAt !== undefined).length;
  sheet.fact(`${clients.length}, of them ${disabled} disabled`);
  for await (const { clientId, realm } of unknownRealms()) {
    sheet.find({
      says: 'is limited to a realm that is not there',
      table: 'client_realm',
      realm,
      ids: [clientId],
    });
  }
}
