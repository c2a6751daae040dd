import { parsePrivateTarget } from '../../access/outbound/target.ts';
import { parseUuid } from '../../model/id.ts';
import { parseNetwork } from '../../model/ip_address.ts';
import { LIMITS } from '../../model/limits.ts';
import { PASSWORD_COSTS } from '../../model/password.ts';
import { parseRate } from '../../model/token_buckets.ts';
import { DATABASE_ROWS } from './database_settings.ts';
import { file, list, nameSettings, toggle, type ValueOf } from './setting.ts';
import {
  choice,
  integer,
  isNotEmpty,
  parseBaseUrl,
  parseListenAddress,
  parseOrigin,
  parseRateOrOff,
  port,
} from './values.ts';

const RATE = {
  value: 'N/SECONDS',
  parse: parseRate,
  expects: 'a number of requests and a number of seconds, such as 600/60',
};
const RATE_OR_OFF = { value: 'N/SECONDS|off', parse: parseRateOrOff, expects: `${RATE.expects}, or off` };

/** The settings, in the order in which help texts list them. */
export const SETTINGS = nameSettings({
  ...DATABASE_ROWS,
  host: {
    value: 'HOST',
    defaultValue: '127.0.0.1',
    doc: 'address to listen on',
    details: 'An address that is not loopback needs a base URL, and TLS files or `--trusted-proxy`.',
    parse: isNotEmpty,
    expects: 'an address',
  },
  port: {
    value: 'PORT',
    defaultValue: '8080',
    doc: 'port to listen on; 0 chooses a free port',
    ...port,
  },
  baseUrl: {
    value: 'URL',
    doc: 'URL under which clients reach the service, with its path prefix; used in links, and as issuer and audience of tokens',
    details: 'The default is the address that the service listens on.',
    parse: parseBaseUrl,
    expects:
      'an http or https URL, its path of letters, digits and . _ ~ - only, without query, fragment or userinfo',
  },
  processes: {
    value: 'N',
    defaultValue: '1',
    doc: 'number of processes that share the port',
    details: 'See [processes](../guides/processes.md#serving-processes).',
    ...integer(1, LIMITS.processesMax),
  },
  drainDelay: {
    value: 'SECONDS',
    defaultValue: '0',
    doc: 'seconds to accept connections after a signal to stop, while /readyz is 503; for load balancers',
    details: 'See [signals](../guides/processes.md#signals).',
    ...integer(0, LIMITS.drainDelaySecondsMax),
  },
  tlsCert: file({
    file: 'public',
    doc: 'certificate chain (PEM), to serve https',
    details: 'Requires `--tls-key`. See [TLS](../guides/network.md#tls).',
  }),
  tlsKey: file({
    file: 'secret',
    doc: 'private key of the certificate (PEM)',
  }),
  trustedProxies: list({
    flag: 'trusted-proxy',
    value: 'CIDR',
    doc: 'network of the proxy that terminates TLS and sends the client address; allows plain http on an address that is not loopback; repeatable',
    details: 'For example `10.0.0.0/8`. See [the client address](../guides/network.md#the-client-address).',
    parse: parseNetwork,
    expects: 'networks such as 10.0.0.0/8 or 2001:db8::/32, or addresses, but not all addresses',
  }),
  clientRate: {
    doc: 'request limit for each client: N requests in SECONDS; default: no limit',
    details: 'See [rates](../guides/rates-and-overload.md#rates).',
    ...RATE,
  },
  addressRate: {
    doc: 'request limit for each client address: N requests in SECONDS; default: no limit',
    ...RATE,
  },
  badTokenRate: {
    defaultValue: '100/60',
    doc: 'limit of failed authentication attempts for each client address: N attempts in SECONDS',
    details: 'More are answered 429. See [its share](../guides/rates-and-overload.md#rates) of each process.',
    ...RATE_OR_OFF,
  },
  grantRate: {
    defaultValue: '120/120',
    doc: 'limit of token grants for each client: N tokens in SECONDS',
    details: 'More are answered 429. See [token grants](../guides/rates-and-overload.md#token-grants).',
    ...RATE_OR_OFF,
  },
  corsOrigins: list({
    value: 'ORIGINS',
    doc: 'origins that may call the service from a browser, separated by spaces or commas',
    details: 'For example `https://shop.example`; exact match, never `*`.',
    parse: parseOrigin,
    expects: 'origins such as https://shop.example',
  }),
  tokenLifetime: {
    value: 'SECONDS',
    defaultValue: '3600',
    doc: 'lifetime of an access token, in seconds',
    ...integer(60, LIMITS.tokenLifetimeSecondsMax),
  },
  passwordCost: {
    defaultValue: 'standard',
    doc: 'cost of a new password hash (argon2id)',
    details: 'See [passwords](../guides/lists-and-writes.md#passwords) for the memory and the time of each.',
    ...choice(...PASSWORD_COSTS.keys()),
    parse: (raw) => PASSWORD_COSTS.get(raw),
  },
  accountRealm: {
    value: 'ID',
    doc: 'realm of the account members; default: the pre-set one, else the only realm of that origin',
    details: 'See [settings](../wire.md#settings).',
    parse: parseUuid,
    expects: 'the ID of a realm',
  },
  offline: toggle({
    doc: 'call no identity provider: requests state the issuer of a provider, or it is derived from the discovery URL',
    details: 'See [discovery](../guides/outgoing-requests.md#discovery).',
  }),
  allowPrivate: list({
    value: 'TARGET',
    doc: 'host or network (CIDR) with private addresses that requests may be sent to, optionally with :PORT; repeatable',
    details:
      'For example `keycloak.internal` or `10.1.0.0/16:8443`; by default port 443, and on loopback any. See ' +
      '[private targets](../guides/outgoing-requests.md#private-targets).',
    parse: parsePrivateTarget,
    expects:
      'hosts or networks such as keycloak.internal, 10.1.0.0/16:8443 or [fd00::/8]:8443, but not all addresses',
  }),
  retentionDays: {
    value: 'DAYS',
    defaultValue: '90',
    doc: 'days to keep changes, log entries, deliveries and dead letters',
    details: 'See [retention](../guides/retention-and-deletion.md#retention).',
    ...integer(1, LIMITS.retentionDaysMax),
  },
  strictIssuers: toggle({
    doc: 'reject a link whose issuer differs from that of its provider',
    details: 'The answer is 422.',
  }),
  issuersFile: file({
    file: 'public',
    doc: 'JSON file with external OpenID providers whose access tokens are accepted, and the rights they give',
    details: 'Cannot be combined with `--offline`. See [external issuers](../guides/external-issuers.md).',
  }),
  logSignIns: toggle({
    doc: 'write an audit entry for each user that signs in or signs up, before the request is answered',
    details: 'Those of a link within a minute share an entry.',
  }),
  noConsole: toggle({
    doc: 'do not serve the console at /console and the rendered OpenAPI document at /docs',
  }),
  requestLogging: {
    flag: 'log-requests',
    defaultValue: 'off',
    doc: 'requests to log: none, one in a hundred, or all; failures are always logged',
    details: 'See [logs](../guides/monitoring.md#logs).',
    ...choice('off', 'sampled', 'full'),
  },
  logFormat: {
    doc: 'format of the log; default: text if standard error is a terminal, otherwise json',
    ...choice('json', 'text'),
  },
  metrics: {
    value: 'HOST:PORT',
    doc: 'address to serve Prometheus metrics on, without a token; port 0 chooses a free one',
    details:
      'For example `127.0.0.1:9464`; it has no TLS. Without it requests are not counted. See [metrics](../guides/monitoring.md#metrics).',
    parse: parseListenAddress,
    expects: 'an address and a port, such as 127.0.0.1:9464 or [::1]:9464',
  },
  checkpointFile: file({
    file: 'written',
    doc: 'append audit checkpoints and erasures to this file every minute; for SQLite, default: <database>.checkpoints',
    details: 'On PostgreSQL there are no checkpoints without it. See [checkpoints](../audit.md#checkpoints).',
  }),
  bootstrapClientFile: file({
    file: 'secret',
    doc: 'JSON file with a client to create or update at each start: client_id, client_secret, name, scope, realms',
    details: 'See [the bootstrap client](../guides/clients-and-tokens.md#the-bootstrap-client).',
  }),
});

export type SettingName = keyof typeof SETTINGS;

/** The values of all settings. A setting without a default may be undefined. */
export type Settings = { readonly [N in SettingName]: ValueOf<(typeof SETTINGS)[N]> } & {
  /** Whether a missing database is created, or is an error. */
  readonly createsDatabase: boolean;
  /** The command of the sign-in page; where it is undefined, it needs no options. */
  readonly linkCommand?: string;
  /** The settings file, if it has a secret or a URL with a password. */
  readonly secretSettingsFile?: string | undefined;
};
