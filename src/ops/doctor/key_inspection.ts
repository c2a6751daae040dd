import { type Keyring, opensKeyCheck, opensValue, sealedPages } from '../../access/keys/keyring.ts';
import { keySetAt, signingKeyState } from '../../access/keys/signing.ts';
import type { AuthStore } from '../../access/store/access.ts';
import type { Client } from '../../access/store/clients.ts';
import type { SealedStore } from '../../access/store/sealed.ts';
import type { Clock } from '../../model/id.ts';
import { ciphertextKeyId } from '../../model/text/ciphertext.ts';
import type { Check, CheckReporter } from './inspection.ts';

/** Dependencies of the checks; each is evaluated when a check needs it, and may throw then. */
export interface AuthInspectionDeps {
  readonly store: () => {
    readonly access: Pick<AuthStore, 'state' | 'signingKeys' | 'keyChecks'>;
    readonly sealed: Pick<SealedStore, 'values'>;
  };
  /** Throws Refusal if no master key is available. */
  readonly keyring: () => Keyring;
  readonly clock: Pick<Clock, 'now'>;
}

export function authChecks(deps: AuthInspectionDeps): readonly Check[] {
  return [
    { name: 'master key', run: (reporter) => checkMasterKey(deps, reporter) },
    { name: 'sealed values', run: (reporter) => checkSealed(deps, reporter) },
    { name: 'signing keys', run: (reporter) => checkSigningKeys(deps, reporter) },
    { name: 'clients', run: (reporter) => checkClients(deps, reporter) },
  ];
}

const NO_KEY_YET = 'the database has no master key yet: the first start creates one';
/** What checkers report about a database with sealed values and no key check. */
export const PROOF_REMOVED =
  'the proof of the master key was removed from the database: the next start with the right key stores it again';

async function checkMasterKey(
  { store, keyring }: AuthInspectionDeps,
  reporter: CheckReporter,
): Promise<void> {
  const { access, sealed } = store();
  const keyChecks = await access.keyChecks();
  if (keyChecks.length === 0) {
    const isUsed = (await sealed.values(undefined, undefined, 1)).length > 0;
    reporter.find({ says: isUsed ? PROOF_REMOVED : NO_KEY_YET });
  }
  if (keyChecks.length > 1) {
    reporter.find({
      says: 'the master key is being changed: run "authrealm keys rewrap" again if it was interrupted',
    });
  }
  for (const keyCheck of keyChecks) {
    reporter.fact(`the database requires key ${keyCheck.keyId}`);
    if (!opensKeyCheck(keyring(), keyCheck))
      reporter.find({ says: `key ${keyCheck.keyId} is not the configured master key` });
  }
}

async function checkSealed({ store, keyring }: AuthInspectionDeps, reporter: CheckReporter): Promise<void> {
  let count = 0;
  for await (const values of sealedPages(store().sealed)) {
    for (const value of values) {
      if (opensValue(keyring(), value)) continue;
      const { table, column, realm, id } = value.location;
      const says = `${column} cannot be decrypted; it was encrypted with key ${ciphertextKeyId(value.sealed)}`;
      reporter.find({ says, table, realm, ids: [id] });
    }
    count += values.length;
  }
  reporter.fact(`${count} of them`);
}

async function checkSigningKeys(
  { store, clock }: AuthInspectionDeps,
  reporter: CheckReporter,
): Promise<void> {
  const keys = await store().access.signingKeys();
  const keySet = keySetAt(keys, clock.now());
  const { signer } = keySet;
  if (!signer) reporter.find({ says: 'no signing key is active: the next start creates one' });
  for (const key of keys) {
    const state = signingKeyState(key, keySet);
    reporter.fact(`${key.kid} ${state === 'next' ? 'signs later' : state}`);
  }
  if (signer && signer.privateSealed.length === 0) {
    reporter.find({
      says: 'the private key is missing: rotate the signing key',
      table: 'signing_key',
      ids: [signer.kid],
    });
  }
}

const UNADDRESSED =
  'signs in end users without their addresses, so that passwords are guessed from any number of them: prefer ' +
  '--end-user-address header';

async function checkClients({ store }: AuthInspectionDeps, reporter: CheckReporter): Promise<void> {
  const clients: readonly Client[] = (await store().access.state(undefined))?.clients ?? [];
  const disabled = clients.filter(({ disabledAt }) => disabledAt !== undefined).length;
  reporter.fact(`${clients.length}, of them ${disabled} disabled`);
  for (const { clientId, scopes, endUserAddress } of clients) {
    if (scopes.has('sign-in') && endUserAddress === 'none')
      reporter.note({ says: UNADDRESSED, ids: [clientId] });
  }
}
