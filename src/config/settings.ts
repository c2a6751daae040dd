import { type Network, parseNetwork } from '../domain/ip_address.ts';
import { LIMITS } from '../domain/limits.ts';
import type { Rate } from '../domain/token_buckets.ts';
import type { RequestLogging } from '../platform/log.ts';
import {
  type DatabaseAddress,
  type MigrateMode,
  type PostgresAddress,
  parseDatabase,
  parsePostgres,
  postgresUrlError,
  urlWithoutPassword,
} from '../store/open.ts';
import {
  integer,
  isNotEmpty,
  isTrue,
  listOf,
  oneOf,
  parseBaseUrl,
  parseOrigin,
  parseRate,
  parseRateOrOff,
  parseReceiver,
} from './values.ts';

/** A row of the settings table: the whole definition of a setting. */
export interface Setting<T> {
  /** `AUTHREALM_…`; a flag wins over it. */
  readonly env: string;
  /** Absent for secrets, which must not be visible in a process list. */
  readonly flag?: string;
  /** The placeholder of the value in help texts; absent for a switch. */
  readonly value?: string;
  /** The default, as it would be given; absent for a setting without one. */
  readonly defaultValue?: string;
  readonly doc: string;
  readonly secret?: true;
  /** Returns undefined for an invalid value; `expects` describes the valid ones. */
  readonly parse: (raw: string) => T | undefined;
  readonly expects: string;
  /** A more precise description for a value that is nearly valid. Repeats nothing of the value. */
  readonly expectsFor?: (raw: string) => string | undefined;
  /** The value without its secrets, to be displayed; default: the value itself. */
  readonly redact?: (raw: string) => string;
}

interface Defaulted<T> extends Setting<T> {
  readonly defaultValue: string;
}

/** A setting without a default. */
function optional<T>(row: Setting<T>): Setting<T> {
  return Object.freeze(row);
}

/** A setting that always has a value. */
function defaulted<T>(row: Defaulted<T>): Defaulted<T> {
  return Object.freeze(row);
}

type SettingHeader = Pick<Setting<unknown>, 'env' | 'flag' | 'doc'>;

/** A setting that names a file. */
function file(row: SettingHeader): Setting<string> {
  return optional({ ...row, value: 'FILE', parse: isNotEmpty, expects: 'a path' });
}

/** A switch, off by default. */
function toggle(row: SettingHeader): Defaulted<boolean> {
  return defaulted({ ...row, defaultValue: 'false', parse: isTrue, expects: 'true or false' });
}

const RATE = 'a number of requests and a number of seconds, such as 600/60';

