import { type Network, parseNetwork } from '../domain/ip_address.ts';
import { LIMITS } from '../domain/limits.ts';
import type { Rate } from '../domain/token_buckets.ts';
import type { RequestLogging } from '../platform/log.ts';
import {
  complaintAboutPostgres,
  type DatabaseAddress,
  type MigrateMode,
  type PostgresAddress,
  parseDatabase,
  parsePostgres,
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

/** One row of the settings table: everything there is to know about a setting, in one place. */
export interface Setting<T> {
  /** `AUTHREALM_…`; a flag wins over it. */
  readonly env: string;
  /** Absent for secrets: they never stand in a process list. */
  readonly flag?: string;
  /** The value's name in help texts; absent for a switch. */
  readonly value?: string;
  /** Parsed like any given value; absent where the setting is absent unless given. */
  readonly fallback?: string;
  readonly doc: string;
  readonly secret?: true;
  /** Answers undefined for what it cannot read; `expects` then says what it should have been. */
  readonly parse: (raw: string) => T | undefined;
  readonly expects: string;
  /** Says it better of a value that is nearly right, and repeats nothing of it. */
  readonly complaint?: (raw: string) => string | undefined;
  /** The value as it may be shown; itself unless said. */
  readonly told?: (raw: string) => string;
}

interface Defaulted<T> extends Setting<T> {
  readonly fallback: string;
}

/** A setting that is absent unless given. */
function optional<T>(row: Setting<T>): Setting<T> {
  return Object.freeze(row);
}

/** A setting that always has a value. */
function defaulted<T>(row: Defaulted<T>): Defaulted<T> {
  return Object.freeze(row);
}

type Named = Pick<Setting<unknown>, 'env' | 'flag' | 'doc'>;

/** A setting that names a file. */
function file(row: Named): Setting<string> {
  return optional({ ...row, value: 'FILE', parse: isNotEmpty, expects: 'a path' });
}

/** A switch that is off unless given. */
function toggle(row: Named): Defaulted<boolean> {
  return defaulted({ ...row, fallback: 'false', parse: isTrue, expects: 'true or false' });
}

const RATE = 'a number of requests and of seconds such as 600/60';

/** The settings, in the order in which help texts list them. */
export const SETTINGS = {
  database: defaulted<DatabaseAddress>({
    env: 'AUTHREALM_DATABASE',
    flag: 'database',
    value: 'URL',
    fallback: 'sqlite:./authrealm.db',
    doc: 'where the records are',
    parse: parseDatabase,
    expects: 'sqlite:PATH or postgres://USER@HOST:PORT/DATABASE',
    complaint: complaintAboutPostgres,
    told: urlWithoutPassword,
  }),
  databasePasswordFile: file({
    env: 'AUTHREALM_DATABASE_PASSWORD_FILE',
    flag: 'database-password-file',
    doc: 'file with the password of the role that --database names; read at every new connection',
  }),
  migrateDatabase: optional<PostgresAddress>({
    env: 'AUTHREALM_MIGRATE_DATABASE',
    flag: 'migrate-database',
    value: 'URL',
    doc: 'the same PostgreSQL database as the role that owns its tables: it brings the schema up and grants its use',
    parse: parsePostgres,
    expects: 'postgres://USER@HOST:PORT/DATABASE',
    complaint: complaintAboutPostgres,
    told: urlWithoutPassword,
  }),
  migrateDatabasePasswordFile: file({
    env: 'AUTHREALM_MIGRATE_DATABASE_PASSWORD_FILE',
    flag: 'migrate-database-password-file',
    doc: 'file with the password of the role that --migrate-database names',
  }),
  masterKeyFile: file({
    env: 'AUTHREALM_MASTER_KEY_FILE',
    flag: 'master-key-file',
    doc: 'file with the key that seals every stored secret; on SQLite made as <database>.key unless given',
  }),
  masterKey: optional<string>({
    env: 'AUTHREALM_MASTER_KEY',
    doc: 'the same key itself',
    secret: true,
    parse: isNotEmpty,
    expects: '32 bytes as base64url or hex',
  }),
  migrate: defaulted<MigrateMode>({
    env: 'AUTHREALM_MIGRATE',
    flag: 'migrate',
    value: 'auto|check|off',
    fallback: 'auto',
    doc: 'what to do about an older schema: bring it up (a copy is kept), refuse, or nothing',
    parse: oneOf('auto', 'check', 'off'),
    expects: 'auto, check or off',
  }),
  host: defaulted<string>({
    env: 'AUTHREALM_HOST',
    flag: 'host',
    value: 'HOST',
    fallback: '127.0.0.1',
    doc: 'address to listen on',
    parse: isNotEmpty,
    expects: 'an address',
  }),
  port: defaulted<number>({
    env: 'AUTHREALM_PORT',
    flag: 'port',
    value: 'PORT',
    fallback: '8080',
    doc: 'port to listen on; 0 takes a free one',
    parse: integer(0, 65_535),
    expects: 'a number from 0 to 65535',
  }),
  baseUrl: optional<string>({
    env: 'AUTHREALM_BASE_URL',
    flag: 'base-url',
    value: 'URL',
    doc: 'what callers reach the service by, with a path prefix if it has one: links and tokens carry it',
    parse: parseBaseUrl,
    expects:
      'an http or https URL, its path of letters, digits and . _ ~ - only, without query, fragment or userinfo',
  }),
  processes: defaulted<number>({
    env: 'AUTHREALM_PROCESSES',
    flag: 'processes',
    value: 'N',
    fallback: '1',
    doc: 'how many processes share the port',
    parse: integer(1, LIMITS.processesMax),
    expects: `a number from 1 to ${LIMITS.processesMax}`,
  }),
  tlsCert: file({
    env: 'AUTHREALM_TLS_CERT',
    flag: 'tls-cert',
    doc: 'certificate chain in PEM form, to serve https',
  }),
  tlsKey: file({
    env: 'AUTHREALM_TLS_KEY',
    flag: 'tls-key',
    doc: 'private key of the certificate in PEM form',
  }),
  behindProxy: toggle({
    env: 'AUTHREALM_BEHIND_PROXY',
    flag: 'behind-proxy',
    doc: 'a proxy in front ends TLS: plain http on an address that is not loopback is then allowed',
  }),
  trustedProxies: defaulted<readonly Network[]>({
    env: 'AUTHREALM_TRUSTED_PROXY',
    flag: 'trusted-proxy',
    value: 'CIDR',
    fallback: '',
    doc: 'networks of proxies that are believed who the caller is, separated by spaces; none unless given',
    parse: listOf(parseNetwork),
    expects: 'networks such as 10.0.0.0/8 or 2001:db8::/32, or addresses',
  }),
  forwardedHeader: defaulted<'x-forwarded-for' | 'forwarded'>({
    env: 'AUTHREALM_FORWARDED_HEADER',
    flag: 'forwarded-header',
    value: 'HEADER',
    fallback: 'x-forwarded-for',
    doc: 'where these proxies say who the caller is: x-forwarded-for or forwarded',
    parse: oneOf('x-forwarded-for', 'forwarded'),
    expects: 'x-forwarded-for or forwarded',
  }),
  clientRate: optional<Rate>({
    env: 'AUTHREALM_CLIENT_RATE',
    flag: 'client-rate',
    value: 'N/SECONDS',
    doc: 'how many requests a client may send at once, and again in so many seconds; no limit unless given',
    parse: parseRate,
    expects: RATE,
  }),
  addressRate: optional<Rate>({
    env: 'AUTHREALM_ADDRESS_RATE',
    flag: 'address-rate',
    value: 'N/SECONDS',
    doc: 'the same for an address, whoever asks from there',
    parse: parseRate,
    expects: RATE,
  }),
  badTokenRate: defaulted<Rate | 'off'>({
    env: 'AUTHREALM_BAD_TOKEN_RATE',
    flag: 'bad-token-rate',
    value: 'N/SECONDS|off',
    fallback: '100/60',
    doc: 'how many refused tokens and client credentials of an address are looked at',
    parse: parseRateOrOff,
    expects: `${RATE}, or off`,
  }),
  corsOrigins: defaulted<readonly string[]>({
    env: 'AUTHREALM_CORS_ORIGINS',
    flag: 'cors-origins',
    value: 'ORIGINS',
    fallback: '',
    doc: 'origins whose pages may call the service, separated by spaces; none unless given',
    parse: listOf(parseOrigin),
    expects: 'origins such as https://shop.example',
  }),
  tokenLifetime: defaulted<number>({
    env: 'AUTHREALM_TOKEN_LIFETIME',
    flag: 'token-lifetime',
    value: 'SECONDS',
    fallback: '3600',
    doc: 'how long an access token lives',
    parse: integer(60, LIMITS.tokenLifetimeSecondsMax),
    expects: `a number from 60 to ${LIMITS.tokenLifetimeSecondsMax}`,
  }),
  passwordMemory: defaulted<number>({
    env: 'AUTHREALM_PASSWORD_MEMORY',
    flag: 'password-memory',
    value: 'KIB',
    fallback: '19456',
    doc: 'memory that hashing a password takes (argon2id)',
    parse: integer(1, 262_144),
    expects: 'a number of KiB up to 262144',
  }),
  passwordPasses: defaulted<number>({
    env: 'AUTHREALM_PASSWORD_PASSES',
    flag: 'password-passes',
    value: 'N',
    fallback: '2',
    doc: 'passes over that memory (argon2id)',
    parse: integer(1, 10),
    expects: 'a number from 1 to 10',
  }),
  pageLength: defaulted<number>({
    env: 'AUTHREALM_PAGE_LENGTH',
    flag: 'page-length',
    value: 'N',
    fallback: '25',
    doc: 'how many records a page of a list holds unless the caller says',
    parse: integer(1, LIMITS.pageRecordsMax),
    expects: `a number from 1 to ${LIMITS.pageRecordsMax}`,
  }),
  offline: toggle({
    env: 'AUTHREALM_OFFLINE',
    flag: 'offline',
    doc: 'ask no identity provider: the issuer of an OIDC profile is its discovery URL without the well-known ending',
  }),
  allowLoopbackDiscovery: toggle({
    env: 'AUTHREALM_ALLOW_LOOPBACK_DISCOVERY',
    flag: 'allow-loopback-discovery',
    doc: 'identity providers may be asked on this machine too, by http as well; for tests',
  }),
  allowLoopbackWebhooks: toggle({
    env: 'AUTHREALM_ALLOW_LOOPBACK_WEBHOOKS',
    flag: 'allow-loopback-webhooks',
    doc: 'webhook targets and --checkpoint-url may be on this machine too, by http as well; for tests',
  }),
  retentionDays: defaulted<number>({
    env: 'AUTHREALM_RETENTION_DAYS',
    flag: 'retention-days',
    value: 'DAYS',
    fallback: '90',
    doc: 'how long changes, log entries, deliveries and dead letters are kept',
    parse: integer(1, LIMITS.retentionDaysMax),
    expects: `a number from 1 to ${LIMITS.retentionDaysMax}`,
  }),
  strictIssuers: toggle({
    env: 'AUTHREALM_STRICT_ISSUERS',
    flag: 'strict-issuers',
    doc: 'refuse an OIDC profile info whose issuer is not the one of its profile',
  }),
  issuersFile: file({
    env: 'AUTHREALM_ISSUERS_FILE',
    flag: 'issuers-file',
    doc: 'JSON file with the OpenID providers whose access tokens are accepted as well, and what they are worth',
  }),
  noConsole: toggle({
    env: 'AUTHREALM_NO_CONSOLE',
    flag: 'no-console',
    doc: 'serve no console at /console, and no rendered OpenAPI document at /docs',
  }),
  consoleClientCredentials: toggle({
    env: 'AUTHREALM_CONSOLE_CLIENT_CREDENTIALS',
    flag: 'console-client-credentials',
    doc: 'the console takes the credentials of a client as well, and keeps them in memory alone',
  }),
  requestLogging: defaulted<RequestLogging>({
    env: 'AUTHREALM_LOG_REQUESTS',
    flag: 'log-requests',
    value: 'off|sampled|full',
    fallback: 'off',
    doc: 'log no request, one in a hundred, or every one; failures are always logged',
    parse: oneOf('off', 'sampled', 'full'),
    expects: 'off, sampled or full',
  }),
  metricsPort: optional<number>({
    env: 'AUTHREALM_METRICS_PORT',
    flag: 'metrics-port',
    value: 'PORT',
    doc: 'port on which Prometheus reads metrics; 0 takes a free one; none unless given',
    parse: integer(0, 65_535),
    expects: 'a number from 0 to 65535',
  }),
  metricsHost: defaulted<string>({
    env: 'AUTHREALM_METRICS_HOST',
    flag: 'metrics-host',
    value: 'HOST',
    fallback: '127.0.0.1',
    doc: 'address on which metrics are read, without a token',
    parse: isNotEmpty,
    expects: 'an address',
  }),
  checkpointFile: file({
    env: 'AUTHREALM_CHECKPOINT_FILE',
    flag: 'checkpoint-file',
    doc: 'file that is told every minute how far the logs are, and who was erased; on SQLite <database>.checkpoints unless given',
  }),
  checkpointUrl: optional<string>({
    env: 'AUTHREALM_CHECKPOINT_URL',
    flag: 'checkpoint-url',
    value: 'URL',
    doc: 'receiver that is told the same lines by POST, beside the file; none unless given',
    parse: parseReceiver,
    expects: 'an https URL without userinfo and fragment',
    told: (raw) => raw.replace(/\?.*/, '?…'),
  }),
  bootstrapClientFile: file({
    env: 'AUTHREALM_BOOTSTRAP_CLIENT_FILE',
    flag: 'bootstrap-client-file',
    doc: 'JSON file with a client that exists from the start on: client_id, client_secret, name, scope, realms',
  }),
} as const;

export type SettingName = keyof typeof SETTINGS;

/** Settings that decide about the database; every command takes them. */
export const DATABASE_SETTINGS = [
  'database',
  'databasePasswordFile',
  'migrateDatabase',
  'migrateDatabasePasswordFile',
  'masterKeyFile',
  'masterKey',
  'migrate',
] as const;

/** Settings that say who outside of the database is told of checkpoints and erasures. */
export const CHECKPOINT_SINK_SETTINGS = ['checkpointFile', 'checkpointUrl', 'allowLoopbackWebhooks'] as const;

type ValueOf<S> = S extends Defaulted<infer T> ? T : S extends Setting<infer T> ? T | undefined : never;

/** What the settings come to. A setting without a fallback is undefined unless given. */
export type Settings = { readonly [N in SettingName]: ValueOf<(typeof SETTINGS)[N]> };
