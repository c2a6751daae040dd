import { existsSync } from 'node:fs';
import type { MasterKeySource } from '../../access/keys/master_key.ts';
import { type DatabaseAddress, fileOf, isInMemory } from '../../ops/store/open.ts';
import type { Settings } from './settings.ts';

/** Checks these settings against each other. Settings with an invalid value are undefined, and not checked. */
export function databaseContradictions(given: Partial<Settings>): readonly string[] {
  const { database, databasePasswordFile, migrateDatabase, migrateDatabasePasswordFile } = given;
  const isFile = database !== undefined && database.engine !== 'postgres';
  const found: (string | false)[] = [
    isFile && migrateDatabase !== undefined && needsServer('--migrate-database'),
    isFile && databasePasswordFile !== undefined && needsServer('--database-password-file'),
    migrateDatabasePasswordFile !== undefined &&
      migrateDatabase === undefined &&
      '--migrate-database-password-file needs --migrate-database',
    given.masterKey !== undefined &&
      given.masterKeyFile !== undefined &&
      'AUTHREALM_MASTER_KEY and AUTHREALM_MASTER_KEY_FILE are mutually exclusive',
    (given.processes ?? 1) > 1 &&
      database !== undefined &&
      isInMemory(database) &&
      'an in-memory database can be used by one process only: --processes must be 1',
    hasTwoPasswords(database, databasePasswordFile) && excluding('--database'),
    hasTwoPasswords(migrateDatabase, migrateDatabasePasswordFile) && excluding('--migrate-database'),
  ];
  return found.filter((message) => message !== false);
}

function needsServer(flag: string): string {
  return `${flag} is for PostgreSQL only, and --database is a SQLite database`;
}

function hasTwoPasswords(address: DatabaseAddress | undefined, file: string | undefined): boolean {
  return file !== undefined && address?.engine === 'postgres' && address.password !== undefined;
}

function excluding(flag: string): string {
  return `pass the password in the URL of ${flag} or in ${flag}-password-file, not in both`;
}

/** The file to which checkpoints are appended; undefined if there is none, as for a database in memory. */
export function checkpointFileOf(given: Pick<Settings, 'database' | 'checkpointFile'>): string | undefined {
  if (isInMemory(given.database)) return undefined;
  const file = fileOf(given.database);
  return given.checkpointFile ?? (file && `${file}.checkpoints`);
}

/** The file with the checkpoints and erasures of a database, if it exists. */
export function existingCheckpointFile(given: Parameters<typeof checkpointFileOf>[0]): string | undefined {
  const path = checkpointFileOf(given);
  return path !== undefined && existsSync(path) ? path : undefined;
}

/** Checks that no password is on the command line, which every user of the machine can read. */
export function passwordOnCommandLine(
  flag: string,
  address: DatabaseAddress | undefined,
  env?: string,
): readonly string[] {
  if (address?.engine !== 'postgres' || address.password === undefined) return [];
  const otherwise = env === undefined ? '' : `, or the URL in ${env}`;
  return [
    `--${flag} must not contain a password, which would be visible in the process list: pass --${flag}-password-file FILE${otherwise}`,
  ];
}

/** The addresses of the databases, with the files of their passwords. */
export function withPasswordFiles({
  database,
  databasePasswordFile,
  migrateDatabase,
  migrateDatabasePasswordFile,
}: Partial<Settings> & Pick<Settings, 'database'>): Partial<Settings> {
  return {
    ...(database.engine === 'postgres' && { database: { ...database, passwordFile: databasePasswordFile } }),
    ...(migrateDatabase && {
      migrateDatabase: { ...migrateDatabase, passwordFile: migrateDatabasePasswordFile },
    }),
  };
}

/** The source of the master key for these settings, and the file of the key before while it is being changed. */
export function masterKeySource({
  database,
  masterKey,
  masterKeyFile,
  previousMasterKeyFile: previousPath,
}: Partial<Settings> & Pick<Settings, 'database'>): MasterKeySource {
  if (masterKey !== undefined) return { from: 'value', value: masterKey, previousPath };
  if (masterKeyFile !== undefined) return { from: 'file', path: masterKeyFile, previousPath };
  const file = fileOf(database);
  if (file !== undefined) return { from: 'default', path: `${file}.key`, previousPath };
  return { from: isInMemory(database) ? 'nowhere' : 'operator' };
}
