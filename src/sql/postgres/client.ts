import { readFileSync } from 'node:fs';
import { SQL } from 'bun';
import { LIMITS } from '../../model/limits.ts';
import type { Host, PostgresAddress } from './address.ts';
import { DatabaseError, ERROR_CODES } from './errors.ts';

/** A driver client for one host of an address. It opens connections on demand, at most `connectionsMax`. */
export function openClient(address: PostgresAddress, connectionsMax: number, { host, port }: Host): SQL {
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
    // Shorter than the timeout of the statement that waits for it, whose error would be less specific.
    connectionTimeout: LIMITS.statementMsMax / 1_000,
  });
}

/** Called for every new connection. */
function passwordOf({ password, passwordFile }: PostgresAddress): string {
  if (passwordFile === undefined) return password ?? '';
  return readFileOrThrow(passwordFile, ERROR_CODES.passwordFile).replace(/\r?\n$/, '');
}

/** Sets every TLS option: the driver reads PG* variables for those left out. */
function tlsOf({ tls, rootCertificates }: PostgresAddress) {
  if (tls === 'disable') return false;
  if (tls === 'require' && rootCertificates === undefined) return { rejectUnauthorized: false };
  const ca =
    rootCertificates === undefined
      ? {}
      : { ca: readFileOrThrow(rootCertificates, ERROR_CODES.rootCertificates) };
  const anyName = tls === 'verify-full' ? {} : { checkServerIdentity: () => undefined };
  return { rejectUnauthorized: true, ...ca, ...anyName };
}

function readFileOrThrow(path: string, code: string): string {
  try {
    return readFileSync(path, 'utf8');
  } catch {
    throw new DatabaseError(code);
  }
}
