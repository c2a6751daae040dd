import { readFileSync } from 'node:fs';
import { SQL } from 'bun';
import { LIMITS } from '../../domain/limits.ts';
import type { Host, PostgresAddress } from './address.ts';
import { DatabaseError, ERROR_CODES } from './errors.ts';

/** The driver for one host of an address, with at most so many connections. Each is made when it is first needed. */
export function openClient(
  address: PostgresAddress,
  connectionsMax: number,
  { host, port }: Host = address.hosts[0] as Host,
): SQL {
  return new SQL({
    adapter: 'postgres',
    hostname: host,
    port,
    database: address.database,
    username: address.user,
    password: () => passwordOf(address),
    tls: tlsOf(address),
    max: connectionsMax,
    prepare: address.isPrepared,
    // Before the statement that waits for it is late, which would say less.
    connectionTimeout: LIMITS.statementMsMax / 1_000,
  });
}

/** Asked for at every new connection. */
function passwordOf({ password, passwordFile }: PostgresAddress): string {
  if (passwordFile === undefined) return password ?? '';
  return readOr(passwordFile, ERROR_CODES.passwordFile).replace(/\r?\n$/, '');
}

/** Everything is said: what is not would be taken from the environment. */
function tlsOf({ tls, rootCertificates }: PostgresAddress) {
  if (tls === 'disable') return false;
  if (tls === 'require' && rootCertificates === undefined) return { rejectUnauthorized: false };
  const ca =
    rootCertificates === undefined ? {} : { ca: readOr(rootCertificates, ERROR_CODES.rootCertificates) };
  const anyName = tls === 'verify-full' ? {} : { checkServerIdentity: () => undefined };
  return { rejectUnauthorized: true, ...ca, ...anyName };
}

function readOr(path: string, code: string): string {
  try {
    return readFileSync(path, 'utf8');
  } catch {
    throw new DatabaseError(code);
  }
}