/** The settings, in the order in which help texts list them. */
export const SETTINGS = {
  database: defaulted<DatabaseAddress>({
    env: 'AUTHREALM_DATABASE',
    flag: 'database',
    value: 'URL',
    defaultValue: 'sqlite:./authrealm.db',
    doc: 'URL of the database',
    parse: parseDatabase,
    expects: 'sqlite:PATH or postgres://USER@HOST:PORT/DATABASE',
    expectsFor: postgresUrlError,
    redact: urlWithoutPassword,
  }),
  databasePasswordFile: file({
    env: 'AUTHREALM_DATABASE_PASSWORD_FILE',
    flag: 'database-password-file',
    doc: 'file with the password of the role in --database; read at every new connection',
  }),
  migrateDatabase: optional<PostgresAddress>({
    env: 'AUTHREALM_MIGRATE_DATABASE',
    flag: 'migrate-database',
    value: 'URL',
    doc: 'URL of the same PostgreSQL database for the role that owns its tables, which migrates the schema and grants privileges',
    parse: parsePostgres,
    expects: 'postgres://USER@HOST:PORT/DATABASE',
    expectsFor: postgresUrlError,
    redact: urlWithoutPassword,
  }),
  migrateDatabasePasswordFile: file({
    env: 'AUTHREALM_MIGRATE_DATABASE_PASSWORD_FILE',
    flag: 'migrate-database-password-file',
    doc: 'file with the password of the role in --migrate-database',
  }),
  masterKeyFile: file({
    env: 'AUTHREALM_MASTER_KEY_FILE',
    flag: 'master-key-file',
    doc: 'file with the key that encrypts stored secrets; for SQLite, <database>.key is created by default',
  }),
  masterKey: optional<string>({
    env: 'AUTHREALM_MASTER_KEY',
    doc: 'the master key itself',
    secret: true,
    parse: isNotEmpty,
    expects: '32 bytes as base64url or hex',
  }),
  migrate: defaulted<MigrateMode>({
    env: 'AUTHREALM_MIGRATE',
    flag: 'migrate',
    value: 'auto|check|off',
    defaultValue: 'auto',
    doc: 'what to do with an older schema: migrate it (SQLite: after a copy), refuse to start, or ignore it',
    parse: oneOf('auto', 'check', 'off'),
    expects: 'auto, check or off',
  }),
  host: defaulted<string>({
    env: 'AUTHREALM_HOST',
    flag: 'host',
    value: 'HOST',
    defaultValue: '127.0.0.1',
    doc: 'address to listen on',
    parse: isNotEmpty,
    expects: 'an address',
  }),
  port: defaulted<number>({
    env: 'AUTHREALM_PORT',
    flag: 'port',
    value: 'PORT',
    defaultValue: '8080',
    doc: 'port to listen on; 0 chooses a free port',
    parse: integer(0, 65_535),
    expects: 'a number from 0 to 65535',
  }),
  baseUrl: optional<string>({
    env: 'AUTHREALM_BASE_URL',
    flag: 'base-url',
    value: 'URL',
    doc: 'URL under which clients reach the service, with its path prefix if it has one; used in links and tokens',
    parse: parseBaseUrl,
    expects:
      'an http or https URL, its path of letters, digits and . _ ~ - only, without query, fragment or userinfo',
  }),
  processes: defaulted<number>({
    env: 'AUTHREALM_PROCESSES',
    flag: 'processes',
    value: 'N',
    defaultValue: '1',
    doc: 'number of processes that share the port',
    parse: integer(1, LIMITS.processesMax),
    expects: `a number from 1 to ${LIMITS.processesMax}`,
  }),
  tlsCert: file({
    env: 'AUTHREALM_TLS_CERT',
    flag: 'tls-cert',
    doc: 'certificate chain (PEM), to serve https',
  }),
  tlsKey: file({
    env: 'AUTHREALM_TLS_KEY',
    flag: 'tls-key',
    doc: 'private key of the certificate (PEM)',
  }),
  behindProxy: toggle({
    env: 'AUTHREALM_BEHIND_PROXY',
    flag: 'behind-proxy',
    doc: 'a proxy terminates TLS: allow plain http on an address that is not loopback',
  }),
  trustedProxies: defaulted<readonly Network[]>({
    env: 'AUTHREALM_TRUSTED_PROXY',
    flag: 'trusted-proxy',
    value: 'CIDR',
    defaultValue: '',
    doc: 'trusted proxy networks (CIDR), separated by spaces or commas; default: none',
    parse: listOf(parseNetwork),
    expects: 'networks such as 10.0.0.0/8 or 2001:db8::/32, or addresses',
  }),
  forwardedHeader: defaulted<'x-forwarded-for' | 'forwarded'>({
    env: 'AUTHREALM_FORWARDED_HEADER',
    flag: 'forwarded-header',
    value: 'HEADER',
    defaultValue: 'x-forwarded-for',
    doc: 'header in which trusted proxies send the client address: x-forwarded-for or forwarded',
    parse: oneOf('x-forwarded-for', 'forwarded'),
    expects: 'x-forwarded-for or forwarded',
  }),
  clientRate: optional<Rate>({
    env: 'AUTHREALM_CLIENT_RATE',
    flag: 'client-rate',
    value: 'N/SECONDS',
    doc: 'request limit for each client: N requests in SECONDS; default: no limit',
    parse: parseRate,
    expects: RATE,
  }),
  addressRate: optional<Rate>({
    env: 'AUTHREALM_ADDRESS_RATE',
    flag: 'address-rate',
    value: 'N/SECONDS',
    doc: 'request limit for each client address: N requests in SECONDS; default: no limit',
    parse: parseRate,
    expects: RATE,
  }),
  badTokenRate: defaulted<Rate | 'off'>({
    env: 'AUTHREALM_BAD_TOKEN_RATE',
    flag: 'bad-token-rate',
    value: 'N/SECONDS|off',
    defaultValue: '100/60',
    doc: 'limit of failed authentication attempts for each client address: N attempts in SECONDS',
    parse: parseRateOrOff,
    expects: `${RATE}, or off`,
  }),
  corsOrigins: defaulted<readonly string[]>({
    env: 'AUTHREALM_CORS_ORIGINS',
    flag: 'cors-origins',
    value: 'ORIGINS',
    defaultValue: '',
    doc: 'origins that may call the service from a browser, separated by spaces or commas; default: none',
    parse: listOf(parseOrigin),
    expects: 'origins such as https://shop.example',
  }),
  tokenLifetime: defaulted<number>({
    env: 'AUTHREALM_TOKEN_LIFETIME',
    flag: 'token-lifetime',
    value: 'SECONDS',
    defaultValue: '3600',
    doc: 'lifetime of an access token, in seconds',
    parse: integer(60, LIMITS.tokenLifetimeSecondsMax),
    expects: `a number from 60 to ${LIMITS.tokenLifetimeSecondsMax}`,
  }),
  passwordMemory: defaulted<number>({
    env: 'AUTHREALM_PASSWORD_MEMORY',
    flag: 'password-memory',
    value: 'KIB',
    defaultValue: '19456',
    doc: 'memory to hash a password (argon2id), in KiB',
    parse: integer(1, 262_144),
    expects: 'a number of KiB up to 262144',
  }),
  passwordPasses: defaulted<number>({
    env: 'AUTHREALM_PASSWORD_PASSES',
    flag: 'password-passes',
    value: 'N',
    defaultValue: '2',
    doc: 'passes over that memory to hash a password (argon2id)',
    parse: integer(1, 10),
    expects: 'a number from 1 to 10',
  }),
  pageLength: defaulted<number>({
    env: 'AUTHREALM_PAGE_LENGTH',
    flag: 'page-length',
    value: 'N',
    defaultValue: '25',
    doc: 'default number of records in a page of a list',
    parse: integer(1, LIMITS.pageRecordsMax),
    expects: `a number from 1 to ${LIMITS.pageRecordsMax}`,
  }),
  offline: toggle({
    env: 'AUTHREALM_OFFLINE',
    flag: 'offline',
    doc: 'call no identity provider: the issuer of an OIDC profile is its discovery URL without the well-known suffix',
  }),
  allowLoopbackDiscovery: toggle({
    env: 'AUTHREALM_ALLOW_LOOPBACK_DISCOVERY',
    flag: 'allow-loopback-discovery',
    doc: 'allow identity providers on this machine, by http too; for tests',
  }),
  allowLoopbackWebhooks: toggle({
    env: 'AUTHREALM_ALLOW_LOOPBACK_WEBHOOKS',
    flag: 'allow-loopback-webhooks',
    doc: 'allow webhook targets and --checkpoint-url on this machine, by http too; for tests',
  }),
  retentionDays: defaulted<number>({
    env: 'AUTHREALM_RETENTION_DAYS',
    flag: 'retention-days',
    value: 'DAYS',
    defaultValue: '90',
    doc: 'days to keep changes, log entries, deliveries and dead letters',
    parse: integer(1, LIMITS.retentionDaysMax),
    expects: `a number from 1 to ${LIMITS.retentionDaysMax}`,
  }),
  strictIssuers: toggle({
    env: 'AUTHREALM_STRICT_ISSUERS',
    flag: 'strict-issuers',
    doc: 'reject an OIDC profile info whose issuer differs from that of its profile',
  }),
  issuersFile: file({
    env: 'AUTHREALM_ISSUERS_FILE',
    flag: 'issuers-file',
    doc: 'JSON file with external OpenID providers whose access tokens are accepted, and the rights they give',
  }),
  noConsole: toggle({
    env: 'AUTHREALM_NO_CONSOLE',
    flag: 'no-console',
    doc: 'do not serve the console at /console and the rendered OpenAPI document at /docs',
  }),
  consoleClientCredentials: toggle({
    env: 'AUTHREALM_CONSOLE_CLIENT_CREDENTIALS',
    flag: 'console-client-credentials',
    doc: 'let people sign in to the console with client credentials, which it keeps in memory only',
  }),
  requestLogging: defaulted<RequestLogging>({
    env: 'AUTHREALM_LOG_REQUESTS',
    flag: 'log-requests',
    value: 'off|sampled|full',
    defaultValue: 'off',
    doc: 'requests to log: none, one in a hundred, or all; failures are always logged',
    parse: oneOf('off', 'sampled', 'full'),
    expects: 'off, sampled or full',
  }),
  metricsPort: optional<number>({
    env: 'AUTHREALM_METRICS_PORT',
    flag: 'metrics-port',
    value: 'PORT',
    doc: 'port to serve Prometheus metrics on; 0 chooses a free port; default: no metrics',
    parse: integer(0, 65_535),
    expects: 'a number from 0 to 65535',
  }),
  metricsHost: defaulted<string>({
    env: 'AUTHREALM_METRICS_HOST',
    flag: 'metrics-host',
    value: 'HOST',
    defaultValue: '127.0.0.1',
    doc: 'address to serve metrics on, without a token',
    parse: isNotEmpty,
    expects: 'an address',
  }),
  checkpointFile: file({
    env: 'AUTHREALM_CHECKPOINT_FILE',
    flag: 'checkpoint-file',
    doc: 'append audit checkpoints and erasures to this file every minute; for SQLite, default: <database>.checkpoints',
  }),
  checkpointUrl: optional<string>({
    env: 'AUTHREALM_CHECKPOINT_URL',
    flag: 'checkpoint-url',
    value: 'URL',
    doc: 'send audit checkpoints and erasures to this URL by POST, in addition to the file',
    parse: parseReceiver,
    expects: 'an https URL without userinfo and fragment',
    redact: (raw) => raw.replace(/\?.*/, '?…'),
  }),
  bootstrapClientFile: file({
    env: 'AUTHREALM_BOOTSTRAP_CLIENT_FILE',
    flag: 'bootstrap-client-file',
    doc: 'JSON file with a client to create or update at each start: client_id, client_secret, name, scope, realms',
  }),
} as const;

export type SettingName = keyof typeof SETTINGS;

/** Settings of the database; every command that opens it takes them. */
export const DATABASE_SETTINGS = [
  'database',
  'databasePasswordFile',
  'migrateDatabase',
  'migrateDatabasePasswordFile',
  'masterKeyFile',
  'masterKey',
  'migrate',
] as const;

/** Settings of the destinations of checkpoints and erasures. */
export const CHECKPOINT_SINK_SETTINGS = ['checkpointFile', 'checkpointUrl', 'allowLoopbackWebhooks'] as const;

type ValueOf<S> = S extends Defaulted<infer T> ? T : S extends Setting<infer T> ? T | undefined : never;

/** The values of all settings. A setting without a default may be undefined. */
export type Settings = { readonly [N in SettingName]: ValueOf<(typeof SETTINGS)[N]> };
