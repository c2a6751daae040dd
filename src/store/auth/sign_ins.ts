import type { AuthStore } from '../../auth/port.ts';
import { execute } from '../transaction_work.ts';
import type { Transactions } from '../transactions.ts';
import { deleteExpiredLinks, findLink, hasExpiredLinks, insertLink, redeemLink } from './console_links.ts';
import {
  deleteExpiredSessions,
  deleteSession,
  hasExpiredSessions,
  insertSession,
  readSessions,
  renewSession,
} from './console_sessions.ts';
import { revokeSession, TOUCH_ACCESS } from './revoked_tokens.ts';
import type { RowMacs } from './row_macs.ts';

type SignIns =
  | 'insertConsoleLink'
  | 'consoleLinkState'
  | 'redeemConsoleLink'
  | 'insertConsoleSession'
  | 'consoleSessions'
  | 'renewConsoleSession'
  | 'endConsoleSession'
  | 'deleteExpiredSignIns';

/** The links and sessions of the console. */
export function openSignIns(
  { read, write }: Pick<Transactions, 'read' | 'write'>,
  macs: RowMacs,
): Pick<AuthStore, SignIns> {
  return {
    insertConsoleLink: (digest, link, auditEntry) =>
      write('instance', function* () {
        yield* insertLink(digest, link, macs, auditEntry.at);
        return { value: undefined, keep: true, auditEntries: [auditEntry] };
      }),
    consoleLinkState: (digest, now) =>
      read(function* () {
        const link = yield* findLink(digest, macs, now);
        return typeof link === 'object' ? 'valid' : link;
      }),
    redeemConsoleLink: (digest, now, begin) =>
      write('instance', function* () {
        const link = yield* redeemLink(digest, macs, now);
        if (!link) return { value: undefined, keep: false };
        const { session, auditEntry } = begin(link);
        yield* insertSession(session, macs);
        return { value: session, keep: true, auditEntries: [auditEntry] };
      }),
    insertConsoleSession: ({ session, auditEntry }) =>
      write('instance', function* () {
        yield* insertSession(session, macs);
        return { value: undefined, keep: true, auditEntries: [auditEntry] };
      }),
    consoleSessions: (now) => read(() => readSessions(macs, now)),
    renewConsoleSession: (sessionId, now, renew) =>
      write('instance', function* () {
        const value = yield* renewSession(sessionId, macs, now, renew);
        return { value, keep: typeof value === 'object' };
      }),
    endConsoleSession: (session, auditEntry) =>
      write('instance', function* () {
        yield* deleteSession(session.sessionId);
        const isNew = yield* revokeSession(session, auditEntry.at);
        if (isNew) yield* execute(TOUCH_ACCESS);
        return { value: undefined, keep: true, auditEntries: isNew ? [auditEntry] : [] };
      }),
    async deleteExpiredSignIns(now) {
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
