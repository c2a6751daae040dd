import type { AuditEntry } from '../../domain/audit_entry.ts';
import { LIMITS } from '../../domain/limits.ts';
import { revokedTokenTable } from '../tables/installation.ts';
import type { StoredRow } from '../tables/table.ts';
import { execute, first, type Long, type Work } from '../transaction_work.ts';
import type { Transactions } from '../transactions.ts';

/** A token that was revoked before it expired, by its identifier. */
export type RevokedToken = StoredRow<typeof revokedTokenTable>;

/** A session of the console that ends, and when the last of its tokens expires. */
export interface EndedSession {
  readonly sessionId: string;
  readonly actor: string;
  readonly expiresAt: number;
}

/** Increments the version of the access table. */
export const TOUCH_ACCESS = 'update instance set access_version = access_version + 1';

export type ChangeAccess = ReturnType<typeof openChanges>;

/** Returns a function that runs work. If the outcome is a change, it is committed with a new version of the access table. */
export function openChanges(write: Transactions['write']) {
  return <T>(
    work: () => Work<T>,
    auditEntry?: AuditEntry,
    isChange: (outcome: T) => boolean = Boolean,
  ): Promise<T> =>
    write('instance', function* () {
      const value = yield* work();
      const keep = isChange(value);
      if (keep) yield* execute(TOUCH_ACCESS);
      return { value, keep, ...(auditEntry ? { auditEntries: [auditEntry] } : {}) };
    });
}

export const ALL_REVOKED = 'select jti from revoked_token';
const DELETE_EXPIRED = 'delete from revoked_token where expires_at <= ?';
const KNOWN = 'select 1 from revoked_token where jti = ?';
const COUNT = 'select count(*) as count from revoked_token where client_id = ?';

/** Adds a revoked token, unless its client has too many, and deletes expired ones. */
export function* revokeToken(
  { jti, clientId, expiresAt }: RevokedToken,
  at: number,
): Work<'new' | 'known' | 'too many'> {
  yield* deleteExpired(at);
  if (yield* first(KNOWN, jti)) return 'known';
  const count = Number((yield* first<{ readonly count: Long }>(COUNT, clientId))?.count ?? 0);
  if (count >= LIMITS.revokedTokensPerClientMax) return 'too many';
  yield* execute(revokedTokenTable.insert, jti, clientId, expiresAt);
  return 'new';
}

/** Adds the ID of an ended session, and deletes expired ones. Returns false if it is known. Sign-ins bound their number. */
export function* revokeSession({ sessionId, actor, expiresAt }: EndedSession, at: number): Work<boolean> {
  yield* deleteExpired(at);
  if (yield* first(KNOWN, sessionId)) return false;
  yield* execute(revokedTokenTable.insert, sessionId, actor, expiresAt);
  return true;
}

/** Until then a process with a slow clock may still accept a token. */
function deleteExpired(at: number): Work<number> {
  return execute(DELETE_EXPIRED, at - 2 * LIMITS.clockLeewayMs);
}
