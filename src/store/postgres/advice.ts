import { Refusal } from '../../domain/fault.ts';
import type { Advice } from '../sqlite/advice.ts';
import { type DatabaseError, databaseError, ERROR_CODES, isBug } from './errors.ts';

/** What trouble of a kind is, and what an operator does about it, told by the first code that fits. */
const ADVICE: readonly (readonly [codes: RegExp, why: string, advice: string])[] = [
  [
    exactly(ERROR_CODES.hostUnknown),
    'nobody knows a host of that name',
    'look at the name in --database, and whether this machine can look names up',
  ],
  [
    /^ERR_POSTGRES_CONNECTION_REFUSED/,
    'nobody listens there',
    'look whether PostgreSQL runs, on that port and on an address that is reached from here (listen_addresses)',
  ],
  [
    /^ERR_POSTGRES_CONNECTION_(TIMEOUT|FAILED)/,
    'what listens there does not answer as PostgreSQL does',
    'look at host and port, at its log, and for a firewall between',
  ],
  [/^28P01/, 'the password was not accepted', passwordAdvice()],
  [
    /^ERR_POSTGRES_(AUTHENTICATION|PASSWORD|SASL|INVALID_SERVER)/,
    'no password that helps was given',
    passwordAdvice(),
  ],
  [
    exactly(ERROR_CODES.passwordFile),
    'the file with the password cannot be read',
    'let the user of this process read the file, or name another one',
  ],
  [
    /^28/,
    'the server does not let that user in',
    'create role … login where there is none, and let pg_hba.conf admit it to this database from here',
  ],
  [/^3D000/, 'the server has no such database', 'make it (createdb), or name another one by --database'],
  [
    /^42501/,
    'the role may not do that',
    'to bring the schema up it must own it; to serve it needs usage of the schema, and select, insert, update, delete ' +
      'on its tables',
  ],
  [
    /^(42P01|42703|3F000)/,
    'its schema is not the one this program needs',
    'run authrealm migrate, as the role that owns the schema',
  ],
  [
    /^(26000|42P05)/,
    'a pooler between keeps no prepared statements',
    'add prepare=off to the parameters of --database',
  ],
  [
    /^53300/,
    'it has no connection left',
    'raise max_connections, end who holds them, or put a pooler between. docs/operating.md says how many a process takes',
  ],
  [/^53100/, 'its disk is full', 'make room there and try again. What was committed is there'],
  [
    exactly(ERROR_CODES.standby),
    'it is a standby, or takes no writes',
    'name every host by --database, separated by commas: the one that takes writes is found',
  ],
  [
    /^25006/,
    'it is read-only',
    'see default_transaction_read_only there, or name the host that takes writes',
  ],
  [/^57P/, 'it is starting up or being shut down', 'try again'],
  [/^(57014|55P03|25P0[34])/, 'other transactions kept it busy', 'try again'],
  [
    exactly(ERROR_CODES.late),
    'it did not answer in time',
    'look at its load and at the network, and try again',
  ],
  [exactly(ERROR_CODES.crowded), 'all connections to it were busy', 'try again'],
  [/^(ERR_POSTGRES_CONNECTION|08)/, 'the connection ended', 'look at its log, and try again'],
  [
    /^ERR_POSTGRES_TLS/,
    'the server does not speak TLS',
    'turn ssl on there; sslmode=disable goes without, where nobody can listen on the way',
  ],
  [
    /^ERR_TLS_CERT_ALTNAME_INVALID/,
    'its certificate is for another name',
    'name the host as the certificate does; sslmode=verify-ca takes any name',
  ],
  [
    /^CERT_(HAS_EXPIRED|NOT_YET_VALID)/,
    'its certificate is not valid today',
    'renew it, and look at the clocks',
  ],
  [
    /^(DEPTH_|SELF_|UNABLE_|CERT_|INVALID_|ERR_TLS|ERR_SSL)/,
    'its certificate is signed by nobody who is trusted here',
    'name the file with the certificate of who signed it by sslrootcert',
  ],
  [
    /^(DATABASE_ROOT_CERTIFICATES|ERR_BORINGSSL|ERR_OSSL)/,
    'the file of sslrootcert cannot be used',
    'it must be readable and hold certificates in PEM form',
  ],
];

function exactly(code: string): RegExp {
  return new RegExp(`^${code}$`);
}

function passwordAdvice(): string {
  return 'give it by --database-password-file FILE, or in the URL of AUTHREALM_DATABASE';
}

/** What to say about trouble of PostgreSQL or of the way there; undefined for other trouble, and for a bug. */
export function postgresAdvice(error: unknown): Advice | undefined {
  const trouble = databaseError(error);
  if (!trouble || isBug(trouble)) return undefined;
  return adviceFor(trouble);
}

function adviceFor({ code }: DatabaseError): Advice {
  const [, why = 'it answered with an error', advice] = ADVICE.find(([codes]) => codes.test(code)) ?? [];
  return { why: `${why} (${code})`, advice };
}

/** Trouble on the way of the role that owns the schema names the settings that say who that is. */
export async function withOwnerSettings<T>(work: Promise<T>): Promise<T> {
  try {
    return await work;
  } catch (error) {
    const told = postgresAdvice(error);
    if (!told) throw error;
    const advice = (told.advice ?? 'see its log')
      .replaceAll('--database', '--migrate-database')
      .replace('AUTHREALM_DATABASE', 'AUTHREALM_MIGRATE_DATABASE');
    const what = 'the database as --migrate-database names it cannot be opened';
    throw new Refusal(`${what}: ${told.why}; ${advice}`, { cause: error });
  }
}
