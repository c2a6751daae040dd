import {
  assertKeyringMatches,
  assertOpensAll,
  assertOpensSealed,
  type Keyring,
  openKeyring,
} from '../access/keys/keyring.ts';
import { findLogKeys, startAuditLog } from '../access/keys/log_secret.ts';
import { assertKeyConfigured, obtainMasterKeys, readMasterKeys } from '../access/keys/master_key.ts';
import { changeMasterKey, type MasterKeyChanged } from '../access/keys/rewrap.ts';
import { ensureSigningKey } from '../access/keys/signing.ts';
import type { LogKeys } from '../log/keys.ts';
import { Refusal } from '../model/fault.ts';
import type { Clock } from '../model/id.ts';
import { VERSION } from '../model/version.ts';
import {
  addressName,
  closeQuietly,
  type Engine,
  fileOf,
  fileSize,
  inspectEngine,
  isFileUsed,
  openEngine,
  type Program,
  reopenEngine,
  toRefusal,
  withRollback,
} from '../ops/store/open.ts';
import { checkpointFileOf, masterKeySource, type Settings } from './config/parse.ts';

/** A database and the keyring that decrypts its secrets. */
export interface OpenDatabase {
  readonly engine: Engine;
  readonly keyring: Keyring;
  readonly logKeys: LogKeys;
  /** The key file, if it was created now. */
  readonly createdKeyFile: string | undefined;
}

/**
 * Opens the database: checks the master key, migrates the schema and creates the first signing key. Concurrent processes
 * all open the same result. A missing database is created if the settings say so, unless a file of an earlier one exists and
 * `replacesLost` is not set. Throws Refusal, and has changed nothing in a file then that another key sealed.
 */
export async function openDatabase(
  settings: Settings,
  clock: Clock,
  replacesLost = false,
  onMigrated?: Program['onMigrated'],
): Promise<OpenDatabase> {
  assertKeyConfigured(masterKeySource(settings));
  const path = fileOf(settings.database);
  // Only read: to open the file for writing may migrate it, and moves its log into it.
  if (path !== undefined && fileSize(path) > 0)
    await withRollback(path, async () => {
      // A first start that was killed, or still runs, leaves a file without tables.
      if (await isFileUsed(path)) await assertKeysOf(settings, path, clock);
    });
  return startDatabase(await openEngineFor(settings, clock, replacesLost, onMigrated), settings, clock);
}

/** Checks the master key of an opened engine, and starts its log. Concurrent processes agree on what is created. */
async function startDatabase(engine: Engine, settings: Settings, clock: Clock): Promise<OpenDatabase> {
  try {
    const hasKeyCheck = (await engine.access.keyChecks()).length > 0;
    const { keys, createdPath } = obtainMasterKeys(masterKeySource(settings), hasKeyCheck, clock);
    const keyring = openKeyring(keys, clock);
    await assertKeyringMatches(keyring, engine.access, engine.sealed, clock);
    const logKeys = await startAuditLog(engine, keyring, clock);
    await ensureSigningKey(engine.access, keyring, clock);
    return { engine, keyring, logKeys, createdKeyFile: createdPath };
  } catch (error) {
    await closeQuietly(engine);
    throw toRefusal(error, addressName(settings.database));
  }
}

/** Opens the database for one piece of work, and closes it afterwards. */
export async function withDatabase<T>(
  settings: Settings,
  clock: Clock,
  use: (db: OpenDatabase) => Promise<T>,
  replacesLost = false,
): Promise<T> {
  const db = await openDatabase(settings, clock, replacesLost);
  try {
    const result = await use(db);
    await db.engine.close();
    return result;
  } catch (error) {
    await closeQuietly(db.engine);
    throw error;
  }
}

/** Opens a database without its secrets. */
export function openEngineFor(
  settings: Settings,
  clock: Clock,
  replacesLost = false,
  onMigrated?: Program['onMigrated'],
): Promise<Engine> {
  const { database, migrate, migrateDatabase } = settings;
  // Looked for before the database, because a concurrent first start creates them after it.
  const missingDatabase = missingDatabaseOf(settings, replacesLost);
  const program = { version: VERSION, clock, missingDatabase, onMigrated };
  return openEngine(database, migrate, program, migrateDatabase);
}

