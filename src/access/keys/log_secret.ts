import { LOG_SECRET_BYTES, type LogKeys, openLogKeys } from '../../log/keys.ts';
import type { LogStore } from '../../log/store/reading.ts';
import { Refusal } from '../../model/fault.ts';
import { type Clock, NIL_UUID } from '../../model/id.ts';
import type { AuthStore } from '../store/access.ts';
import type { SecretLocation } from '../store/sealed.ts';
import type { Keyring } from './keyring.ts';

const NAME = 'log';
const PLACE: SecretLocation = { table: 'instance_secret', column: 'sealed', realm: NIL_UUID, id: NAME };

/**
 * Starts the audit log of this process. Its keys are derived from a secret of the installation that the first caller creates. It
 * survives changes of the master key, so chains and encrypted values do as well. Rejects if it does not decrypt.
 */
export async function startAuditLog(
  { access, log }: { readonly access: SecretStore; readonly log: Pick<LogStore, 'useKeys'> },
  keyring: Pick<Keyring, 'seal' | 'open'>,
  clock: Clock,
): Promise<LogKeys> {
  const find = () => findLogKeys(access, keyring, clock);
  const keys = (await find()) ?? (await createLogSecret(access, keyring, clock).then(find));
  if (!keys) throw new Error('the master key was changed while the audit log was started');
  log.useKeys(keys);
  return keys;
}

/** The log keys of a database; undefined if it has no log yet. */
export async function findLogKeys(
  store: Pick<AuthStore, 'secret'>,
  keyring: Pick<Keyring, 'open'>,
  clock: Clock,
): Promise<LogKeys | undefined> {
  const sealed = await store.secret(NAME);
  if (!sealed) return undefined;
  let secret: string;
  try {
    secret = keyring.open('instance-secret', PLACE, sealed);
  } catch (cause) {
    throw new Refusal(
      'the secret of the audit log cannot be decrypted with the master key, because it was changed: restore a backup',
      { cause },
    );
  }
  return openLogKeys(Buffer.from(secret, 'base64url'), clock);
}

type SecretStore = Pick<AuthStore, 'secret' | 'insertLogSecret'>;

async function createLogSecret(
  store: SecretStore,
  keyring: Pick<Keyring, 'seal'>,
  clock: Clock,
): Promise<void> {
  const secret = Buffer.from(clock.randomBytes(LOG_SECRET_BYTES)).toString('base64url');
  const sealed = keyring.seal('instance-secret', PLACE, secret);
  if ((await store.insertLogSecret(NAME, sealed, clock.now())) !== 'log exists') return;
  throw new Refusal(
    'the secret of the audit log is missing in this database, which has a log: restore a backup, because without it no entry ' +
      'can be verified',
  );
}
