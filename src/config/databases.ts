import type { MasterKeySource } from '../auth/keys/master_key.ts';
import { type DatabaseAddress, fileOf, isInMemory, type PostgresAddress } from '../store/open.ts';

/** What settings say about databases, their passwords and their master key. */
export interface DatabaseSettings {
  readonly database: DatabaseAddress;
  readonly databasePasswordFile: string | undefined;
  /** As the role that owns the schema. */
  readonly migrateDatabase: PostgresAddress | undefined;
  readonly migrateDatabasePasswordFile: string | undefined;
  readonly masterKey: string | undefined;
  readonly masterKeyFile: string | undefined;
  readonly processes: number;
}

type Given = { readonly [N in keyof DatabaseSettings]?: DatabaseSettings[N] | undefined };

/** What of it does not go together; a setting that could not be read takes no part. */
export function databaseContradictions(given: Given): readonly string[] {
  const { database, databasePasswordFile, migrateDatabase, migrateDatabasePasswordFile } = given;
  const isFile = database !== undefined && database.engine !== 'postgres';
  const found: (string | false)[] = [
    isFile && migrateDatabase !== undefined && needsServer('--migrate-database'),
    isFile && databasePasswordFile !== undefined && needsServer('--database-password-file'),
    migrateDatabasePasswordFile !== undefined &&
      migrateDatabase === undefined &&
      '--migrate-database-password-file goes together with --migrate-database',
    given.masterKey !== undefined &&
      given.masterKeyFile !== undefined &&
      'AUTHREALM_MASTER_KEY and AUTHREALM_MASTER_KEY_FILE exclude each other',
    (given.processes ?? 1) > 1 &&
      database !== undefined &&
      isInMemory(database) &&
      'a database in memory belongs to one process: --processes must be 1',
    hasTwoPasswords(database, databasePasswordFile) && excluding('--database'),
    hasTwoPasswords(migrateDatabase, migrateDatabasePasswordFile) && excluding('--migrate-database'),
  ];
  return found.filter((says) => says !== false);
}

function needsServer(flag: string): string {
  return `${flag} goes with a PostgreSQL database alone, and --database names a SQLite one`;
}

function hasTwoPasswords(address: DatabaseAddress | undefined, file: string | undefined): boolean {
  return file !== undefined && address?.engine === 'postgres' && address.password !== undefined;
}

function excluding(flag: string): string {
  return `a password in the URL of ${flag} and ${flag}-password-file exclude each other`;
}

/** The file that is told how far the logs are; undefined where the log of the service alone is. */
export function checkpointFileOf(given: {
  readonly database: DatabaseAddress;
  readonly checkpointFile: string | undefined;
}): string | undefined {
  const file = fileOf(given.database);
  return given.checkpointFile ?? (file && `${file}.checkpoints`);
}

/** Complains about a password on the command line, where everybody on the machine can read it. */
export function disclosure(
  flag: string,
  env: string,
  address: DatabaseAddress | undefined,
): readonly string[] {
  if (address?.engine !== 'postgres' || address.password === undefined) return [];
  return [
    `--${flag} must not hold a password, which would stand in the list of processes: give --${flag}-password-file FILE, ` +
      `or the URL by ${env}`,
  ];
}

/** Databases that know the files of their passwords. */
export function withPasswordFiles({
  database,
  databasePasswordFile,
  migrateDatabase,
  migrateDatabasePasswordFile,
}: Given & Pick<DatabaseSettings, 'database'>): Partial<DatabaseSettings> {
  return {
    ...(database.engine === 'postgres' && { database: { ...database, passwordFile: databasePasswordFile } }),
    ...(migrateDatabase && {
      migrateDatabase: { ...migrateDatabase, passwordFile: migrateDatabasePasswordFile },
    }),
  };
}

/** Where the master key is to be found for these settings. */
export function masterKeySource({
  database,
  masterKey,
  masterKeyFile,
}: Given & Pick<DatabaseSettings, 'database'>): MasterKeySource {
  if (masterKey !== undefined) return { from: 'value', value: masterKey };
  if (masterKeyFile !== undefined) return { from: 'file', path: masterKeyFile };
  const file = fileOf(database);
  if (file !== undefined) return { from: 'beside', path: `${file}.key` };
  return { from: isInMemory(database) ? 'nowhere' : 'operator' };
}
