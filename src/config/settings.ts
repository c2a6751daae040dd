import { parseUuid, type Uuid } from '../domain/id.ts';
import { type Network, parseNetwork } from '../domain/ip_address.ts';
import { LIMITS } from '../domain/limits.ts';
import { parseRate, type Rate } from '../domain/token_buckets.ts';
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
import { type Defaulted, defaulted, file, optional, type Setting, toggle } from './setting.ts';
import {
  choiceOf,
  integer,
  isNotEmpty,
  listOf,
  parseBaseUrl,
  parseOrigin,
  parseRateOrOff,
  parseReceiver,
} from './values.ts';

const RATE = 'a number of requests and a number of seconds, such as 600/60';

/** The settings, in the order in which help texts list them. */
export const SETTINGS = {
  database: defaulted<DatabaseAddress>({
    env: 'AUTHREALM_DATABASE',
    flag: 'database',
    value: 'URL',
    defaultValue: 'sqlite:./authrealm.db',
    doc: 'URL of the database',
    details:
      'A path is a SQLite file; one without a folder must end in `.db`, `.sqlite` or `.sqlite3`. `sqlite::memory:` is an in-memory database, which exists as long as its one process. The variable may contain a password, ' +
      'the flag must not; the password is never displayed. [PostgreSQL](../guides/postgresql.md) has the parameters of its URL.',
    parse: parseDatabase,
    expects: 'a file such as ./authrealm.db, sqlite:PATH, or postgres://USER@HOST:PORT/DATABASE',
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
    details:
      'By default the role of `--database` creates and migrates the tables. See [two roles](../guides/postgresql.md#two-roles).',
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
    details:
      'Required for PostgreSQL; `authrealm keys make` creates one. The file has two keys, one per line, while the key is ' +
      '[being changed](../guides/keys.md#change-the-master-key).',
  }),
  masterKey: optional<string>({
    env: 'AUTHREALM_MASTER_KEY',
    doc: 'the master key itself',
    details: 'Cannot be combined with the file.',
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
    details:
      '`off` also refuses a database that does not exist yet. The default is `check` for all commands except `serve` and `init`.',
    parse: choiceOf('auto', 'check', 'off'),
    expects: 'auto, check or off',
  }),
  host: defaulted<string>({
    env: 'AUTHREALM_HOST',
    flag: 'host',
    value: 'HOST',
    defaultValue: '127.0.0.1',
    doc: 'address to listen on',
    details: 'An address that is not loopback needs a base URL, and TLS files or `--behind-proxy`.',
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
    details:
      'The default is the address that the service listens on. It is also the issuer and audience of tokens.',
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
    details: 'See [processes](../guides/processes.md#serving-processes).',
    parse: integer(1, LIMITS.processesMax),
    expects: `a number from 1 to ${LIMITS.processesMax}`,
  }),
  tlsCert: file({
    env: 'AUTHREALM_TLS_CERT',
    flag: 'tls-cert',
    doc: 'certificate chain (PEM), to serve https',
    details: 'Requires `--tls-key`. See [TLS](../guides/network.md#tls).',
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
    details: 'See [the client address](../guides/network.md#the-client-address).',
    parse: listOf(parseNetwork),
    expects: 'networks such as 10.0.0.0/8 or 2001:db8::/32, or addresses',
  }),
  forwardedHeader: defaulted<'x-forwarded-for' | 'forwarded'>({
    env: 'AUTHREALM_FORWARDED_HEADER',
    flag: 'forwarded-header',
    value: 'HEADER',
    defaultValue: 'x-forwarded-for',
    doc: 'header in which trusted proxies send the client address: x-forwarded-for or forwarded',
    details: 'The other header is ignored.',
    parse: choiceOf('x-forwarded-for', 'forwarded'),
    expects: 'x-forwarded-for or forwarded',
  }),
  clientRate: optional<Rate>({
    env: 'AUTHREALM_CLIENT_RATE',
    flag: 'client-rate',
    value: 'N/SECONDS',
    doc: 'request limit for each client: N requests in SECONDS; default: no limit',
    details: 'See [rates](../guides/rates-and-overload.md#rates).',
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
    details: 'Tokens and client credentials count. Further attempts are answered 429.',
    parse: parseRateOrOff,
    expects: `${RATE}, or off`,
  }),
  grantRate: defaulted<Rate | 'off'>({
    env: 'AUTHREALM_GRANT_RATE',
    flag: 'grant-rate',
    value: 'N/SECONDS|off',
    defaultValue: '120/120',
    doc: 'limit of token grants for each client: N tokens in SECONDS',
    details:
      'Further token requests are answered 429. See [token grants](../guides/rates-and-overload.md#token-grants).',
    parse: parseRateOrOff,
    expects: `${RATE}, or off`,
  }),
  corsOrigins: defaulted<readonly string[]>({
    env: 'AUTHREALM_CORS_ORIGINS',
    flag: 'cors-origins',
    value: 'ORIGINS',
    defaultValue: '',
    doc: 'origins that may call the service from a browser, separated by spaces or commas; default: none',
    details: 'Exact match, never `*`.',
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
    details: 'See [passwords](../guides/lists-and-writes.md#passwords) for the accepted combinations.',
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
  accountRealm: optional<Uuid>({
    env: 'AUTHREALM_ACCOUNT_REALM',
    flag: 'account-realm',
    value: 'ID',
    doc: 'realm of the account members; default: the pre-set one, else the only realm of that origin',
    details:
      '`/v2/settings/account-authentication` names it, and `/v2/account-members` lists its users. See ' +
      '[settings](../wire.md#settings).',
    parse: parseUuid,
    expects: 'the ID of a realm',
  }),
  offline: toggle({
    env: 'AUTHREALM_OFFLINE',
    flag: 'offline',
    doc: 'call no identity provider: the issuer of an OIDC profile is its discovery URL without the well-known suffix',
    details: 'See [discovery](../guides/outgoing-requests.md#discovery).',
  }),
  allowLoopbackDiscovery: toggle({
    env: 'AUTHREALM_ALLOW_LOOPBACK_DISCOVERY',
    flag: 'allow-loopback-discovery',
    doc: 'allow identity providers on this machine, also over http; for tests',
    details: 'On any port.',
  }),
  allowLoopbackWebhooks: toggle({
    env: 'AUTHREALM_ALLOW_LOOPBACK_WEBHOOKS',
    flag: 'allow-loopback-webhooks',
    doc: 'allow webhook targets and --checkpoint-url on this machine, also over http; for tests',
    details: 'On any port.',
  }),
  retentionDays: defaulted<number>({
    env: 'AUTHREALM_RETENTION_DAYS',
    flag: 'retention-days',
    value: 'DAYS',
    defaultValue: '90',
    doc: 'days to keep changes, log entries, deliveries and dead letters',
    details: 'See [retention](../guides/retention-and-deletion.md#retention).',
    parse: integer(1, LIMITS.retentionDaysMax),
    expects: `a number from 1 to ${LIMITS.retentionDaysMax}`,
  }),
  strictIssuers: toggle({
    env: 'AUTHREALM_STRICT_ISSUERS',
    flag: 'strict-issuers',
    doc: 'reject an OIDC profile info whose issuer differs from that of its profile',
    details: 'The answer is 422.',
  }),
  issuersFile: file({
    env: 'AUTHREALM_ISSUERS_FILE',
    flag: 'issuers-file',
    doc: 'JSON file with external OpenID providers whose access tokens are accepted, and the rights they give',
    details: 'Cannot be combined with `--offline`. See [external issuers](../guides/external-issuers.md).',
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
    details: 'See [the console](../console.md#client-credentials).',
  }),
  consoleSessionHours: defaulted<number>({
    env: 'AUTHREALM_CONSOLE_SESSION_HOURS',
    flag: 'console-session-hours',
    value: 'HOURS',
    defaultValue: '8',
    doc: 'longest console session, in hours, while its page is used; at most one hour with the scope admin',
    parse: integer(1, LIMITS.consoleSessionHoursMax),
    expects: `a number of hours from 1 to ${LIMITS.consoleSessionHoursMax}`,
  }),
  requestLogging: defaulted<RequestLogging>({
    env: 'AUTHREALM_LOG_REQUESTS',
    flag: 'log-requests',
    value: 'off|sampled|full',
    defaultValue: 'off',
    doc: 'requests to log: none, one in a hundred, or all; failures are always logged',
    details: 'See [logs](../guides/monitoring.md#logs).',
    parse: choiceOf('off', 'sampled', 'full'),
    expects: 'off, sampled or full',
  }),
  metricsPort: optional<number>({
    env: 'AUTHREALM_METRICS_PORT',
    flag: 'metrics-port',
    value: 'PORT',
    doc: 'port to serve Prometheus metrics on; 0 chooses a free port; default: no metrics',
    details: 'Without it requests are not counted. See [metrics](../guides/monitoring.md#metrics).',
    parse: integer(0, 65_535),
    expects: 'a number from 0 to 65535',
  }),
  metricsHost: defaulted<string>({
    env: 'AUTHREALM_METRICS_HOST',
    flag: 'metrics-host',
    value: 'HOST',
    defaultValue: '127.0.0.1',
    doc: 'address to serve metrics on, without a token',
    details: 'The listener has no TLS.',
    parse: isNotEmpty,
    expects: 'an address',
  }),
  checkpointFile: file({
    env: 'AUTHREALM_CHECKPOINT_FILE',
    flag: 'checkpoint-file',
    doc: 'append audit checkpoints and erasures to this file every minute; for SQLite, default: <database>.checkpoints',
    details: 'For PostgreSQL, checkpoints are logged by default. See [checkpoints](../audit.md#checkpoints).',
  }),
  checkpointUrl: optional<string>({
    env: 'AUTHREALM_CHECKPOINT_URL',
    flag: 'checkpoint-url',
    value: 'URL',
    doc: 'send audit checkpoints and erasures to this URL by POST, in addition to the file',
    details:
      'Port 443, with a host name or a public IP address. The query is never displayed. See [a receiver](../audit.md#a-receiver).',
    parse: parseReceiver,
    expects: 'an https URL without userinfo and fragment',
    redact: (raw) => raw.replace(/\?.*/, '?…'),
  }),
  bootstrapClientFile: file({
    env: 'AUTHREALM_BOOTSTRAP_CLIENT_FILE',
    flag: 'bootstrap-client-file',
    doc: 'JSON file with a client to create or update at each start: client_id, client_secret, name, scope, realms',
    details: 'See [the bootstrap client](../guides/clients-and-tokens.md#the-bootstrap-client).',
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
