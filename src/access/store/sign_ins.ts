import type { RowMacs } from '../../log/store/row_macs.ts';
import type { Uuid } from '../../model/id.ts';
import { LIMITS } from '../../model/limits.ts';
import type { AuditEntry } from '../../model/log/audit_entry.ts';
import { consoleLinkTable, consoleSessionTable } from '../../sql/tables/installation.ts';
import type { StoredRow } from '../../sql/tables/table.ts';
import { all, execute, first, type Row, type Work } from '../../sql/transaction_work.ts';
import type { Transactions } from '../../sql/transactions.ts';
import { TOUCH_ACCESS } from './access_version.ts';
import { type RevokedToken, revokeToken } from './revoked_tokens.ts';

/** A console link: the digest of its code, and the rights that it grants to the person who follows it. */
export type StoredLink = StoredRow<typeof consoleLinkTable>;

/** A session of the console that was begun by a link or a provider. Instants are milliseconds since the epoch. */
export interface StoredSession extends StoredRow<typeof consoleSessionTable> {
  readonly sessionId: Uuid;
  /** Its row was not written by the service: it is not honoured, and can only be ended. */
  readonly isForged?: boolean;
}

/** A session that begins, with its audit entry. */
interface BegunSession {
  readonly session: StoredSession;
  readonly auditEntry: AuditEntry;
}

const SELECT_LINK = `${consoleLinkTable.select} where digest = ?`;
const DELETE_LINK = 'delete from console_link where digest = ?';
const DELETE_EXPIRED_LINKS = 'delete from console_link where expires_at <= ?';
const SELECT_SESSIONS = `${consoleSessionTable.select} order by begun_at, session_id`;
const SELECT_SESSION = `${consoleSessionTable.select} where session_id = ?`;
const DELETE_SESSION = 'delete from console_session where session_id = ?';
const DELETE_EXPIRED_SESSIONS = 'delete from console_session where renewed_at <= ?';
export const DELETE_ALL_SESSIONS = 'delete from console_session';

/** After this time a process with a slow clock accepts the token of a session no more. */
const UNUSED_MS_MAX = LIMITS.consoleTokenSeconds * 1_000 + 2 * LIMITS.clockLeewayMs;