/** The Refusal for a missing or empty database; undefined where it is to be created. */
export function missingDatabaseOf(settings: Settings, replacesLost = false): Refusal | undefined {
  const earlier = replacesLost ? undefined : fileOfEarlierDatabase(settings);
  if (earlier === undefined && settings.createsDatabase) return undefined;
  const advice =
    earlier === undefined
      ? ': pass the one of the service with --database, or create it with "authrealm init" or "authrealm serve"'
      : `, but ${earlier} belongs to an earlier database: mount its volume or restore a backup, or run "authrealm init" ` +
        'to create a new database';
  return new Refusal(`the database ${addressName(settings.database)} is missing or empty${advice}`);
}

/**
 * A file that only a database writes that existed: checkpoints, or the key file next to it. A key that the operator provides
 * shows nothing, because every first start has it.
 */
function fileOfEarlierDatabase(settings: Settings): string | undefined {
  const checkpoints = checkpointFileOf(settings);
  if (checkpoints !== undefined && fileSize(checkpoints) > 0) return checkpoints;
  const source = masterKeySource(settings);
  return source.from === 'default' && fileSize(source.path) > 0 ? source.path : undefined;
}

/** Opens a database that the parent process has opened before. */
export async function reopenDatabase(settings: Settings, clock: Clock): Promise<OpenDatabase> {
  return startDatabase(await reopenEngine(settings.database), settings, clock);
}

/** A keyring of the configured master keys, which must exist. */
export function givenKeyring(settings: Settings, clock: Clock): Keyring {
  return openKeyring(readMasterKeys(masterKeySource(settings)), clock);
}

/**
 * Throws Refusal unless the configured master keys, which must exist, are those of a database file. Returns the keys of
 * its audit log; undefined if it has none yet.
 */
export async function assertKeysOf(
  settings: Settings,
  path: string,
  clock: Clock,
): Promise<LogKeys | undefined> {
  const database = await inspectEngine({ engine: 'sqlite', path });
  try {
    return await logKeysOf(settings, database, clock);
  } finally {
    await database.close();
  }
}

/** The keys of the log of an inspected database; undefined if it has none. Throws Refusal for another master key. */
async function logKeysOf(
  settings: Settings,
  database: Pick<Awaited<ReturnType<typeof inspectEngine>>, 'accessOf'>,
  clock: Clock,
): Promise<LogKeys | undefined> {
  const { access, sealed } = database.accessOf();
  const keyChecks = await access.keyChecks();
  const isUnused = keyChecks.length === 0 && (await sealed.values(undefined, undefined, 1)).length === 0;
  if (isUnused) return undefined;
  const keyring = givenKeyring(settings, clock);
  assertOpensAll(keyring, keyChecks);
  if (keyChecks.length === 0) await assertOpensSealed(keyring, sealed);
  return findLogKeys(access, keyring, clock);
}

/** Opens a read-only view of a database with a log, and the keys of the log. Throws Refusal. */
export async function inspectLog(settings: Settings, clock: Clock) {
  const database = await inspectEngine(settings.database);
  try {
    const logKeys = await logKeysOf(settings, database, clock);
    if (!logKeys) throw new Refusal('this database has no audit log yet: its first start begins it');
    return { database, logKeys };
  } catch (error) {
    await database.close();
    throw toRefusal(error, addressName(settings.database));
  }
}

/** Changes the master key from the previous to the current one of the settings, while processes with both keep running. */
export async function rewrap(settings: Settings, clock: Clock): Promise<MasterKeyChanged> {
  const engine = await openEngineFor(settings, clock);
  try {
    const keys = readMasterKeys(masterKeySource(settings));
    const keyChecks = await engine.access.keyChecks();
    if (keyChecks.length === 0)
      throw new Refusal('this database has no master key yet: its first start creates one');
    const keyring = openKeyring(keys, clock);
    assertOpensAll(keyring, keyChecks);
    keyring.activateNewest(keyChecks.map(({ keyId }) => keyId));
    await startAuditLog(engine, keyring, clock);
    const store = { ...engine.sealed, keyChecks: engine.access.keyChecks };
    return await changeMasterKey({ keys, store, clock });
  } finally {
    await engine.close();
  }
}
