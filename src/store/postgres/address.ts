import { isLoopbackHost } from '../../domain/loopback.ts';

/** One server of a PostgreSQL database. */
export interface Host {
  readonly host: string;
  readonly port: number;
}

/** Where a PostgreSQL database is and who asks for it. */
export interface PostgresAddress {
  readonly engine: 'postgres';
  /** One of them takes writes: it is looked for, and again when it is in trouble. */
  readonly hosts: readonly Host[];
  readonly database: string;
  readonly user: string;
  readonly password: string | undefined;
  /** Read anew for every connection, so that a password can change while the service runs. It wins over `password`. */
  readonly passwordFile: string | undefined;
  readonly tls: TlsMode;
  /** A file with the certificates that sign the server's, in PEM form; undefined for those the system trusts. */
  readonly rootCertificates: string | undefined;
  /** Whether statements are prepared on the server: not through a pooler that hands connections on after each of them. */
  readonly isPrepared: boolean;
}

/** As `sslmode` of libpq has it, less those that would silently go without. */
export type TlsMode = 'disable' | 'require' | 'verify-ca' | 'verify-full';

const DEFAULT_PORT = 5432;
const PORT_MAX = 65_535;
const FORM = 'postgres://USER:PASSWORD@HOST:PORT,HOST:PORT/DATABASE?sslmode=MODE';

const TLS_MODES: readonly string[] = ['disable', 'require', 'verify-ca', 'verify-full'];
const PARAMETERS: readonly string[] = ['sslmode', 'sslrootcert', 'prepare'];

/** Scheme, user with password, hosts, database, parameters. */
const URL_FORM = /^postgres(?:ql)?:\/\/(?:([^/?#]*)@)?([^/?#@]*)(?:\/([^/?#]*))?(?:\?([^#]*))?$/;
/** A name or an IPv4 address, or an IPv6 address in brackets; perhaps a port. */
const HOST_FORM = /^(?:\[([0-9a-f:.]+)\]|([a-z0-9._-]+))(?::(\d{1,5}))?$/i;
const CONTROL = /\p{Cc}/u;

/** Reads `postgres://user:password@host:port,…/database?…`. Answers undefined for anything else. */
export function parsePostgres(raw: string): PostgresAddress | undefined {
  const read = readPostgres(raw);
  return typeof read === 'string' ? undefined : read;
}

/** What such a URL must be, where this one is not. It repeats nothing of it: there may be a password in it. */
export function postgresUrlError(raw: string): string | undefined {
  if (!/^postgres(?:ql)?:/.test(raw)) return undefined;
  const read = readPostgres(raw);
  return typeof read === 'string' ? `${FORM}: ${read}` : undefined;
}

/** The address, or what is wrong. */
function readPostgres(raw: string): PostgresAddress | string {
  const [, userinfo = '', authority = '', path = '', query = ''] = URL_FORM.exec(raw) ?? [];
  if (!URL_FORM.test(raw))
    return 'a character such as / ? # @ in a name or password is written as %2F %3F %23 %40';
  const colon = userinfo.indexOf(':');
  const user = decoded(colon < 0 ? userinfo : userinfo.slice(0, colon));
  const password = decoded(colon < 0 ? '' : userinfo.slice(colon + 1));
  const database = decoded(path);
  if (user === undefined || password === undefined || database === undefined) {
    return 'what follows a % must be two hexadecimal digits, and stand for no control character';
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
  try {
    const plain = decodeURIComponent(text);
    return CONTROL.test(plain) ? undefined : plain;
  } catch {
    return undefined;
  }
}

function readHost(text: string): Host | undefined {
  const [, inBrackets, name, digits = String(DEFAULT_PORT)] = HOST_FORM.exec(text) ?? [];
  const host = inBrackets ?? name;
  const port = Number(digits);
  if (host === undefined || port < 1 || port > PORT_MAX) return undefined;
  if (inBrackets !== undefined && !URL.canParse(`http://[${inBrackets}]`)) return undefined;
  return { host, port };
}

type Parameters = Pick<PostgresAddress, 'tls' | 'rootCertificates' | 'isPrepared'>;

function readParameters(query: string, hosts: readonly Host[]): Parameters | string {
  const given = new Map(new URLSearchParams(query));
  if ([...given.keys()].some((name) => !PARAMETERS.includes(name))) {
    return `the parameters are ${PARAMETERS.join(', ')}`;
  }
  const rootCertificates = given.get('sslrootcert');
  if (rootCertificates === '') return 'sslrootcert must be a path';
  const prepare = given.get('prepare') ?? 'on';
  if (prepare !== 'on' && prepare !== 'off') return 'prepare must be on or off';
  // Only what never leaves this machine may go in clear text unasked.
  const isNear = rootCertificates === undefined && hosts.every(({ host }) => isLoopbackHost(host));
  const tls = given.get('sslmode') ?? (isNear ? 'disable' : 'verify-full');
  if (!TLS_MODES.includes(tls)) {
    return `sslmode must be one of ${TLS_MODES.join(', ')}; prefer and allow would go without TLS unasked`;
  }
  if (tls === 'disable' && rootCertificates !== undefined) {
    return 'sslrootcert has no meaning with sslmode=disable';
  }
  return { tls: tls as TlsMode, rootCertificates, isPrepared: prepare === 'on' };
}
