import { Refusal } from '../../model/fault.ts';
import { LIMITS } from '../../model/limits.ts';
import type { Advice } from '../sqlite/advice.ts';
import { databaseError, ERROR_CODES, isBug } from './errors.ts';

/** The connections that one process opens, most of them when it needs them. */
const PROCESS_CONNECTIONS_MAX =
  LIMITS.accessConnectionsMax +
  LIMITS.lookupConnectionsMax +
  LIMITS.reverseLookupConnectionsMax +
  LIMITS.transactionConnectionsMax +
  LIMITS.listConnectionsMax +
  LIMITS.readersMax;

/** The description and the advice for an error code; the first match applies. */
const ADVICE: readonly (readonly [codes: RegExp, why: string, advice: string])[] = [
  [
    /^ERR_POSTGRES_CONNECTION_REFUSED/,
    'the host refused the connection, or its name cannot be resolved',
    'check the host in --database, and that PostgreSQL runs on that port, on an address that this machine can reach (listen_addresses)',
  ],
  [
    /^ERR_POSTGRES_CONNECTION_(TIMEOUT|FAILED)/,
    'the host did not answer with the PostgreSQL protocol',
    'check the host, the port, the server log, and any firewall between the two',
  ],
  [
    /^(28P01|ERR_POSTGRES_(AUTHENTICATION|PASSWORD|SASL|INVALID_SERVER))/,
    'the server rejected the password, none was given, or it asks for it with an unsupported method',
    'pass it with --database-password-file FILE, or in the URL of AUTHREALM_DATABASE',
  ],
  [
    exactly(ERROR_CODES.passwordFile),
    'the password file cannot be read',
    'make the file readable by the user of this process, or pass another one with --database-password-file',
  ],
  [
    /^28/,
    'the server does not allow this user to connect',
    'create the role with login if it does not exist, and allow it in pg_hba.conf for this database and client address',
  ],
  [/^3D000/, 'the server has no such database', 'create it (createdb), or pass another one with --database'],
  [
    /^42501/,
    'the role lacks a privilege',
    'a role that migrates must own the schema; a role that serves needs usage of the schema, and select, insert, ' +
      'update, delete on its tables',
  ],
  [
    /^(42P01|42703|3F000)/,
    'the schema does not match this program',
    'run authrealm migrate as the role that owns the schema',
  ],
  [
    /^(26000|42P05)/,
    'the connection pooler does not support prepared statements',
    'add prepare=off to the parameters of --database',
  ],
  [
    /^53300/,
    'the server has no connection left',
    `a process needs up to ${PROCESS_CONNECTIONS_MAX}: raise max_connections, run fewer processes, or use a connection pooler`,
  ],
  [
    /^53100/,
    'the disk of the server is full',
    'free space there and try again; committed writes are not lost',
  ],
  [
    exactly(ERROR_CODES.noPrimary),
    'the server is a standby or does not accept writes',
    'list every host in --database, separated by commas: the service finds the primary',
  ],
  [
    /^25006/,
    'the server is read-only',
    'check default_transaction_read_only there, or pass the host that accepts writes',
  ],
  [/^57P/, 'the server is starting up or shutting down', 'try again'],
  [/^(57014|55P03|25P0[34])/, 'a statement timed out because of other transactions', 'try again'],
  [
    exactly(ERROR_CODES.timeout),
    'the server did not answer in time',
    'check its load and the network, and try again',
  ],
  [exactly(ERROR_CODES.connectionsBusy), 'all connections to the server were busy', 'try again'],
  [
    /^(ERR_POSTGRES_CONNECTION|08)/,
    'the connection was closed',
    'check the log of the server, and try again',
  ],
  [
    /^ERR_POSTGRES_TLS/,
    'the server does not support TLS',
    'turn on ssl there, or pass sslmode=disable on a network that is protected otherwise',
  ],
  [
    /^ERR_TLS_CERT_ALTNAME_INVALID/,
    'the certificate of the server is for another host name',
    'use the host name of the certificate, or set sslmode=verify-ca, which accepts any name',
  ],
  [
    /^(DEPTH_|SELF_|UNABLE_|CERT_|INVALID_|ERR_TLS|ERR_SSL)/,
    'the certificate of the server is expired, not yet valid, or not signed by a trusted authority',
    'renew it, or pass a file with the certificate of the authority that signed it in the parameter sslrootcert',
  ],
  [
    /^(DATABASE_ROOT_CERTIFICATES|ERR_BORINGSSL|ERR_OSSL)/,
    'the sslrootcert file cannot be used',
    'make it readable; it must contain certificates in PEM format',
  ],
];

function exactly(code: string): RegExp {
  return new RegExp(`^${code}$`);
}

/** The advice for an error of PostgreSQL or the connection; undefined for other errors and for bugs. */
export function postgresAdvice(error: unknown): Advice | undefined {
  const failure = databaseError(error);
  if (!failure || isBug(failure)) return undefined;
  const { code } = failure;
  const [, why = 'the server returned an error', advice] = ADVICE.find(([codes]) => codes.test(code)) ?? [];
  return { why: `${why} (${code})`, advice };
}

/** Makes the advice of connection errors name the settings of the role that owns the schema. */
export async function withOwnerSettings<T>(work: Promise<T>): Promise<T> {
  try {
    return await work;
  } catch (error) {
    const found = postgresAdvice(error);
    if (!found) throw error;
    const advice = (found.advice ?? 'check the log of the server')
      .replaceAll('--database', '--migrate-database')
      .replace('AUTHREALM_DATABASE', 'AUTHREALM_MIGRATE_DATABASE');
    const what = 'the database of --migrate-database cannot be opened';
    throw new Refusal(`${what}: ${found.why}; ${advice}`, { cause: error });
  }
}
