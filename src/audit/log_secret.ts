import type { Keyring } from '../auth/keys/keyring.ts';
import type { AuthStore, SecretLocation } from '../auth/port.ts';
import { type Clock, NIL_UUID } from '../domain/id.ts';
import { LOG_SECRET_BYTES, type LogKeys, openLogKeys } from './log_keys.ts';
import type { LogStore } from './port.ts';

const NAME = 'log';
const PLACE: SecretLocation = { table: 'instance_secret', column: 'sealed', realm: NIL_UUID, id: NAME };

/**
 * From here on what is written is logged in full. However many processes do so at once: each chain begins
 * once.
 */
export async function startAuditLog(
  { access, log }: { readonly access: SecretStore; readonly log: Pick<LogStore, 'useKeys' | 'catchUp'> },
  keyring: Pick<Keyring, 'seal' | 'open'>,
  clock: Clock,
): Promise<LogKeys> {
  const keys = await obtainLogKeys(access, keyring, clock);
  log.useKeys(keys);
  await log.catchUp(clock.now());
  return keys;
}

/** The same of a database that is looked at; undefined where it has no log yet. */
export async function findLogKeys(
  store: Pick<AuthStore, 'secret'>,
  keyring: Pick<Keyring, 'open'>,
  clock: Clock,
): Promise<LogKeys | undefined> {
  const found = await store.secret(NAME);
  return found && openLogSecret(found, keyring, clock);
}

function openLogSecret(sealed: Uint8Array, keyring: Pick<Keyring, 'open'>, clock: Clock): LogKeys {
  return openLogKeys(Buffer.from(keyring.open('instance-secret', PLACE, sealed), 'base64url'), clock);
}

type SecretStore = Pick<AuthStore, 'secret' | 'insertSecret'>;

/**
 * The keys of the log, made of the secret that the installation keeps for it; the first who asks makes the
 * secret. It stays the same when the master key is changed, so chains and encrypted values outlive that.
 * Rejects where it does not open.
 */
export async function obtainLogKeys(
  store: SecretStore,
  keyring: Pick<Keyring, 'seal' | 'open'>,
  clock: Clock,
): Promise<LogKeys> {
  const found = (await store.secret(NAME)) ?? (await createLogSecret(store, keyring, clock));
  return openLogSecret(found, keyring, clock);
}

async function createLogSecret(
  store: SecretStore,
  keyring: Pick<Keyring, 'seal'>,
  clock: Clock,
): Promise<Uint8Array> {
  const secret = Buffer.from(clock.randomBytes(LOG_SECRET_BYTES)).toString('base64url');
  await store.insertSecret(NAME, keyring.seal('instance-secret', PLACE, secret), clock.now());
  const created = await store.secret(NAME);
  if (!created) throw new Error('the master key was changed while the log began');
  return created;
}
