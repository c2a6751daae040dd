import type { AuditEntry } from '../../domain/audit_entry.ts';
import type { Uuid } from '../../domain/id.ts';
import { LIMITS } from '../../domain/limits.ts';
import { consoleSessionTable } from '../tables/installation.ts';
import type { StoredRow } from '../tables/table.ts';
import { all, execute, first, type Work } from '../transaction_work.ts';
import type { RowMacs } from './row_macs.ts';

/** A session of the console that was begun by a link or a provider. Instants are milliseconds since the epoch. */
export interface StoredSession extends StoredRow<typeof consoleSessionTable> {
  readonly sessionId: Uuid;
  /** Its row was not written by the service: it is not honoured, and can only be ended. */
  readonly isForged?: boolean;
}

/** A session that begins, with its audit entry. */
export interface BegunSession {
  readonly session: StoredSession;
  readonly auditEntry: AuditEntry;
}

const SELECT_ALL = `${consoleSessionTable.select} order by begun_at, session_id`;
const SELECT = `${consoleSessionTable.select} where session_id = ?`;
const DELETE = 'delete from console_session where session_id = ?';
const DELETE_ALL = 'delete from console_session';
const DELETE_EXPIRED = 'delete from console_session where renewed_at <= ?';
const ANY_EXPIRED = 'select 1 from console_session where renewed_at <= ? limit 1';

const TOKEN_MS = LIMITS.consoleTokenSeconds * 1_000;
/** After this time a process with a slow clock accepts the token of a session no more. */
const UNUSED_MS_MAX = TOKEN_MS + 2 * LIMITS.clockLeewayMs;

export function* insertSession(session: StoredSession, macs: RowMacs): Work<void> {
  yield* execute(consoleSessionTable.insert, ...Object.values(macs.signedRow(consoleSessionTable, session)));
}

/** The sessions whose token is valid now, and all forged ones, oldest first. */
export function* readSessions(macs: RowMacs, now: number): Work<readonly StoredSession[]> {
  const rows = yield* all(SELECT_ALL);
  return rows.flatMap((row) => {
    const session = consoleSessionTable.read(row) as StoredSession;
    if (macs.isRowForged(consoleSessionTable, row)) return [{ ...session, isForged: true }];
    return session.renewedAt > now - TOKEN_MS && session.endsAt > now ? [session] : [];
  });
}

/** Replaces a session that has not ended by what `renew` returns, if it returns one, and if it is not forged. */
export function* renewSession(
  sessionId: string,
  macs: RowMacs,
  now: number,
  renew: (session: StoredSession) => StoredSession | undefined,
): Work<StoredSession | 'forged' | undefined> {
  const row = yield* first(SELECT, sessionId);
  if (!row) return undefined;
  if (macs.isRowForged(consoleSessionTable, row)) return 'forged';
  const session = consoleSessionTable.read(row) as StoredSession;
  if (session.endsAt <= now) return undefined;
  const renewed = renew(session);
  if (!renewed) return undefined;
  yield* execute(DELETE, sessionId);
  yield* insertSession(renewed, macs);
  return renewed;
}

export function* deleteSession(sessionId: string): Work<void> {
  yield* execute(DELETE, sessionId);
}

export function* deleteAllSessions(): Work<void> {
  yield* execute(DELETE_ALL);
}

/** Whether there are sessions whose token has expired everywhere. */
export function* hasExpiredSessions(now: number): Work<boolean> {
  return (yield* all(ANY_EXPIRED, now - UNUSED_MS_MAX)).length > 0;
}

/** Deletes them. Returns how many. */
export function deleteExpiredSessions(now: number): Work<number> {
  return execute(DELETE_EXPIRED, now - UNUSED_MS_MAX);
}
