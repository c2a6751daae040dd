import { attempt } from '../../model/attempt.ts';
import { isLoopbackHost } from '../../model/loopback.ts';

/** One server of a PostgreSQL database. */
export interface Host {
  readonly host: string;
  readonly port: number;
}

/** The address of a PostgreSQL database and the role that connects to it. */
export interface PostgresAddress {
  readonly engine: 'postgres';
  /** One of them is the primary. The service searches for it at start and after connection errors. */
  readonly hosts: readonly Host[];
  /** Whether each process prefers a random host: for hosts that all accept writes, as the nodes of Citus do. */
  readonly isBalanced: boolean;
  readonly database: string;
  readonly user: string;
  readonly password: string | undefined;
  /** Read for every new connection, so that a password can change at run time. Takes precedence over `password`. */
  readonly passwordFile: string | undefined;
  readonly tls: TlsMode;
  /** A PEM file with the CA certificates of the server; default: those that the system trusts. */
  readonly rootCertificates: string | undefined;
  /** Whether statements are prepared on the server. Must be false behind a pooler that mixes up prepared statements. */
  readonly isPrepared: boolean;
}

/** The `sslmode` values of libpq, without those that fall back to plain text silently. */
export type TlsMode = 'disable' | 'require' | 'verify-ca' | 'verify-full';

const DEFAULT_PORT = 5432;
const PORT_MAX = 65_535;
const FORM = 'postgres://USER:PASSWORD@HOST:PORT,HOST:PORT/DATABASE?sslmode=MODE';

const TLS_MODES: readonly string[] = ['disable', 'require', 'verify-ca', 'verify-full'];
const PARAMETERS: readonly string[] = ['sslmode', 'sslrootcert', 'prepare', 'load_balance_hosts'];

/** Scheme, user and password, hosts, database, parameters. */
const URL_FORM = /^postgres(?:ql)?:\/\/(?:([^/?#]*)@)?([^/?#@]*)(?:\/([^/?#]*))?(?:\?([^#]*))?$/;
/** A name, an IPv4 address, or an IPv6 address in brackets; optionally a port. */
const HOST_FORM = /^(?:\[([0-9a-f:.]+)\]|([a-z0-9._-]+))(?::(\d{1,5}))?$/i;
const CONTROL = /\p{Cc}/u;

/** Parses `postgres://user:password@host:port,…/database?…`. Returns undefined for anything else. */
export function parsePostgres(raw: string): PostgresAddress | undefined {
  const parsed = readPostgres(raw);
  return typeof parsed === 'string' ? undefined : parsed;
}

/** The expected form and what is wrong with a PostgreSQL URL. Quotes nothing of the URL: it may hold a password. */
export function postgresUrlError(raw: string): string | undefined {
  if (!/^postgres(?:ql)?:/.test(raw)) return undefined;
  const parsed = readPostgres(raw);
  return typeof parsed === 'string' ? `${FORM}: ${parsed}` : undefined;
}

/** The address, or a description of the error. */
function readPostgres(raw: string): PostgresAddress | string {
  const [, userinfo = '', authority = '', path = '', query = ''] = URL_FORM.exec(raw) ?? [];
  if (!URL_FORM.test(raw)) return 'write the characters / ? # @ in a name or password as %2F %3F %23 %40';
  const colon = userinfo.indexOf(':');
  const user = decoded(colon < 0 ? userinfo : userinfo.slice(0, colon));
  const password = decoded(colon < 0 ? '' : userinfo.slice(colon + 1));
  const database = decoded(path);
  if (user === undefined || password === undefined || database === undefined) {
    return 'a % must be followed by two hexadecimal digits that encode no control character';
  }
  if (user === '') return 'the user is missing';
  if (database === '') return 'the database is missing';
  const hosts = authority.split(',').map(readHost);
  if (!hosts.every((host) => host !== undefined)) {
    return `a host must be a name, an IPv4 address, or an IPv6 address in brackets; a port, 1 to ${PORT_MAX}`;
  }
  const parameters = readParameters(query, hosts);
  if (typeof parameters === 'string') return parameters;
  const secret = password === '' ? undefined : password;
  return {
    engine: 'postgres',
    hosts,
    database,
    user,
    password: secret,
    passwordFile: undefined,
    ...parameters,
  };
}

function decoded(text: string): string | undefined {
  const plain = attempt(() => decodeURIComponent(text));
  return plain === undefined || CONTROL.test(plain) ? undefined : plain;
}

function readHost(text: string): Host | undefined {
  const [, inBrackets, name, digits = String(DEFAULT_PORT)] = HOST_FORM.exec(text) ?? [];
  const host = inBrackets ?? name;
  const port = Number(digits);
  if (host === undefined || port < 1 || port > PORT_MAX) return undefined;
  if (inBrackets !== undefined && !URL.canParse(`http://[${inBrackets}]`)) return undefined;
  return { host, port };
}

type Parameters = Pick<PostgresAddress, 'tls' | 'rootCertificates' | 'isPrepared' | 'isBalanced'>;

function readParameters(query: string, hosts: readonly Host[]): Parameters | string {
  const given = new Map(new URLSearchParams(query));
  if ([...given.keys()].some((name) => !PARAMETERS.includes(name))) {
    return `the parameters are ${PARAMETERS.join(', ')}`;
  }
  const rootCertificates = given.get('sslrootcert');
  if (rootCertificates === '') return 'sslrootcert must be a path';
  const prepare = given.get('prepare') ?? 'on';
  if (prepare !== 'on' && prepare !== 'off') return 'prepare must be on or off';
  const balance = given.get('load_balance_hosts') ?? 'disable';
  if (balance !== 'disable' && balance !== 'random') return 'load_balance_hosts must be disable or random';
  // Plain text is the default only for connections that never leave this machine.
  const isLocal = rootCertificates === undefined && hosts.every(({ host }) => isLoopbackHost(host));
  const tls = given.get('sslmode') ?? (isLocal ? 'disable' : 'verify-full');
  if (!TLS_MODES.includes(tls)) {
    return `sslmode must be one of ${TLS_MODES.join(', ')}; prefer and allow would fall back to plain text`;
  }
  if (tls === 'disable' && rootCertificates !== undefined) {
    return 'sslrootcert has no meaning with sslmode=disable';
  }
  return {
    tls: tls as TlsMode,
    rootCertificates,
    isPrepared: prepare === 'on',
    isBalanced: balance === 'random',
  };
}
