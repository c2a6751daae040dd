import type { AuditEntry } from '../../domain/audit_entry.ts';
import { execute, type Work } from '../transaction_work.ts';
import type { Transactions } from '../transactions.ts';
import {
  type ConsoleLink,
  deleteExpiredLinks,
  findLink,
  hasExpiredLinks,
  insertLink,
  redeemLink,
} from './console_links.ts';
import {
  type BegunSession,
  deleteExpiredSessions,
  deleteSession,
  hasExpiredSessions,
  insertSession,
  readSessions,
  renewSession,
  type StoredSession,
} from './console_sessions.ts';
import { type EndedSession, revokeSession, TOUCH_ACCESS } from './revoked_tokens.ts';
import type { RowMacs } from './row_macs.ts';

/** The links and sessions of the console. */
export function openSignIns({ read, write }: Pick<Transactions, 'read' | 'write'>, macs: RowMacs) {
  return {
    /** Stores the rights of a one-time code under its digest, and deletes expired codes. */
    insertConsoleLink: (digest: string, link: ConsoleLink, auditEntry: AuditEntry) =>
      write('instance', function* () {
        yield* insertLink(digest, link, macs, auditEntry.at);
        return { value: undefined, keep: true, auditEntries: [auditEntry] };
      }),
    /** Whether a code is valid now, without redeeming it. `forged`: its row was not written by the service. */
    consoleLinkState: (digest: string, now: number) =>
      read(function* (): Work<'valid' | 'forged' | undefined> {
        const link = yield* findLink(digest, macs, now);
        return typeof link === 'object' ? 'valid' : link;
      }),
    /**
     * Redeems a code: exactly one of all concurrent callers begins a session with it. Undefined if the code is unknown,
     * used or expired, or expires later than any link created now could.
     */
    redeemConsoleLink: (digest: string, now: number, begin: (link: ConsoleLink) => BegunSession) =>
      write<StoredSession | undefined>('instance', function* () {
        const link = yield* redeemLink(digest, macs, now);
        if (!link) return { value: undefined, keep: false };
        const { session, auditEntry } = begin(link);
        yield* insertSession(session, macs);
        return { value: session, keep: true, auditEntries: [auditEntry] };
      }),
    insertConsoleSession: ({ session, auditEntry }: BegunSession) =>
      write('instance', function* () {
        yield* insertSession(session, macs);
        return { value: undefined, keep: true, auditEntries: [auditEntry] };
      }),
    /** Sessions that have not ended, and all forged ones, oldest first. */
    consoleSessions: (now: number) => read(() => readSessions(macs, now)),
    /**
     * Replaces a session by what `renew` returns; undefined if it has ended, or `renew` returns undefined: then it stays as
     * it is. `forged`: its row was not written by the service.
     */
    renewConsoleSession: (
      sessionId: string,
      now: number,
      renew: (session: StoredSession) => StoredSession | undefined,
    ) =>
      write('instance', function* () {
        const value = yield* renewSession(sessionId, macs, now, renew);
        return { value, keep: typeof value === 'object' };
      }),
    /** Deletes a session and revokes its tokens. Ending a session again writes no audit entry. */
    endConsoleSession: (session: EndedSession, auditEntry: AuditEntry) =>
      write('instance', function* () {
        yield* deleteSession(session.sessionId);
        const isNew = yield* revokeSession(session, auditEntry.at);
        if (isNew) yield* execute(TOUCH_ACCESS);
        return { value: undefined, keep: true, auditEntries: isNew ? [auditEntry] : [] };
      }),
    /** Deletes expired codes and sessions; returns their number. */
    async deleteExpiredSignIns(now: number): Promise<number> {
      const isAny = await read(function* () {
        return (yield* hasExpiredLinks(now)) || (yield* hasExpiredSessions(now));
      });
      if (!isAny) return 0;
      return write('instance', function* () {
        const value = (yield* deleteExpiredLinks(now)) + (yield* deleteExpiredSessions(now));
        return { value, keep: value > 0, rows: value };
      });
    },
  };
}
