import { SQL } from 'bun';

/**
 * Trouble of the engine or of the way there, by its code alone: texts of the engine and of the driver name values, so
 * none of them goes further than this.
 */
export class DatabaseError extends Error {
  /** The engine's SQLSTATE, the code of the driver or of TLS, or one of ours. */
  readonly code: string;

  constructor(code: string) {
    super(`PostgreSQL or the way to it: ${code}`);
    this.name = 'Trouble';
    this.code = code;
  }
}

/** Codes of ours. */
export const ERROR_CODES = {
  late: 'DATABASE_TIMEOUT',
  crowded: 'DATABASE_CONNECTIONS_BUSY',
  standby: 'DATABASE_NO_PRIMARY',
  rolledBack: 'DATABASE_ROLLED_BACK',
  hostUnknown: 'DATABASE_HOST_UNKNOWN',
  passwordFile: 'DATABASE_PASSWORD_FILE',
  rootCertificates: 'DATABASE_ROOT_CERTIFICATES',
} as const;

/** The trouble that an error tells of; undefined for one of another kind. */
export function databaseError(error: unknown): DatabaseError | undefined {
  if (error instanceof DatabaseError) return error;
  return error instanceof SQL.SQLError ? driverError(error) : undefined;
}

/** The same for what the driver threw, whose errors about TLS are of no kind of its own. */
export function driverError(error: unknown): DatabaseError | undefined {
  if (error instanceof DatabaseError) return error;
  const code = sqlState(error) ?? (error as { readonly code?: unknown } | undefined)?.code;
  return typeof code === 'string' ? new DatabaseError(code) : undefined;
}

/** The SQLSTATE that a server sent. */
export function sqlState(error: unknown): string | undefined {
  return error instanceof SQL.PostgresError ? error.errno : undefined;
}

/** Data and rules that no statement of ours should meet, and statements that the engine cannot read. */
const BUG = /^(?:2[23]...|42(?!501|703|P01|P05)...)$/;

/** Whether nothing that an operator does helps. */
export function isBug({ code }: DatabaseError): boolean {
  return BUG.test(code);
}

/** A unique index has these values already. */
export const UNIQUE_VIOLATION = '23505';
/** Who asks has not been granted what it needs. */
export const INSUFFICIENT_PRIVILEGE = '42501';
/** The server is there, and has no room for one more connection. */
export const TOO_MANY_CONNECTIONS = '53300';

/** A connection ended, or no new one is accepted: another host may be the one to ask. */
const CONNECTION_LOST = /^(?:ERR_POSTGRES_CONNECTION_|57P|08|25006|25P0[34])/;
/** What is sent is taken, and nothing comes back. */
const STALLED = /^(?:ERR_POSTGRES_CONNECTION_(?:TIMEOUT|FAILED)|DATABASE_TIMEOUT)$/;

/** What trouble says about the host it is with; `unclear` where all connections were busy, or not even made. */
export function hostStateAfter({ code }: DatabaseError): 'none' | 'lost' | 'unclear' | 'stalled' {
  if (code === ERROR_CODES.crowded) return 'unclear';
  if (STALLED.test(code)) return 'stalled';
  return CONNECTION_LOST.test(code) ? 'lost' : 'none';
}

/**
 * Whether a commit that failed so left nothing behind: the engine said why it refused. Where the connection or the
 * server ended, nobody knows.
 */
export function isRefusedCommit({ code }: DatabaseError): boolean {
  return /^(?!08|57|58|XX)[0-9A-Z]{5}$/.test(code);
}
