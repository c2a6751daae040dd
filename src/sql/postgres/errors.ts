/**
 * An error of the server or the connection, reduced to its code: messages of the server and the driver quote values,
 * and must not reach logs or callers.
 */
export class DatabaseError extends Error {
  /** The SQLSTATE of the server, a code of the driver or of TLS, or one of ERROR_CODES. */
  readonly code: string;

  constructor(code: string) {
    super(`PostgreSQL error ${code}`);
    this.name = 'DatabaseError';
    this.code = code;
  }
}

/** Codes for errors that this program detects. */
export const ERROR_CODES = {
  timeout: 'DATABASE_TIMEOUT',
  connectionsBusy: 'DATABASE_CONNECTIONS_BUSY',
  noPrimary: 'DATABASE_NO_PRIMARY',
  noClusterNode: 'DATABASE_NO_CLUSTER_NODE',
  rolledBack: 'DATABASE_ROLLED_BACK',
  passwordFile: 'DATABASE_PASSWORD_FILE',
  rootCertificates: 'DATABASE_ROOT_CERTIFICATES',
} as const;

/** Of work that waited for a connection for too long. */
export const CONNECTIONS_BUSY = new DatabaseError(ERROR_CODES.connectionsBusy);

/** The DatabaseError for an error of the driver; undefined for any other error. */
export function databaseError(error: unknown): DatabaseError | undefined {
  if (error instanceof DatabaseError) return error;
  return error instanceof Bun.SQL.SQLError ? driverError(error) : undefined;
}

/** The same for an error known to come from the driver: its TLS errors have no class of their own. */
export function driverError(error: unknown): DatabaseError | undefined {
  if (error instanceof DatabaseError) return error;
  const code = sqlState(error) ?? (error as { readonly code?: unknown } | undefined)?.code;
  return typeof code === 'string' ? new DatabaseError(code) : undefined;
}

/** The SQLSTATE of an error that the server sent. */
export function sqlState(error: unknown): string | undefined {
  return error instanceof Bun.SQL.PostgresError ? error.errno : undefined;
}

/**
 * Invalid data, broken constraints and invalid statements: none of this program's statements should cause them. A missing
 * function is one of the Citus extension on another node.
 */
const BUG = /^(?:2[23]...|42(?!501|703|883|P01|P05)...)$/;

/** Whether the error is a bug of this program, which no operator can correct. */
export function isBug({ code }: DatabaseError): boolean {
  return BUG.test(code);
}

export const UNIQUE_VIOLATION = '23505';
export const INSUFFICIENT_PRIVILEGE = '42501';
export const TOO_MANY_CONNECTIONS = '53300';

/** A connection was closed, or the host accepts no new one: another host may be the primary. */
const CONNECTION_LOST = /^(?:ERR_POSTGRES_CONNECTION_|57P|08|25006|25P0[34])/;
/** The host accepts data and does not answer. */
const STALLED = /^(?:ERR_POSTGRES_CONNECTION_(?:TIMEOUT|FAILED)|DATABASE_TIMEOUT)$/;

/** What an error implies about its host; `unknown` where all connections were busy, or none was opened. */
export function hostStateAfter({ code }: DatabaseError): 'reachable' | 'lost' | 'unknown' | 'stalled' {
  if (code === ERROR_CODES.connectionsBusy) return 'unknown';
  if (STALLED.test(code)) return 'stalled';
  return CONNECTION_LOST.test(code) ? 'lost' : 'reachable';
}

/**
 * Whether a commit that failed with this error was rolled back. Where the connection or the server ended, the outcome
 * is unknown.
 */
export function isRefusedCommit({ code }: DatabaseError): boolean {
  return /^(?!08|57|58|XX)[0-9A-Z]{5}$/.test(code);
}
