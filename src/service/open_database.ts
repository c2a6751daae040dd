import { resolve } from 'node:path';
import type { LogKeys } from '../audit/log_keys.ts';
import { findLogKeys, startAuditLog } from '../audit/log_secret.ts';
import { assertOpensAll } from '../auth/keys/keyring.ts';
import { assertKeyringMatches, type LiveKeyring, openLiveKeyring } from '../auth/keys/live_keyring.ts';
import {
  assertKeyConfigured,
  type MasterKeySource,
  obtainMasterKeys,
  obtainNextKey,
  replaceKeyFile,
  rereadMasterKeys,
} from '../auth/keys/master_key.ts';
import { changeMasterKey, type MasterKeyChanged } from '../auth/keys/rewrap.ts';
import { ensureSigningKey } from '../auth/keys/signing.ts';
import { masterKeySource, type Settings } from '../config/parse.ts';
import { Refusal } from '../domain/fault.ts';
import type { Clock } from '../domain/id.ts';
import { VERSION } from '../platform/version.ts';
import {
  addressName,
  closeQuietly,
  type Engine,
  inspectEngine,
  openEngine,
  reopenEngine,
  toRefusal,
} from '../store/open.ts';

/** A database and the keyring that opens its secrets: what every command works on. */
export interface OpenDatabase {
  readonly engine: Engine;
  readonly keyring: LiveKeyring;
  readonly logKeys: LogKeys;
  /** The key file this opening made, if it made one. */
  readonly keyFileMade: string | undefined;
}

/**
 * Opens the database, brings its schema up, proves the master key and makes sure there is a signing key. However many
 * processes do so at once, they end with the same database. Throws Refusal with what to do.
 */
export async function openDatabase(settings: Settings, clock: Clock): Promise<OpenDatabase> {
  const source = masterKeySource(settings);
  assertKeyConfigured(source);
  const engine = await openEngineFor(settings, clock);
  try {
    const hasProof = (await engine.access.keyChecks()).length > 0;
    const { keys, createdPath: made } = obtainMasterKeys(source, hasProof, clock);
    const keyring = openLiveKeyring(keys, () => rereadMasterKeys(source), clock);
    await assertKeyringMatches(keyring, engine.access, clock);
    const logKeys = await startAuditLog(engine, keyring, clock);
    await ensureSigningKey(engine.access, keyring, clock);
    return { engine, keyring, logKeys, keyFileMade: made };
  } catch (error) {
    await closeQuietly(engine);
    throw toRefusal(error, addressName(settings.database));
  }
}

/** Opens a database without its secrets. */
export function openEngineFor(settings: Settings, clock: Clock): Promise<Engine> {
  const { database, migrate, migrateDatabase } = settings;
  return openEngine(database, migrate, { version: VERSION, clock }, migrateDatabase);
}

/** Opens what another process has already made ready. */
export async function reopenDatabase(settings: Settings, clock: Clock): Promise<OpenDatabase> {
  const engine = await reopenEngine(settings.database, { version: VERSION, clock });
  try {
    const source = masterKeySource(settings);
    const { keys } = obtainMasterKeys(source, true, clock);
    const keyring = openLiveKeyring(keys, () => rereadMasterKeys(source), clock);
    keyring.activateNewest((await engine.access.keyChecks()).map(({ keyId }) => keyId));
    const logKeys = await startAuditLog(engine, keyring, clock);
    return { engine, keyring, logKeys, keyFileMade: undefined };
  } catch (error) {
    await closeQuietly(engine);
    throw toRefusal(error, addressName(settings.database));
  }
}

/** The keys that are given now, over no database in particular. Makes none. */
export function givenKeyring(settings: Settings, clock: Clock): LiveKeyring {
  return openLiveKeyring(obtainMasterKeys(masterKeySource(settings), true, clock).keys, () => [], clock);
}

/**
 * Throws Refusal unless the master keys of these settings are those of a database file. Makes none. Answers the keys of its
 * log; undefined where it has none yet.
 */
export async function proveKeysOf(
  settings: Settings,
  path: string,
  clock: Clock,
): Promise<LogKeys | undefined> {
  const database = await inspectEngine({ engine: 'sqlite', path });
  try {
    const { access } = database.accessOf();
    const proofs = await access.keyChecks();
    if (proofs.length === 0) return undefined;
    const keyring = givenKeyring(settings, clock);
    assertOpensAll(keyring, proofs);
    return await findLogKeys(access, keyring, clock);
  } finally {
    await database.close();
  }
}

/** The database of these settings, to be looked at and never written. */
export function inspect({ database }: Settings): ReturnType<typeof inspectEngine> {
  return inspectEngine(database);
}

/**
 * Changes the master key to the one in `nextKeyFile`, made there where the file does not exist, while others go on. The
 * key file in force gets the new key; a key given by value is the operator's to replace.
 */
export async function rewrap(
  settings: Settings,
  nextKeyFile: string,
  clock: Clock,
): Promise<MasterKeyChanged & { readonly isKeyMade: boolean; readonly source: MasterKeySource }> {
  const source = masterKeySource(settings);
  if (source.from === 'nowhere')
    throw new Refusal('the master key of an in-memory database cannot be replaced: it ends with its process');
  const keyFile = 'path' in source ? source.path : undefined;
  if (keyFile !== undefined && resolve(keyFile) === resolve(nextKeyFile)) {
    throw new Refusal(`${nextKeyFile} is the current key file: name another file for the new key`);
  }
  const engine = await openEngineFor(settings, clock);
  try {
    if ((await engine.access.keyChecks()).length === 0) {
      throw new Refusal('this database has no master key yet: its first start creates one');
    }
    const { keys: currentKeys } = obtainMasterKeys(source, true, clock);
    const keyring = openLiveKeyring(currentKeys, () => [], clock);
    await startAuditLog(engine, keyring, clock);
    const { key: next, isCreated: isMade } = obtainNextKey(nextKeyFile, clock);
    const changed = await changeMasterKey({
      currentKeys,
      nextKey: next,
      saveKeys: (keys) => keyFile !== undefined && replaceKeyFile(keyFile, keys, clock),
      store: { ...engine.sealed, keyChecks: engine.access.keyChecks },
      clock,
    });
    return { ...changed, isKeyMade: isMade, source };
  } finally {
    await engine.close();
  }
}
