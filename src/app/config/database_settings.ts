import { parseDatabase, parsePostgres, postgresUrlError, urlWithoutPassword } from '../../ops/store/open.ts';
import { file, type SettingRow } from './setting.ts';
import { DEFAULT_SETTINGS_FILE } from './settings_file.ts';
import { choice, isNotEmpty } from './values.ts';

const URL_ROW = { value: 'URL', expectsFor: postgresUrlError, redact: urlWithoutPassword };

/** The settings of the database, which every command that opens it takes. */
export const DATABASE_ROWS = {
  config: file({
    file: 'public',
    doc: `file with settings, as NAME=value lines; default: ${DEFAULT_SETTINGS_FILE}, if it exists`,
    details:
      'Its grammar is that of an `EnvironmentFile` of systemd. Other users must not be able to write it.',
  }),
  database: {
    ...URL_ROW,
    defaultValue: 'sqlite:./authrealm.db',
    doc: 'URL of the database',
    details:
      'A SQLite file such as `./authrealm.db`, `sqlite::memory:`, or `postgres://USER@HOST:PORT/DATABASE`: see ' +
      '[PostgreSQL](../guides/postgresql.md). The variable may contain a password, the flag must not.',
    parse: parseDatabase,
    expects: 'a file such as ./authrealm.db, sqlite:PATH, or postgres://USER@HOST:PORT/DATABASE',
  },
  databasePasswordFile: file({
    file: 'secret',
    doc: 'file with the password of the role in --database; read at every new connection',
  }),
  migrateDatabase: {
    ...URL_ROW,
    doc: 'URL of the same PostgreSQL database for the role that owns its tables, which migrates the schema and grants privileges',
    details:
      'By default the role of `--database` does both. See [two roles](../guides/postgresql.md#two-roles).',
    parse: parsePostgres,
    expects: 'postgres://USER@HOST:PORT/DATABASE',
  },
  migrateDatabasePasswordFile: file({
    file: 'secret',
    doc: 'file with the password of the role in --migrate-database',
  }),
  masterKeyFile: file({
    file: 'secret',
    doc: 'file with the key that encrypts stored secrets; for SQLite, <database>.key is created by default',
    details: 'Required for PostgreSQL; `authrealm keys make` creates one.',
  }),
  previousMasterKeyFile: file({
    file: 'secret',
    doc: 'file with the previous master key, until `authrealm keys rewrap` has changed it',
    details: 'See [changing the master key](../guides/keys.md#change-the-master-key).',
  }),
  masterKey: {
    doc: 'the master key itself',
    details: '32 bytes as base64url or hex. Cannot be combined with the file.',
    secret: true as const,
    parse: isNotEmpty,
    expects: '32 bytes as base64url or hex',
  },
  migrate: {
    defaultValue: 'auto',
    doc: 'what to do with an older schema: migrate it (SQLite: after a copy), or refuse to start',
    details: 'The default is `check` for all commands except `serve` and `init`.',
    ...choice('auto', 'check'),
  },
} satisfies Readonly<Record<string, SettingRow<unknown>>>;

export const DATABASE_SETTINGS = Object.keys(DATABASE_ROWS) as readonly (keyof typeof DATABASE_ROWS)[];