/** The links and sessions of the console. */
export function openSignIns({ read, write }: Pick<Transactions, 'read' | 'write'>, macs: RowMacs) {
  /** The link in a row if it is valid now. `forged`: the row was not written by the service. */
  function linkIn(row: Row | undefined, now: number): StoredLink | 'forged' | undefined {
    if (!row) return undefined;
    if (macs.isRowForged(consoleLinkTable, row)) return 'forged';
    const link = consoleLinkTable.read(row);
    // A later one was created by a fast clock.
    const isCreated = link.createdAt <= now + LIMITS.clockLeewayMs;
    return isCreated && link.expiresAt > now ? link : undefined;
  }

  function insertSession(session: StoredSession): Work<number> {
    const row = macs.signedRow(consoleSessionTable, session);
    return execute(consoleSessionTable.insert, ...Object.values(row));
  }

  return {
    insertConsoleLink: (link: StoredLink, auditEntry: AuditEntry) =>
      write('instance', function* () {
        const row = macs.signedRow(consoleLinkTable, link);
        yield* execute(consoleLinkTable.insert, ...Object.values(row));
        return { value: undefined, keep: true, auditEntries: [auditEntry] };
      }),
    /** Whether a code is valid now, without redeeming it. `forged`: its row was not written by the service. */
    consoleLinkState: (digest: string, now: number) =>
      read(function* (): Work<'valid' | 'forged' | undefined> {
        const link = linkIn(yield* first(SELECT_LINK, digest), now);
        return typeof link === 'object' ? 'valid' : link;
      }),
    /**
     * Redeems a code: exactly one of all concurrent callers begins a session with it. Undefined if the code is unknown,
     * used or expired, or was created later than any link could be now.
     */
    redeemConsoleLink: (digest: string, now: number, begin: (link: StoredLink) => BegunSession) =>
      write<StoredSession | undefined>('instance', function* () {
        const link = linkIn(yield* first(SELECT_LINK, digest), now);
        if (typeof link !== 'object' || (yield* execute(DELETE_LINK, digest)) !== 1)
          return { value: undefined, keep: false };
        const { session, auditEntry } = begin(link);
        yield* insertSession(session);
        return { value: session, keep: true, auditEntries: [auditEntry] };
      }),
    /** The links that can be redeemed now. */
    consoleLinks: (now: number) =>
      read(function* (): Work<readonly StoredLink[]> {
        const links = (yield* all(consoleLinkTable.select)).map((row) => linkIn(row, now));
        return links.filter((link) => typeof link === 'object');
      }),
    /** Deletes a link; false if it was redeemed, has expired or was deleted before. */
    deleteConsoleLink: (digest: string, auditEntry: AuditEntry) =>
      write('instance', function* () {
        const value = (yield* execute(DELETE_LINK, digest)) === 1;
        return { value, keep: value, auditEntries: value ? [auditEntry] : [] };
      }),
    insertConsoleSession: ({ session, auditEntry }: BegunSession) =>
      write('instance', function* () {
        yield* insertSession(session);
        return { value: undefined, keep: true, auditEntries: [auditEntry] };
      }),
    /** The sessions whose token a process may accept now, and all forged ones, oldest first. */
    consoleSessions: (now: number) =>
      read(function* (): Work<readonly StoredSession[]> {
        return (yield* all(SELECT_SESSIONS)).flatMap((row) => {
          const session = consoleSessionTable.read(row) as StoredSession;
          if (macs.isRowForged(consoleSessionTable, row)) return [{ ...session, isForged: true }];
          return session.renewedAt > now - UNUSED_MS_MAX && session.endsAt > now - 2 * LIMITS.clockLeewayMs
            ? [session]
            : [];
        });
      }),
    /**
     * Replaces a session by what `renew` returns; undefined if it has ended, or `renew` returns undefined: then it stays as
     * it is. `forged`: its row was not written by the service.
     */
    renewConsoleSession: (
      sessionId: string,
      now: number,
      renew: (session: StoredSession) => StoredSession | undefined,
    ) =>
      write<StoredSession | 'forged' | undefined>('instance', function* () {
        const row = yield* first(SELECT_SESSION, sessionId);
        if (row && macs.isRowForged(consoleSessionTable, row)) return { value: 'forged', keep: false };
        const session = row && (consoleSessionTable.read(row) as StoredSession);
        const renewed = session && session.endsAt > now ? renew(session) : undefined;
        if (!renewed) return { value: undefined, keep: false };
        yield* execute(DELETE_SESSION, sessionId);
        yield* insertSession(renewed);
        return { value: renewed, keep: true };
      }),
    /** Deletes a session and revokes its tokens; sign-ins bound their number. Ending a session again writes no audit entry. */
    endConsoleSession: (session: RevokedToken, auditEntry: AuditEntry) =>
      write('instance', function* () {
        yield* execute(DELETE_SESSION, session.jti);
        const isNew = (yield* revokeToken(session, auditEntry.at, Number.POSITIVE_INFINITY)) === 'new';
        if (isNew) yield* execute(TOUCH_ACCESS);
        return { value: undefined, keep: true, auditEntries: isNew ? [auditEntry] : [] };
      }),
    /** Deletes all expired codes, and all sessions whose token has expired everywhere; returns their number. */
    deleteExpiredSignIns: (now: number) =>
      write('instance', function* () {
        const links = yield* execute(DELETE_EXPIRED_LINKS, now);
        const value = links + (yield* execute(DELETE_EXPIRED_SESSIONS, now - UNUSED_MS_MAX));
        return { value, keep: value > 0, rows: value };
      }),
  };
}
