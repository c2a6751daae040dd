import type { AuditEntry } from '../../domain/audit_entry.ts';
import type { Uuid } from '../../domain/id.ts';
import { LIMITS } from '../../domain/limits.ts';
import type { Realms, Scopes } from '../../domain/principal.ts';
import { all, execute, first, type Long, type SqlValue, type Work } from '../transaction_work.ts';
import type { RowMacs } from './row_macs.ts';

/** A session of the console that was begun by a link or a provider. Instants are milliseconds since the epoch. */
export interface StoredSession {
  readonly sessionId: Uuid;
  /** The actor in audit entries. */
  readonly actor: string;
  readonly scopes: Scopes;
  readonly realms: Realms;
  /** Keyed digests of the rights of the issuer that the claims of a person met; empty for a link. */
  readonly rules: readonly string[];
  readonly begunAt: number;
  /** When its current token was issued. */
  readonly renewedAt: number;
  /** It is not renewed beyond this instant. */
  readonly endsAt: number;
  /** Its row was not written by the service: it is not honoured, and can only be ended. */
  readonly isForged?: boolean;
}

/** A session that begins, with its audit entry. */
export interface BegunSession {
  readonly session: StoredSession;
  readonly auditEntry: AuditEntry;
}

const COLUMNS = 'session_id, actor, scopes, realms, rules, begun_at, renewed_at, ends_at, mac';
const INSERT = `insert into console_session (${COLUMNS}) values (?, ?, ?, ?, ?, ?, ?, ?, ?)`;
const SELECT_ALL = `select ${COLUMNS} from console_session order by begun_at, session_id`;
const SELECT = `select ${COLUMNS} from console_session where session_id = ?`;
const DELETE = 'delete from console_session where session_id = ?';
const DELETE_ALL = 'delete from console_session';
const DELETE_EXPIRED = 'delete from console_session where renewed_at <= ?';
const ANY_EXPIRED = 'select 1 from console_session where renewed_at <= ? limit 1';

const TOKEN_MS = LIMITS.consoleTokenSeconds * 1_000;
/** After this time a process with a slow clock accepts the token of a session no more. */
const UNUSED_MS_MAX = TOKEN_MS + 2 * LIMITS.clockLeewayMs;

interface SessionRow {
  readonly session_id: Uuid;
  readonly actor: string;
  readonly scopes: string;
  readonly realms: string;
  readonly rules: string;
  readonly begun_at: Long;
  readonly renewed_at: Long;
  readonly ends_at: Long;
  readonly mac: Uint8Array | null;
}

export function* insertSession(session: StoredSession, macs: RowMacs): Work<void> {
  const { sessionId, actor, scopes, realms, rules, begunAt, renewedAt, endsAt } = session;
  const values = valuesOf({
    ...{ session_id: sessionId, actor, begun_at: begunAt, renewed_at: renewedAt, ends_at: endsAt },
    ...{ scopes: [...scopes].join(' '), realms: [...realms].join(' '), rules: rules.join(' ') },
  });
  yield* execute(INSERT, ...values, macs.of('console_session', ...values));
}

/** The sessions whose token is valid now, and all forged ones, oldest first. */
export function* readSessions(macs: RowMacs, now: number): Work<readonly StoredSession[]> {
  const rows = yield* all<SessionRow>(SELECT_ALL);
  return rows.flatMap((row) => {
    const session = sessionOf(row);
    if (isForged(row, macs)) return [{ ...session, isForged: true }];
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
  const row = yield* first<SessionRow>(SELECT, sessionId);
  if (!row) return undefined;
  if (isForged(row, macs)) return 'forged';
  if (Number(row.ends_at) <= now) return undefined;
  const renewed = renew(sessionOf(row));
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

/** The IDs of sessions that were not written by the service. */
export function* readForgedSessions(macs: RowMacs): Work<readonly string[]> {
  const rows = yield* all<SessionRow>(SELECT_ALL);
  return rows.filter((row) => isForged(row, macs)).map(({ session_id }) => session_id);
}

/** Whether there are sessions whose token has expired everywhere. */
export function* hasExpiredSessions(now: number): Work<boolean> {
  return (yield* all(ANY_EXPIRED, now - UNUSED_MS_MAX)).length > 0;
}

/** Deletes them. Returns how many. */
export function deleteExpiredSessions(now: number): Work<number> {
  return execute(DELETE_EXPIRED, now - UNUSED_MS_MAX);
}

function isForged({ mac, ...row }: SessionRow, macs: RowMacs): boolean {
  return !macs.isValid(mac, 'console_session', ...valuesOf(row));
}

/** The values of COLUMNS but the MAC, which covers them. */
function valuesOf(row: Omit<SessionRow, 'mac'>): readonly SqlValue[] {
  const { session_id, actor, scopes, realms, rules, begun_at, renewed_at, ends_at } = row;
  return [session_id, actor, scopes, realms, rules, begun_at, renewed_at, ends_at];
}

function sessionOf(row: SessionRow): StoredSession {
  return {
    sessionId: row.session_id,
    actor: row.actor,
    scopes: new Set(row.scopes.split(' ')),
    realms: row.realms === '*' ? '*' : new Set(row.realms.split(' ') as Uuid[]),
    rules: row.rules.split(' ').filter(Boolean),
    begunAt: Number(row.begun_at),
    renewedAt: Number(row.renewed_at),
    endsAt: Number(row.ends_at),
  };
}
